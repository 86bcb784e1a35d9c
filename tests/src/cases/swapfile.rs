// SPDX-License-Identifier: GPL-2.0-only
//! Swap files by the command: made, used again, and by a section of znsage.conf.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};

use super::devices::CONVENTIONAL;
use crate::cleanup::MOUNT;
use crate::device::{znsage, znsage_json, Device};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::{Context, Outcome};

crate::cases![swapfile: made_and_used_again (more), on_xfs (full), other_file_systems (full)];

const FILE: &str = "/run/vm-suite/swap";
const PROFILE: &str = "/run/znsage-suite.conf";

/// `on` fails with these words, and makes no file.
fn refuses(path: &str, words: &str) -> Outcome {
    let ran = znsage(&["on", path, "--size", "64M"])?;
    ensure!(ran.status == 14 && ran.stderr.contains(words), "{path}: {}", ran.said());
    ensure!(!guest::exists(path), "{path} is there");
    Ok(())
}

fn rewrite(device: &Device) -> Outcome {
    device.swapoff()?;
    device.rewrite(8192, 4)?;
    ensure!(device.counter("zone_resets")? > 0, "no zone was emptied");
    guest::ok(&["znsage", "off", FILE]).map(drop)
}

fn made_and_used_again(_: &mut Log) -> Outcome {
    made(&["mkfs.ext4", "-q", "-F"], &["e2fsck", "-fn"])
}

fn on_xfs(_: &mut Log) -> Outcome {
    made(&["mkfs.xfs", "-q", "-f", "--unsupported"], &["xfs_repair", "-n"])
}

/// On a new file system, which is checked at the end.
fn made(make: &[&str], check: &[&str]) -> Outcome {
    let node = guest::device(CONVENTIONAL)?;
    fs::create_dir_all(MOUNT).context(MOUNT)?;
    refuses(FILE, "is on tmpfs, which")?;
    guest::ok(&[make, &[&node]].concat())?;
    guest::ok(&["mount", &node, MOUNT])?;
    let much = znsage(&["on", FILE, "--size", "1G"])?;
    ensure!(much.status == 16 && !guest::exists(FILE), "1G: {}", much.said());

    let on = znsage_json(&["on", FILE, "--size", "64M", "--policy", "single"])?;
    let bytes = fs::metadata(FILE).context(FILE)?.len();
    let over = on["left_over_bytes"].as_u64().ok_or("no left_over_bytes")?;
    ensure!(on["made_bytes"] == bytes && on["device"]["size_bytes"] == 64 << 20, "on: {on}");
    ensure!(over < bytes / 16, "{over} of {bytes} bytes are left over");
    let mode = fs::metadata(FILE).context(FILE)?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "mode {mode:o}");
    rewrite(&Device { name: "znsage0".into(), backing: FILE.into() })?;

    // What the module wrote is not in the file, so nothing is asked.
    let read = fs::read(FILE).context(FILE)?;
    ensure!(read.iter().all(|byte| *byte == 0), "the file has data");
    fs::write("/etc/znsage.conf", format!("[swap]\ndevice = {FILE}\nsize = 64M\n"))
        .context("znsage.conf")?;
    let section = ["on", "--config", "swap"];
    ensure!(znsage_json(&section)?["made_bytes"].is_null(), "the file was made again");
    ensure!(znsage(&["list"])?.stdout.contains(FILE), "list does not show {FILE}");
    guest::ok(&["znsage", "off", "--config", "swap"])?;
    fs::remove_file("/etc/znsage.conf").context("znsage.conf")?;

    // Data of others, and a hole.
    let file = fs::File::options().write(true).open(FILE).context(FILE)?;
    file.write_all_at(b"data", 5 << 20)
        .and_then(|()| file.set_len(bytes + (8 << 20)))
        .and_then(|()| file.sync_all())
        .context(FILE)?;
    drop(file);
    let asked = znsage(&["on", FILE])?;
    ensure!(asked.status == 18 && asked.stderr.contains("has data"), "{}", asked.said());
    rewrite(&Device::on(FILE, &["--yes", "--size", "64M", "--policy", "single"])?)?;
    measured()?;
    guest::ok(&["umount", MOUNT])?;
    guest::ok(&[check, &[&node]].concat())?;
    guest::ok(&["wipefs", "-aq", &node]).map(drop)
}

/// `probe` leaves no data in the file.
fn measured() -> Outcome {
    let found = znsage_json(&["probe", "--yes", "--quick", "--profile", PROFILE, FILE])?;
    let sizes = found["zone_sizes"].as_array().ok_or("no sizes of zones")?;
    let slow = |size: &serde_json::Value| size["latency_us"]["p99"].as_f64() <= Some(0.0);
    ensure!(!sizes.is_empty() && !sizes.iter().any(slow), "probe: {found}");
    Device::on(FILE, &["--profile", PROFILE])?.end()
}

/// Refused before anything is done.
fn other_file_systems(_: &mut Log) -> Outcome {
    let node = guest::device(CONVENTIONAL)?;
    fs::create_dir_all(MOUNT).context(MOUNT)?;
    refuses("/etc/swap", "is on overlay, which")?;
    for system in ["btrfs", "f2fs"] {
        let made = guest::run(&[&format!("mkfs.{system}"), "-q", "-f", &node]);
        if !made.is_ok_and(|ran| ran.status == 0) {
            print!("no mkfs.{system} ... ");
            continue;
        }
        guest::ok(&["mount", &node, MOUNT])?;
        refuses(FILE, &format!("is on {system}, which"))?;
        guest::ok(&["umount", MOUNT])?;
    }
    guest::ok(&["wipefs", "-aq", &node]).map(drop)
}
