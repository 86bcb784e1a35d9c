// SPDX-License-Identifier: GPL-2.0-only
//! What a device may hold when it is turned on, and the names it may be given.

use std::cell::Cell;

use super::machine::*;
use crate::error::Kind;
use crate::sys::Ran;
use crate::zones::State;

/// What others left is refused, then wiped with consent, and then nothing is left to
/// ask about.
#[test]
fn on_off_on_over_all_formats() {
    let formats = [
        "ext4",
        "btrfs",
        "LVM2_member",
        "linux_raid_member",
        "crypto_LUKS",
        "gpt",
        "dos",
        "swap",
        "swsuspend",
    ];
    for (format, zoned) in formats.into_iter().flat_map(|f| [(f, true), (f, false)]) {
        let fake = machine();
        if zoned {
            let mut zones = vec![zone(State::Empty); 64];
            zones[0].sequential = false;
            set_zones(&fake, zones);
            fake.put("/sys/block/nvme1n1/queue/chunk_sectors", "8192\n");
        } else {
            fake.put("/sys/block/nvme1n1/queue/zoned", "none\n");
        }
        let there = Cell::new(true);
        fake.on_run(move |fake, argv| match argv {
            ["wipefs", "--json", _] if there.get() => {
                let found = format!(r#"{{"offset":"0x400","type":"{format}"}}"#);
                let stdout = format!(r#"{{"signatures":[{found}]}}"#);
                Ran { status: Some(0), stdout, stderr: String::new() }
            }
            ["wipefs", "--json", _] => ended(0, ""),
            ["wipefs", ..] => {
                there.set(false);
                ended(0, "")
            }
            _ => program(fake, argv),
        });
        let what = format!("{format}, zoned: {zoned}");
        let e = run(&fake, "on /dev/nvme1n1").expect_err(&what);
        assert_eq!((e.kind, e.message.contains(format)), (Kind::Data, true), "{what}");
        let on = run(&fake, "on /dev/nvme1n1 --yes").unwrap();
        assert!(on.text.contains(&format!("a signature of `{format}`: wiped\n")), "{}", on.text);
        run(&fake, "off").unwrap();
        let again = run(&fake, "on /dev/nvme1n1").expect(&what);
        assert!(again.json["lost"].is_null(), "{what}");
    }
}

/// A device or partition that another one is above is never taken.
#[test]
fn what_is_in_use_is_refused() {
    for holder in ["dm-0", "md127", "loop0", "bcache0"] {
        let fake = machine();
        fake.put_dir(&format!("/sys/block/nvme1n1/holders/{holder}"));
        for line in ["on /dev/nvme1n1", "on /dev/nvme1n1 --yes"] {
            let e = run(&fake, line).unwrap_err();
            assert_eq!((e.kind, e.message.contains(holder)), (Kind::Busy, true), "{}", e.message);
        }
    }
}

/// A node may be anywhere and have any name.
#[test]
fn paths_may_be_relative() {
    let fake = machine();
    let here = std::env::current_dir().unwrap().to_string_lossy().into_owned();
    add_block(&fake, &format!("{here}/node"), 1);
    fake.put(&format!("{here}/x.ko"), "vermagic=6.12.0-test SMP\n");
    fake.env.borrow_mut().insert("ZNSAGE_MODULE".into(), "x.ko".into());
    for line in ["on ./node", "set ./node deadline=900us", "status ./node", "off ./node"] {
        run(&fake, line).unwrap_or_else(|e| panic!("{line}: {}", e.to_text()));
    }
    let effects = fake.effects.borrow();
    assert!(effects.contains(&format!("run insmod {here}/x.ko")), "{effects:?}");
}
