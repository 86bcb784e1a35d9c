// SPDX-License-Identifier: GPL-2.0-only
//! The I/O scheduler of the zoned device while znsage uses it. It is none: appends need
//! no order, chunks no merging and reads no priority, so a scheduler only costs time.
//! Linux 6.1 gives every zoned device mq-deadline, later kernels those with a single
//! queue. `off` restores it for the next user of the device.
//!
//! SCSI has no zone append. Before 6.10 sd makes a write of it, one at a time for each
//! zone, and gives the next one back to its sender unless a scheduler queues it: such a
//! disk keeps its scheduler. Later kernels queue writes for each zone themselves. Which
//! of the two a kernel does is seen in debugfs: a file of the locks of zones, or of the
//! queues.

use crate::error::{Error, Result};
use crate::sys::Sys;
use crate::undo::Undo;

const NONE: &str = "none";

/// The scheduler that every kernel has for zoned devices.
const FOR_ZONES: &str = "mq-deadline";

/// What the appends to a device need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Nothing,
    Scheduler,
    /// A SCSI disk, without a look into debugfs.
    Unknown,
}

pub fn need(sys: &dyn Sys, device: &str) -> Need {
    if !sys.exists(&format!("/sys/block/{device}/device/scsi_disk")) {
        return Need::Nothing;
    }
    let has = |file| sys.exists(&format!("/sys/kernel/debug/block/{device}/{file}"));
    match (has("zone_wplugs"), has("zone_wlock")) {
        (true, _) => Need::Nothing,
        (false, true) => Need::Scheduler,
        (false, false) => Need::Unknown,
    }
}

/// Sets the scheduler that the device needs; [`restore`] reverts this.
pub fn choose(sys: &dyn Sys, device: &str, undo: &mut Undo) -> Result<()> {
    let attribute = attribute(device);
    let Some(current) = sys.read(&attribute).ok().and_then(|list| chosen(&list)) else {
        return Ok(());
    };
    let wanted = match need(sys, device) {
        Need::Nothing => NONE,
        // It may cost time, but none may cost more.
        Need::Scheduler | Need::Unknown if current == NONE => FOR_ZONES,
        Need::Scheduler | Need::Unknown => &current,
    };
    let saved = saved(device);
    if current == wanted {
        // Left over if the device was removed while in use.
        return sys.forget(&saved).map_err(|e| Error::io("remove", &sys.at(&saved), e));
    }
    undo.push("restore the I/O scheduler", {
        let device = device.to_string();
        move |sys| restore(sys, &device)
    });
    sys.save(&saved, &current).map_err(|e| Error::io("write", &sys.at(&saved), e))?;
    sys.write(&attribute, wanted).map_err(|e| Error::io("write", &sys.at(&attribute), e))
}

/// Restores it if [`choose`] changed it. A disk that is gone has none.
pub fn restore(sys: &dyn Sys, device: &str) -> Result<()> {
    let (attribute, saved) = (attribute(device), saved(device));
    let Ok(before) = sys.read(&saved) else {
        return Ok(());
    };
    let written = sys.write(&attribute, before.trim());
    if let (Err(e), true) = (written, sys.exists(&attribute)) {
        return Err(Error::io("write", &sys.at(&attribute), e));
    }
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
    use crate::sys::fake::Fake;

    const SCHEDULER: &str = "/sys/block/sda/queue/scheduler";

    /// A disk with a scheduler, and its files in debugfs.
    fn disk(list: &str, scsi: bool, debugfs: &[&str]) -> Fake {
        let fake = Fake::new();
        fake.put(SCHEDULER, list);
        if scsi {
            fake.put_dir("/sys/block/sda/device/scsi_disk/0:0:0:0");
        }
        for file in debugfs {
            fake.put(&format!("/sys/kernel/debug/block/sda/{file}"), "");
        }
        fake
    }

    #[test]
    fn scheduler_stays_where_appends_need_it() {
        const SET: &str = "[mq-deadline] none\n";
        const UNSET: &str = "mq-deadline [none]\n";
        const ZONED: &str = "mq-deadline [bfq] none\n";
        for (list, scsi, debugfs, want) in [
            // Not SCSI: whatever the kernel.
            (SET, false, &["zone_wlock"][..], "none"),
            (SET, false, &["zone_wplugs"], "none"),
            // SCSI.
            (SET, true, &["zone_wplugs"], "none"),
            (UNSET, true, &["zone_wplugs"], UNSET),
            (SET, true, &["zone_wlock"], SET),
            (ZONED, true, &["zone_wlock"], ZONED),
            (UNSET, true, &["zone_wlock"], "mq-deadline"),
            // debugfs is not mounted.
            (SET, true, &[], SET),
            (UNSET, true, &[], "mq-deadline"),
        ] {
            let fake = disk(list, scsi, debugfs);
            let mut undo = Undo::new(&fake);
            choose(&fake, "sda", &mut undo).unwrap();
            assert_eq!(fake.read(SCHEDULER).unwrap(), want, "{list}, SCSI {scsi}, {debugfs:?}");
            restore(&fake, "sda").unwrap();
            let before = chosen(list).unwrap();
            let after = fake.read(SCHEDULER).unwrap();
            assert!(after == list || after == before, "{list}, SCSI {scsi}, {debugfs:?}: {after}");
        }
    }

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
