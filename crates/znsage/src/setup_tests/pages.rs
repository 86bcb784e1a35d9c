// SPDX-License-Identifier: GPL-2.0-only
//! Machines with pages of 16 and 64 KiB.

use super::machine::*;
use crate::error::Kind;
use crate::sys::Sys;

const PAGES: [u64; 3] = [PAGE, 16 << 10, 64 << 10];

/// The module takes sizes in whole pages.
#[test]
fn sizes_are_whole_pages() {
    for page in PAGES {
        for (option, bytes, why) in [
            ("--write-unit", page / 2, "are not a multiple of the page"),
            ("--chunk", page * 3 / 2, "are not a multiple of the page"),
            ("--size", page * 9, "are too few"),
        ] {
            let fake = machine();
            let line = format!("on /dev/nvme1n1 {option} {bytes}");
            let e = run_with_pages(&fake, &line, page).expect_err(&line);
            assert_eq!((e.kind, e.message.contains(why)), (Kind::Device, true), "{}", e.message);
            assert!(!fake.exists(&format!("{CONFIG}/nvme1n1")), "{line}");
        }
        let fake = machine();
        let line = format!("on /dev/nvme1n1 --write-unit {page} --chunk {} --size 40M", page * 2);
        run_with_pages(&fake, &line, page).unwrap();
        let chunk = fake.read(&format!("{CONFIG}/nvme1n1/chunk")).unwrap();
        assert_eq!(chunk.trim(), (page * 2).to_string());
    }
}

/// What every path takes is rarely a multiple of large pages.
#[test]
fn chunks_fit_through_narrow_paths() {
    for (page, want) in PAGES.into_iter().zip([200_704, 196_608, 196_608]) {
        let fake = machine();
        fake.put("/sys/block/nvme1n1/queue/zone_append_max_bytes", "4194304\n");
        fake.put("/sys/block/nvme1c0n1/hidden", "1\n");
        fake.put("/sys/block/nvme1c0n1/queue/zone_append_max_bytes", "200704\n");
        run_with_pages(&fake, "on /dev/nvme1n1", page).unwrap();
        let chunk = fake.read(&format!("{CONFIG}/nvme1n1/chunk")).unwrap();
        assert_eq!(chunk.trim(), want.to_string(), "{page}");
    }
}

/// The map, what is counted in pages, and the limit that doctor recommends.
#[test]
fn counts_are_in_pages() {
    for page in PAGES {
        let fake = well();
        let plan = run_with_pages(&fake, "on /dev/nvme1n1 --dry-run", page).unwrap();
        assert_eq!(plan.json["map_bytes"], 5 * 256 * MIB / page);
        run_with_pages(&fake, "on /dev/nvme1n1", page).unwrap();
        add_details(&fake);
        let status = run_with_pages(&fake, "status", page).unwrap();
        assert_eq!(status.json["devices"][0]["written_bytes"], 20000 * page);
        let doctor = run_with_pages(&fake, "doctor", page).unwrap();
        let best = format!("{} are best", crate::units::size(32 * page));
        assert_eq!(doctor.text.contains(&best), page > PAGE, "{}", doctor.text);
    }
}
