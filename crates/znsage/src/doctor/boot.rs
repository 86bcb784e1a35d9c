// SPDX-License-Identifier: GPL-2.0-only
//! What turns swap on when the machine starts: sections of znsage.conf, and what still
//! names a swap area that was there before.

use super::{Finding, Scene};
use crate::conf::{self, Section};
use crate::oldswap::{self, Mention};
use crate::{device, service, swaps};

/// No finding if there are no files.
pub fn settings(scene: &Scene) -> Vec<Finding> {
    let conf = conf::read(scene.sys);
    let faults = conf.faults.iter().map(|fault| Finding {
        hint: fault.hint.clone(),
        ..Finding::problem("settings", fault.to_string())
    });
    faults.chain(conf.sections.iter().filter_map(|s| section(scene, s))).collect()
}

/// None if it has faults.
fn section(scene: &Scene, section: &Section) -> Option<Finding> {
    let args = section.args.as_ref()?;
    let path = &args.device;
    let (name, file) = (&section.name, &section.file);
    let unit = service::unit(name);
    let backing = match device::locate(scene.sys, path) {
        Ok((_, backing)) => backing,
        // `on` makes the file.
        Err(_) if args.size.is_some() && !path.starts_with("/dev/") => path.clone(),
        Err(_) if !path.starts_with("/dev/") => {
            let why = format!("section {name} of {file}: {path} is no file");
            let cure = "with `size = SIZE`, the service makes it";
            return Some(Finding::problem("settings", why).hint(cure));
        }
        Err(e) => return Some(missing(section, format!("section {name} of {file}: {e}"))),
    };
    let used = |name: &str| swaps::area(scene.sys, name).is_some();
    let on = scene.on.iter().find(|d| d.backing == backing);
    Some(match on.filter(|d| used(&d.name)) {
        Some(d) => Finding::ok("settings", format!("section {name} of {file} is on: {}", d.name)),
        None if service::is_active(scene.sys, name) => Finding::problem(
            "settings",
            format!("section {name} of {file} is not swap, but {unit} is active"),
        )
        .hint(format!("`systemctl restart {unit}` turns it on, `systemctl stop {unit}` off")),
        None => Finding::note("settings", format!("section {name} of {file} is valid, but not on"))
            .hint(format!("`systemctl daemon-reload` and `systemctl start {unit}` turn it on")),
    })
}

fn missing(section: &Section, message: String) -> Finding {
    let unit = service::unit(&section.name);
    match section.nofail {
        true => Finding::note("settings", message)
            .hint(format!("{unit} starts when the device appears")),
        false => Finding::problem("settings", message).hint(format!(
            "when the machine starts, {unit} waits for it, 90 s by default, and fails;\n\
             with `nofail = yes` it does not"
        )),
    }
}

/// Lines that make the machine wait for a swap area that is gone, or use the device of
/// znsage.
pub fn old_swap(scene: &Scene) -> Vec<Finding> {
    let conf = conf::read(scene.sys);
    let args = conf.sections.iter().filter_map(|section| section.args.as_ref());
    let of_sections = args.filter_map(|args| Some(device::locate(scene.sys, &args.device).ok()?.1));
    let ours: Vec<String> = scene.on.iter().map(|d| d.backing.clone()).chain(of_sections).collect();
    let found: Vec<Finding> = oldswap::mentions(scene.sys)
        .into_iter()
        .filter_map(|mention| judge(&ours, mention))
        .collect();
    match found.is_empty() {
        true => vec![Finding::ok("boot", "no setting names a swap area that is gone or znsage's")],
        false => found,
    }
}

fn judge(ours: &[String], mention: Mention) -> Option<Finding> {
    let why = match &mention.name {
        None => "does not exist: the machine waits for it when it starts".to_string(),
        Some(name) if ours.contains(name) => format!("is {name}, which znsage uses"),
        Some(_) => return None,
    };
    let message = format!("{}: {} {why}", mention.place, mention.spec);
    Some(Finding::problem("boot", message).hint(mention.cure))
}
