// SPDX-License-Identifier: GPL-2.0-only
//! Files of settings, and the units made from them.

use znsage::parsers::settings as read;

use crate::text;

/// Allowed beginnings of lines in a unit.
const KEYS: [&str; 18] = [
    "# Made by ",
    "[Unit]",
    "Description=",
    "Documentation=",
    "SourcePath=",
    "DefaultDependencies=",
    "After=",
    "Wants=dev-",
    "Wants=sys-",
    "StopPropagatedFrom=dev-",
    "Before=",
    "Conflicts=",
    "[Service]",
    "Type=oneshot",
    "RemainAfterExit=",
    "ExecStart=/usr/sbin/znsage on --config ",
    "ExecStop=/usr/sbin/znsage off --config ",
    "TimeoutStopSec=",
];

/// Faults name existing lines. No file can inject other settings into a unit.
pub fn settings(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let found = read(text);
    for (line, message) in &found.faults {
        assert!(line.is_some_and(|n| n >= 1 && n <= text.lines().count()), "{message}");
        assert!(message.starts_with("/etc/znsage.conf:") && !message.contains('\n'), "{message:?}");
    }
    // The last unit fails with the faults that belong to no section.
    let is_section = |name: &str| name != "znsage-conf.service";
    for (name, unit, wanted_by) in found.units.iter().filter(|unit| is_section(&unit.0)) {
        let section = name.strip_prefix("znsage@").and_then(|n| n.strip_suffix(".service"));
        let section = section.expect("the name of a service");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        assert!(!section.is_empty() && section.chars().all(plain), "{section:?}");
        assert!(wanted_by.iter().all(|unit| !unit.contains('/')), "{wanted_by:?}");
        for line in unit.lines() {
            let known = line.is_empty() || KEYS.iter().any(|key| line.starts_with(key));
            assert!(known, "{line:?}");
        }
        for once in ["ExecStart=", "ExecStop=", "Description=", "[Service]"] {
            assert_eq!(unit.lines().filter(|l| l.starts_with(once)).count(), 1, "{unit}");
        }
    }
}
