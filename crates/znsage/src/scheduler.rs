// SPDX-License-Identifier: GPL-2.0-only
//! Sets the I/O scheduler of the zoned device to none while znsage uses it: appends
//! need no order, chunks no merging and reads no priority, so a scheduler only costs
//! time. Linux 6.1 gives every zoned device mq-deadline, later kernels those with a
//! single queue. `off` restores it for the next user of the device.

use crate::error::{Error, Result};
use crate::sys::Sys;
use crate::undo::Undo;

const NONE: &str = "none";

/// Sets it to none; [`restore`] reverts this.
pub fn set_none(sys: &dyn Sys, device: &str, undo: &mut Undo) -> Result<()> {
    let attribute = attribute(device);
    let Some(current) = sys.read(&attribute).ok().and_then(|list| chosen(&list)) else {
        return Ok(());
    };
    let saved = saved(device);
    if current == NONE {
        // Left over if the device was removed while in use.
        return sys.forget(&saved).map_err(|e| Error::io("remove", &sys.at(&saved), e));
    }
    undo.push("restore the I/O scheduler", {
        let device = device.to_string();
        move |sys| restore(sys, &device)
    });
    sys.save(&saved, &current).map_err(|e| Error::io("write", &sys.at(&saved), e))?;
    sys.write(&attribute, NONE).map_err(|e| Error::io("write", &sys.at(&attribute), e))
}

/// Restores it if [`set_none`] changed it.
pub fn restore(sys: &dyn Sys, device: &str) -> Result<()> {
    let (attribute, saved) = (attribute(device), saved(device));
    let Ok(before) = sys.read(&saved) else {
        return Ok(());
    };
    sys.write(&attribute, before.trim()).map_err(|e| Error::io("write", &sys.at(&attribute), e))?;
    sys.forget(&saved).map_err(|e| Error::io("remove", &sys.at(&saved), e))
}

fn attribute(device: &str) -> String {
    format!("/sys/block/{device}/queue/scheduler")
}

fn saved(device: &str) -> String {
    format!("/run/znsage/{device}.scheduler")
}

/// The active scheduler, in brackets. None if the list does not offer `none`.
pub fn chosen(list: &str) -> Option<String> {
    let words: Vec<&str> = list.split_whitespace().collect();
    let current = words.iter().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'))?;
    words.iter().any(|w| w.trim_matches(['[', ']']) == NONE).then(|| current.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_scheduler_is_in_brackets() {
        for (list, want) in [
            ("[mq-deadline] kyber none\n", Some("mq-deadline")),
            ("mq-deadline [none]\n", Some("none")),
            ("[none] \n", Some("none")),
            ("none\n", None),
            ("[mq-deadline]\n", None),
            ("", None),
        ] {
            assert_eq!(chosen(list).as_deref(), want, "{list}");
        }
    }
}
