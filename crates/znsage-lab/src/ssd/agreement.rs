// SPDX-License-Identifier: GPL-2.0-only
//! Does the model's drive collect garbage as NVMeVirt's does, which others wrote? Both have
//! the same shape, the same past and the same load. Only flash writes are compared: threads
//! of NVMeVirt spin, so its rates are those of the machine.

use std::path::Path;

use super::{measure, Args, Measured, OnDrive, System, Turn, AREA_PERCENT, OUT};
use crate::result::Result;
use crate::table::Table;
use crate::vm;

/// Guest CPUs for NVMeVirt's threads, the last ones.
pub const CPUS: u32 = 2;

/// NVMeVirt's flash, in memory behind the first 4 GiB, and what it shows of that. Four
/// partitions of 256 lines each share it, page by page: a write of 2 MiB fills a line of
/// 512 KiB in each.
const FLASH_MIB: u64 = 512;
const SHOWN: u64 = (FLASH_MIB << 20) * 100 / 107;
const ZONE_KIB: u64 = 2048;

/// The model's superblock, a multiple of what its flash programs at once.
const SUPERBLOCK_KIB: u64 = 2016;

/// They should differ by no more than this.
const AGREE: f64 = 0.1;

/// Of vm/run, beside the usual ones.
pub fn options() -> Vec<String> {
    let first = super::CPUS;
    [
        "--memory=3G",
        &format!("--kernel-argument=memmap={}M$4G", FLASH_MIB + 1),
        &format!("--kernel-argument=isolcpus={first}-{}", first + CPUS - 1),
    ]
    .map(String::from)
    .to_vec()
}

pub fn run(args: &Args, module: &Path) -> Result<bool> {
    let module = module.canonicalize().map_err(|e| format!("{}: {e}", module.display()))?;
    let size = SHOWN >> 20;
    let model = format!("model=conventional,size={size}M,superblock={SUPERBLOCK_KIB}K");
    let drives = (model, String::new());
    let columns = ["accesses, area used", "system", "NVMeVirt", "model", "model / NVMeVirt"];
    let (mut table, mut agree) = (Table::new(&columns), true);
    for &pattern in &args.patterns {
        for &percent in &args.levels {
            for system in [System::Stock, System::Virtual] {
                let on = |nvmevirt: Option<String>, zone_kib: u64| {
                    let used = SHOWN * AREA_PERCENT / 100 * percent / 100;
                    let on = OnDrive { drive: SHOWN, zone_kib, nvmevirt, ..OnDrive::new(system) };
                    let turn = Turn {
                        on,
                        pattern,
                        used,
                        rewrites: args.rewrites,
                        compressible: 0.0,
                        write_ratio: args.write_ratio,
                    };
                    eprintln!("[{}, {} {percent} %]", system.title(), pattern.name());
                    measure(Path::new(OUT), vm::KERNEL, &turn, &drives)
                };
                let theirs = on(Some(module.to_string_lossy().into_owned()), ZONE_KIB)?;
                let ours = on(None, SUPERBLOCK_KIB)?;
                let a_page = |measured: &Measured| measured.flash.a_page();
                let ratio = a_page(&ours) / a_page(&theirs);
                agree &= (ratio - 1.0).abs() <= AGREE;
                table.row([
                    format!("{}, {percent} %", pattern.name()),
                    system.title().to_string(),
                    format!("{:.2}", a_page(&theirs)),
                    format!("{:.2}", a_page(&ours)),
                    format!("{ratio:.2}"),
                ]);
            }
        }
    }
    println!("Flash writes for each page swapped out:\n\n{}", table.to_text());
    Ok(agree)
}
