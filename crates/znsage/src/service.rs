// SPDX-License-Identifier: GPL-2.0-only
//! The service that systemd has for a section of znsage.conf (generator.rs).

use crate::sys::Sys;

/// Its name, which is also that of a template's instance.
pub fn unit(section: &str) -> String {
    format!("znsage@{section}.service")
}

/// Does systemd count it as started? Not while it is starting or stopping.
pub fn is_active(sys: &dyn Sys, section: &str) -> bool {
    // There only while systemd is process 1.
    sys.exists("/run/systemd/system")
        && sys
            .run(&["systemctl", "is-active", &unit(section)], &mut || ())
            .is_ok_and(|ran| ran.stdout.trim() == "active")
}

/// Tells systemd that a section is off, without waiting. The service runs `znsage off
/// --config`, which has nothing to do. Returns false if that failed.
pub fn stop(sys: &dyn Sys, section: &str) -> bool {
    let argv = ["systemctl", "stop", "--no-block", &unit(section)];
    sys.run(&argv, &mut || ()).is_ok_and(|ran| ran.ok())
}
