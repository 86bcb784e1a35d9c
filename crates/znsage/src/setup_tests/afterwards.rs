// SPDX-License-Identifier: GPL-2.0-only
//! `off`, `status` and `check` on a device that is on.

use super::machine::*;
use crate::error::Kind;
use crate::sys::Sys;
use crate::zones::State;

#[test]
fn off_knows_every_name_of_a_device() {
    for name in ["znsage0", "/dev/znsage0", "nvme1n1", "/dev/nvme1n1"] {
        let fake = machine();
        turn_on(&fake, &[]).unwrap();
        assert_eq!(turn_off(&fake, &[name]).unwrap().off.len(), 1, "{name}");
    }
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    let e = turn_off(&fake, &["znsage7"]).unwrap_err();
    assert_eq!(e.kind, Kind::Device);
    assert_eq!(e.hint.unwrap(), "there is: znsage0");
}

#[test]
fn off_without_devices_is_fine() {
    let report = turn_off(&machine(), &[]).unwrap();
    assert_eq!(report.to_text(), "no znsage device is on\n");
}

#[test]
fn off_tells_what_could_not_be_emptied() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    // Dead zones that no error has shown were so before, and not used.
    set_zones(&fake, [State::Written, State::Written, State::Dead].map(zone).to_vec());
    let report = turn_off(&fake, &[]).unwrap();
    assert_eq!(report.off[0].zones_not_empty, Some(2));
    assert_eq!(report.to_json()["off"][0]["zones_not_empty"], 2);
    let text = report.to_text();
    assert!(
        text.starts_with("znsage0 is off, but 2 zones of nvme1n1 could not be emptied\n"),
        "{text}"
    );
}

#[test]
fn off_needs_room_for_the_pages() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    fake.put("/proc/meminfo", "MemAvailable: 900 kB\n");
    let before = fake.snapshot();
    let e = turn_off(&fake, &[]).unwrap_err();
    assert_eq!(e.kind, Kind::Space);
    assert_eq!(
        e.message,
        "1000 KiB are swapped out, but only 900 KiB of memory and 0 B of other swap are free"
    );
    assert_eq!(fake.snapshot(), before);
    turn_off(&fake, &["--force"]).unwrap();
}

#[test]
fn other_swap_counts_as_room() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    fake.put("/proc/meminfo", "MemAvailable: 900 kB\n");
    let swaps = fake.read("/proc/swaps").unwrap();
    fake.put("/proc/swaps", &(swaps + "/dev/sda2 partition 2000 1800 -3\n"));
    turn_off(&fake, &[]).unwrap();
}

#[test]
fn a_failing_swapoff_leaves_everything_on() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    fake.on_run(|fake, argv| match argv[0] {
        "swapoff" => ended(4, "swapoff: /dev/znsage0: swapoff failed: Cannot allocate memory\n"),
        _ => program(fake, argv),
    });
    let before = fake.snapshot();
    let e = turn_off(&fake, &[]).unwrap_err();
    assert_eq!(e.kind, Kind::Kernel);
    assert!(e.message.contains("Cannot allocate memory"));
    assert_eq!(fake.snapshot(), before);
}

/// Another swapoff is at work; it is done after the `last` try, or never. As
/// swapoff says it to the second.
fn somebody_else_at_it(last: usize) -> crate::sys::fake::Fake {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    fake.on_run(move |fake, argv| {
        if argv[0] != "swapoff" {
            return program(fake, argv);
        }
        let tries = fake.effects.borrow().iter().filter(|e| e.starts_with("run swapoff")).count();
        if tries >= last {
            fake.put("/proc/swaps", NO_SWAP);
        }
        ended(255, "swapoff: /dev/znsage0: swapoff failed: Invalid argument\n")
    });
    fake
}

#[test]
fn a_swapoff_of_others_is_waited_for() {
    for last in [1, 2, 30] {
        let fake = somebody_else_at_it(last);
        assert!(turn_off(&fake, &[]).unwrap().module_unloaded, "{last}");
        assert!(!fake.exists("/sys/block/znsage0"), "{last}");
    }
    let fake = somebody_else_at_it(usize::MAX);
    let e = turn_off(&fake, &[]).unwrap_err();
    assert_eq!(e.kind, Kind::Kernel);
    assert!(e.message.ends_with("Invalid argument"), "{}", e.message);
    assert!(fake.exists("/sys/block/znsage0"));
}

#[test]
fn a_module_in_use_may_stay() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    fake.on_run(|fake, argv| match argv[0] {
        "rmmod" => ended(1, "rmmod: ERROR: Module znsage is in use\n"),
        _ => program(fake, argv),
    });
    let report = turn_off(&fake, &[]).unwrap();
    assert!(report.to_text().contains("the module stays loaded: rmmod: ERROR"));
}

#[test]
fn status_has_all_that_is_promised() {
    let fake = machine();
    let report = run_status(&fake, &[]).unwrap();
    assert_eq!(report.to_text(), "no znsage device is on\n");
    turn_on(&fake, &[]).unwrap();
    let report = run_status(&fake, &[]).unwrap();
    let json = report.to_json();
    let device = &json["devices"][0];
    for key in "name backing size_bytes policy slots_used live_blocks host_blocks gc_blocks \
                padding_blocks waf chunks zone_resets slots_freed read_errors write_errors \
                map_bytes chunk_bytes blocks_total utilization streams stalls"
        .split_whitespace()
    {
        assert!(!device[key].is_null(), "{key}");
    }
    for key in ["total", "empty", "open", "full", "retired", "unused"] {
        assert!(device["zones"][key].is_u64(), "{key}");
    }
    assert_eq!(device["waf"], 1.25);
    assert_eq!(device["utilization"], 0.25);
    assert_eq!(
        report.to_text(),
        "NAME     BACKING  POLICY  VICTIM     SIZE    USED    UTIL  ZONES  EMPTY       OUT    COPIED   WAF      MAP\n\
         znsage0  nvme1n1  cpu     -       225 MiB  64 MiB  25.0 %     64     40  78.1 MiB  15.6 MiB  1.25  512 KiB\n\
         \n\
         znsage0: encryption: off\n"
    );
}

/// What newer modules tell.
fn with_details() -> crate::sys::fake::Fake {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    for (file, text) in [
        ("victim", "age\n"),
        ("encrypt", "aes-xts\n"),
        ("gc_skipped_cached", "17\n"),
        ("read_blocks", "7000\n"),
        ("zones_dead", "3\n"),
        ("check", "never\n"),
        ("zone_states", "state zones\nempty 40\nfull 21\n"),
        ("live_histogram", "live_percent zones\n50 20\n100 1\n"),
        (
            "stream_table",
            "stream host_blocks read_blocks key\n0 19000 6000 0x0\n1 1000 1000 0xff\n",
        ),
        ("latency", "name count total_ns\nswap_in 4 400000\n"),
        ("latency_swap_in", "below_us count\n80 0\n96 3\n320 0\n384 1\ninf 0\n"),
        ("latency_gc", "below_us count\n1 0\ninf 0\n"),
    ] {
        fake.put(&format!("/sys/block/znsage0/znsage/{file}"), text);
    }
    fake
}

#[test]
fn status_shows_what_newer_modules_tell() {
    let fake = with_details();
    let json = run_status(&fake, &[]).unwrap().to_json();
    let device = &json["devices"][0];
    assert_eq!(device["victim"], "age");
    assert_eq!(device["encrypt"], "aes-xts");
    assert_eq!(device["gc_skipped_cached"], 17);
    assert_eq!(device["zones_dead"], 3);
    assert_eq!(device["read_blocks"], 7000);
    assert_eq!(device["stream_table"][0]["read_blocks"], 6000);
    assert!(device.get("check").is_none(), "it is no number");
    assert_eq!(device["streams"], 2, "the old field");
    assert_eq!(device["stream_table"][1]["key"], "0xff");
    assert_eq!(device["zone_states"]["full"], 21);
    assert_eq!(device["live_histogram"][0]["zones"], 20);
    let swap_in = &device["latency"]["swap_in"];
    assert_eq!(swap_in["count"], 4);
    assert_eq!(swap_in["mean_us"], 100.0);
    assert!(swap_in["p99_us"].as_f64().unwrap() > 320.0);
    assert_eq!(swap_in["buckets"][1], serde_json::json!([384, 1]));
}

#[test]
fn status_in_words_has_latencies_and_zones() {
    let fake = with_details();
    let text = run_status(&fake, &[]).unwrap().to_text();
    assert!(text.contains("LATENCY  COUNT    MEAN"), "{text}");
    assert!(text.contains("swap-in      4  100 us"), "{text}");
    assert!(!text.contains("gc   "), "nothing was timed:\n{text}");
    assert!(text.contains("znsage0: zones: 40 empty, 21 full\n"), "{text}");
    assert!(text.contains("znsage0: encryption: aes-xts\n"), "{text}");
    assert!(text.contains("in steps of 50 %: 20 1\n"), "{text}");
    assert!(!text.contains("STREAM"), "{text}");
    let text = run_status(&fake, &["--streams"]).unwrap().to_text();
    assert!(
        text.contains(
            "STREAM  HOST_BLOCKS  READ_BLOCKS   KEY\n     0        19000         6000   0x0\n"
        ),
        "{text}"
    );
}

#[test]
fn troubles_show_below_the_table() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    fake.put("/sys/block/znsage0/znsage/read_errors", "3\n");
    fake.put("/sys/block/znsage0/znsage/zones_retired", "1\n");
    let text = run_status(&fake, &[]).unwrap().to_text();
    assert!(text.ends_with("\nznsage0: read errors: 3, zones retired: 1\n"));
}

#[test]
fn waf_is_null_before_the_first_page() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    fake.put("/sys/block/znsage0/znsage/host_blocks", "0\n");
    let report = run_status(&fake, &[]).unwrap();
    assert!(report.to_json()["devices"][0]["waf"].is_null());
    assert!(report.to_text().contains("  -  "));
}

#[test]
fn counters_of_another_version_are_named() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    fake.put("/sys/block/znsage0/znsage/chunks", "many\n");
    let e = run_status(&fake, &[]).err().unwrap();
    assert!(e.message.contains("/sys/block/znsage0/znsage/chunks holds `many`"));
}

#[test]
fn check_counts_violations() {
    let fake = machine();
    assert_eq!(run_check(&fake).unwrap_err().kind, Kind::Device);
    turn_on(&fake, &[]).unwrap();
    fake.put("/sys/block/znsage0/znsage/check", "never\n");
    assert!(run_check(&fake).unwrap().clean());
    fake.put(CHECK_FINDS, "zone 3: live 5, counted 4\nslot 7: block 9 is not its own\n");
    let report = run_check(&fake).unwrap();
    assert!(!report.clean());
    assert_eq!(report.devices[0].1.len(), 2);
    assert!(report.to_text().starts_with("znsage0: 2 violations\n  zone 3"));
}

/// Counters of a device that went mad are shown all the same.
#[test]
fn counters_beyond_all_numbers_are_shown() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    let most = u64::MAX.to_string();
    for file in ["host_blocks", "gc_blocks", "padding_blocks", "slots_used", "live_blocks"] {
        fake.put(&format!("/sys/block/znsage0/znsage/{file}"), &most);
    }
    let report = run_status(&fake, &[]).unwrap();
    assert_eq!(report.to_json()["devices"][0]["waf"], 3.0);
    assert!(report.to_text().contains("16 EiB"), "{}", report.to_text());
}

#[test]
fn areas_beyond_all_numbers_are_room() {
    let fake = machine();
    turn_on(&fake, &[]).unwrap();
    let most = u64::MAX >> 10;
    let area = |name| format!("/dev/{name} partition {most} 0 -2\n");
    let ours = fake.read("/proc/swaps").unwrap();
    fake.put("/proc/swaps", &format!("{ours}{}{}", area("sda1"), area("sdb1")));
    fake.put("/proc/meminfo", &format!("MemAvailable: {most} kB\n"));
    turn_off(&fake, &[]).unwrap();
}
