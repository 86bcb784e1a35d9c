// SPDX-License-Identifier: GPL-2.0-only
//! The I/O scheduler of the zoned device, which is none while znsage uses it.
//! Appends need no order, chunks need no merging, and reads that wait for
//! nothing need no priority: all that a scheduler costs is lost. 6.1 gives
//! every zoned device mq-deadline, later kernels those with a single queue.
//! For the next user of the device it matters, so `off` puts it back.

use crate::error::{Error, Result};
use crate::sys::Sys;
use crate::undo::Undo;

const NONE: &str = "none";

/// Sets it to none, to be put back by [`restore`].
pub fn set_none(sys: &dyn Sys, device: &str, undo: &mut Undo) -> Result<()> {
    let attribute = attribute(device);
    let Some(current) = sys.read(&attribute).ok().and_then(|list| chosen(&list)) else {
        return Ok(());
    };
    let saved = saved(device);
    if current == NONE {
        // What a machine that lost the device in use may have left behind.
        return sys.forget(&saved).map_err(|e| Error::io("remove", &sys.at(&saved), e));
    }
    undo.push("restore the I/O scheduler", {
        let device = device.to_string();
        move |sys| restore(sys, &device)
    });
    sys.save(&saved, &current).map_err(|e| Error::io("write", &sys.at(&saved), e))?;
    sys.write(&attribute, NONE).map_err(|e| Error::io("write", &sys.at(&attribute), e))
}

/// Sets it to what it was, if [`set_none`] changed it.
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

/// The one in brackets, if there is a choice that includes none.
pub fn chosen(list: &str) -> Option<String> {
    let words: Vec<&str> = list.split_whitespace().collect();
    let current = words.iter().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'))?;
    words.iter().any(|w| w.trim_matches(['[', ']']) == NONE).then(|| current.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_one_is_in_brackets() {
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
