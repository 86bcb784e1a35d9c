// SPDX-License-Identifier: GPL-2.0-only
//! Input of the simulator: devices, specs, sweeps. A line `#set KEY=VALUE`, a comment in
//! TOML, acts as an option of the command.

use znsage_sim::device::params::Interface;
use znsage_sim::device::{ConventionalSsd, Params, ZnsSsd};
use znsage_sim::sweep::Sweep;
use znsage_sim::Spec;

use crate::text;

/// Size of a device that is fast to build.
const SMALL: u64 = 64 << 20;

fn options(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.strip_prefix("#set ")?.split_once('='))
}

/// An accepted device can be built and runs commands.
pub fn device(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let set: Vec<_> = options(text).map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let params = match Params::parse("a.toml", text, &set) {
        Ok(params) => params,
        Err(e) => return assert!(!e.to_string().is_empty()),
    };
    if params.interface == Interface::Zoned {
        if let Ok(device) = ZnsSsd::new(&params, Some(SMALL), 1) {
            work_zones(device);
        }
    } else if let Ok(device) = ConventionalSsd::new(&params, Some(SMALL), 1) {
        work_blocks(device);
    }
}

fn work_zones(mut device: ZnsSsd) {
    let most = device.geometry().max_append / device.geometry().write_unit;
    let blocks = most * device.geometry().write_unit;
    let mut now = 0;
    for _ in 0..4 {
        if let Ok(done) = device.append(now, 0, blocks) {
            assert!(done.done >= now, "time runs backwards");
            now = done.done;
        }
    }
    for done in [device.read(now, 0, 0, 1), device.finish(now, 0), device.reset(now, 0)] {
        assert!(done.map_or(true, |done| done >= now), "time runs backwards");
    }
}

fn work_blocks(mut device: ConventionalSsd) {
    let mut now = 0;
    for block in 0..4 {
        let done = device.write(now, block, 1);
        assert!(done >= now, "time runs backwards");
        now = done;
    }
}

/// A spec survives writing and reading; a refused option changes nothing; an accepted
/// spec can be built.
pub fn spec(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(mut spec) = Spec::parse(text) else { return };
    for (key, value) in options(text) {
        let before = spec.clone();
        if let Err(e) = spec.set(key, value) {
            assert_eq!(e.key, key);
            assert!(same(&spec, &before), "{key}={value} is refused, and changes something");
        }
    }
    if let Ok(text) = toml::to_string(&spec) {
        let again = Spec::parse(&text).expect("a written spec parses");
        assert!(same(&again, &spec), "{again:?} is not {spec:?}");
    }
    if spec.check().is_ok() && is_small(&spec) {
        let _ = znsage_sim::check(&spec);
    }
}

/// Compares text, because NaN differs from itself.
fn same(a: &Spec, b: &Spec) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

/// Excludes large memory and devices, and policies in C, which would be compiled.
fn is_small(spec: &Spec) -> bool {
    spec.size.is_some_and(|size| size <= SMALL)
        && spec.host.memory <= SMALL
        && !spec.workload.is_from_file()
        && spec.znsage.policy_source.is_none()
        && Params::text(&spec.device).is_some()
}

/// An error of a sweep names the file; its points are described.
pub fn sweep(data: &[u8]) {
    let Some(text) = text(data) else { return };
    // Devices and traces could be any files of the machine.
    if text.contains(['/', '\\']) || text.contains("trace") {
        return;
    }
    let set: Vec<_> = options(text).map(|(k, v)| (k.to_string(), v.to_string())).collect();
    match Sweep::parse("s.toml", text, &set) {
        Err(e) => assert!(e.to_string().starts_with("s.toml")),
        Ok(sweep) => {
            let again = Sweep::parse("s.toml", text, &set).expect("it parsed before");
            assert_eq!(again.points.len(), sweep.points.len());
            for point in sweep.points.iter().take(100) {
                let words = sweep.describe(point);
                assert!(sweep.values(point).keys().all(|key| words.contains(key)));
            }
        }
    }
}
