// SPDX-License-Identifier: GPL-2.0-only
//! Parameter files: the built-in ones, and errors of bad ones.

use crate::common;

use common::{fill_zone, set};
use znsage_sim::device::params::Interface;
use znsage_sim::device::{ConventionalSsd, Params, ZnsSsd};
use znsage_sim::time::{to_us, SEC};

/// A complete file to spoil: the ZN540's.
fn text() -> String {
    Params::text("zn540").unwrap().to_string()
}

/// The error for a file in which `from` was replaced by `to`.
fn refusal(from: &str, to: &str) -> String {
    let text = text();
    assert_eq!(text.matches(from).count(), 1, "{from}");
    let error = Params::parse("my.toml", &text.replace(from, to), &[]).unwrap_err();
    error.to_string()
}

/// The line of the ZN540's file that begins with `start`.
fn line(start: &str) -> usize {
    text().lines().position(|line| line.starts_with(start)).unwrap() + 1
}

#[test]
fn every_built_in_set_makes_a_device() {
    let names: Vec<_> = Params::names().collect();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        let params = Params::load(name, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(params.name, name);
        assert!(!params.about.is_empty());
        match params.interface {
            Interface::Zoned => {
                let ssd = ZnsSsd::new(&params, None, 1).unwrap();
                assert!(ssd.geometry().zones > 0);
                ConventionalSsd::new(&params, None, 1).unwrap_err();
            }
            Interface::Conventional => {
                let ssd = ConventionalSsd::new(&params, Some(1 << 30), 1).unwrap();
                assert_eq!(ssd.blocks(), 1 << 18);
                ZnsSsd::new(&params, None, 1).unwrap_err();
            }
        }
    }
}

#[test]
fn huge_parameters_are_refused() {
    for (from, to, key) in [
        ("dies = 32 ", "dies = 4000000000 ", "media.dies"),
        ("waiting_writes = 84", "waiting_writes = 4000000000", "controller.waiting_writes"),
    ] {
        let what = refusal(from, to);
        assert!(what.contains(key) && what.contains("65536"), "{what}");
    }
    let set = [("zoned.zones".to_string(), "4000000000".to_string())];
    let params = Params::load("zn540", &set).unwrap();
    assert!(ZnsSsd::new(&params, None, 1).is_err());
}

/// Latency of a read of 4 KiB and rate of writes of 1 MiB, us and MB/s.
fn speed(name: &str) -> (f64, f64) {
    let mut ssd = ZnsSsd::new(&Params::load(name, &[]).unwrap(), Some(4 << 30), 1).unwrap();
    let full = fill_zone(&mut ssd, 0, 0, 1.0);
    let rate = f64::from(ssd.geometry().zone_blocks) * 4096.0 / full as f64 * 1e3;
    let now = full + SEC;
    (to_us(ssd.read(now, 0, 0, 1).unwrap() - now), rate)
}

#[test]
fn fast_is_faster_and_slow_is_slower() {
    let (fast, middle, slow) = (speed("fast"), speed("zn540"), speed("slow"));
    println!("us a read, MB/s: fast {fast:?}, zn540 {middle:?}, slow {slow:?}");
    assert!(fast.0 * 4.0 < middle.0 && middle.0 < slow.0);
    assert!(fast.1 > 2.0 * middle.1 && middle.1 > 2.0 * slow.1);
}

#[test]
fn every_key_is_explained() {
    let readme = include_str!("../devices/README.md");
    for name in Params::names() {
        let mut table = String::new();
        for line in Params::text(name).unwrap().lines() {
            if line.starts_with('[') {
                table = format!("{}.", line.trim_matches(['[', ']']));
            } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#'))
            {
                assert!(readme.contains(&format!("`{table}{key}`")), "{name}: {table}{key}");
            }
        }
    }
    for name in Params::names() {
        assert!(readme.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn every_value_has_its_source() {
    for name in Params::names() {
        let text = Params::text(name).unwrap();
        // The marks explained at the head of the file.
        let known: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("#   [")?.split_once(']'))
            .map(|(mark, _)| mark)
            .collect();
        for (i, line) in text.lines().enumerate() {
            let Some((key, rest)) = line.split_once(" = ") else { continue };
            if line.starts_with('#') || ["base", "name", "about", "interface"].contains(&key) {
                continue;
            }
            let comment = rest.split_once("# [").map(|(_, comment)| comment);
            let mark = comment.and_then(|c| c.split_once(']')).map(|(mark, _)| mark);
            assert!(
                mark.is_some_and(|mark| known.contains(&mark)),
                "{name}.toml:{}: {key} has no source of {known:?}",
                i + 1
            );
        }
    }
}

#[test]
fn a_copy_of_a_file_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    let text = text().replace("zones = 904", "zones = 12").replace("\"zn540\"", "\"mine\"");
    std::fs::write(&path, text).unwrap();
    let mine = Params::load(path.to_str().unwrap(), &[]).unwrap();
    assert_eq!((mine.name.as_str(), mine.zoned.unwrap().zones), ("mine", 12));
    let missing = dir.path().join("none.toml").to_str().unwrap().to_string();
    let error = Params::load(&missing, &[]).unwrap_err().to_string();
    assert!(error.starts_with(&missing) && error.contains("No such file"), "{error}");
}

#[test]
fn unknown_names_list_the_known() {
    let error = Params::load("zn541", &[]).unwrap_err().to_string();
    for name in Params::names() {
        assert!(error.contains(name), "{error}");
    }
    let error = refusal("channels = ", "chanels = ");
    let at = line("[media]");
    assert!(
        error.starts_with(&format!("my.toml:{}: media.chanels: unknown field", at + 1)),
        "{error}"
    );
    assert!(error.contains("channels"), "{error}");
}

/// Impossible parameters, with the key and line of the error.
#[test]
fn impossible_devices_are_refused() {
    for (from, to, key, what) in [
        (
            "zone_capacity = \"1077 MiB\"",
            "zone_capacity = \"3 GiB\"",
            "zoned.zone_capacity",
            "3 GiB is more than the zone size, 2 GiB",
        ),
        (
            "write_unit = \"4 KiB\"",
            "write_unit = \"20 KiB\"",
            "zoned.write_unit",
            "20 KiB does not divide the zone capacity, 1077 MiB",
        ),
        (
            "write_unit = \"4 KiB\"",
            "write_unit = 512",
            "zoned.write_unit",
            "512 bytes is not a multiple of 4 KiB",
        ),
        ("zones = 904", "zones = 0", "zoned.zones", "must be more than 0"),
        ("zones = 904", "zones = -1", "zoned.zones", "invalid value: integer `-1`"),
        ("max_open = 14", "max_open = 15", "zoned.max_open", "15 is more than max_active, 14"),
        ("max_open = 14", "max_open = 0", "zoned.max_open", "no limit is more than max_active, 14"),
        (
            "max_append = \"1 MiB\"",
            "max_append = \"2 GiB\"",
            "zoned.max_append",
            "2 GiB is more than a zone holds, 1077 MiB",
        ),
        (
            "max_append = \"1 MiB\"",
            "max_append = \"1 MeB\"",
            "zoned.max_append",
            "\"1 MeB\" is no size",
        ),
        ("max_append = \"1 MiB\"", "max_append = true", "zoned.max_append", "expected a size"),
        (
            "dies_per_zone = 32",
            "dies_per_zone = 33",
            "zoned.dies_per_zone",
            "must be from 1 to the number of dies, 32",
        ),
        ("channels = 8 ", "channels = 64 ", "media.dies", "32 dies cannot be on 64 channels"),
        ("page = \"16 KiB\"", "page = \"6 KiB\"", "media.page", "not a multiple of 4 KiB"),
        ("program_us = 2400", "program_us = 0", "media.program_us", "must be more than 0"),
        ("program_us = 2400", "program_us = -1", "media.program_us", "no number of microseconds"),
        ("program_us = 2400", "program_us = \"2 ms\"", "media.program_us", "invalid type: string"),
        (
            "buffer = \"6 MiB\"",
            "buffer = \"64 KiB\"",
            "controller.buffer",
            "64 KiB does not hold what one program operation writes, 96 KiB",
        ),
        (
            "early_completion = true",
            "early_completion = 1",
            "controller.early_completion",
            "invalid type: integer `1`, expected a boolean",
        ),
        ("reset_us = [[0, 1610]", "reset_us = [[0.1, 1610]", "zoned.reset_us", "at 0"),
        ("reset_us = [[0, 1610]", "reset_us = [[0, 1610], [0.9, 1]", "zoned.reset_us", "in order"),
        ("reset_us = [[0, 1610]", "reset_us = [[0, \"x\"]", "zoned.reset_us", "invalid type"),
    ] {
        let error = refusal(from, to);
        let start = format!("{} = ", key.split_once('.').unwrap().1);
        let prefix = format!("my.toml:{}: {key}", line(&start));
        assert!(error.starts_with(&prefix), "{error}\n{prefix}");
        assert!(error.contains(what), "{error}\n{what}");
    }
}

#[test]
fn missing_keys_are_named_with_their_table() {
    let error = refusal("zones = 904", "# zones = 904");
    assert!(
        error.starts_with(&format!("my.toml:{}: zoned: missing field `zones`", line("[zoned]"))),
        "{error}"
    );
    let error = refusal("interface = \"zoned\"", "interface = \"conventional\"");
    assert!(error.starts_with(&format!("my.toml:{}: interface: ", line("interface"))), "{error}");
    let error = refusal("interface = \"zoned\"", "interface = \"floppy\"");
    assert!(
        error.contains("unknown variant `floppy`, expected `zoned` or `conventional`"),
        "{error}"
    );
}

#[test]
fn toml_errors_name_their_line() {
    let error = refusal("channels = 8 ", "channels 8 ");
    assert!(error.starts_with(&format!("my.toml:{}: ", line("channels"))), "{error}");
    let error = refusal("channels = 8 ", "dies = 8 ");
    assert!(error.contains("duplicate key"), "{error}");
}

#[test]
fn values_are_replaced_by_key() {
    let pairs = set(&[
        ("zoned.zones", "64"),
        ("media.page", "32 KiB"),
        ("controller.early_completion", "false"),
        ("zoned.reset_us", "[[0, 1], [1, 2.5]]"),
    ]);
    let params = Params::load("zn540", &pairs).unwrap();
    let zoned = params.zoned.unwrap();
    assert_eq!((zoned.zones, params.media.page), (64, 32 << 10));
    assert!(!params.controller.early_completion);
    assert_eq!(zoned.reset_us, [(0.0, 1.0), (1.0, 2.5)]);
    for (key, value, says) in [
        ("zoned.zones", "0", "set on the command line: zoned.zones: must be more than 0"),
        ("zoned.zons", "5", "set on the command line: zoned.zons: unknown field"),
        ("zone.zones", "5", "set on the command line: zone.zones: no such key"),
        ("zoned.max_open", "20", "set on the command line: zoned.max_open: 20 is more"),
    ] {
        let error = Params::load("zn540", &set(&[(key, value)])).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
    // A conflict with a value of the file names its line there.
    let error = Params::load("zn540", &set(&[("zoned.max_active", "3")])).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("zn540", Some(line("max_open"))));
}

#[test]
fn a_file_may_leave_out_how_appends_are_made() {
    let text = text();
    let without: Vec<_> = text.lines().filter(|l| !l.starts_with("emulated_append")).collect();
    let params = Params::parse("my.toml", &without.join("\n"), &[]).unwrap();
    assert!(!params.zoned.unwrap().emulated_append);
    let pairs = set(&[("zoned.emulated_append", "true")]);
    assert!(Params::load("zn540", &pairs).unwrap().zoned.unwrap().emulated_append);
    let error = refusal("emulated_append = false", "emulated_append = \"yes\"");
    let prefix = format!("my.toml:{}: zoned.emulated_append", line("emulated_append"));
    assert!(error.starts_with(&prefix) && error.contains("expected a boolean"), "{error}");
}

#[test]
fn a_file_can_be_based_on_a_built_in_one() {
    let base = "base = \"zn540\"\nname = \"mine\"\n";
    let text = format!("{base}[media]\nread_us = 20\n");
    let params = Params::parse("my.toml", &text, &[]).unwrap();
    assert_eq!((params.name.as_str(), params.media.read), ("mine", 20_000));
    assert_eq!(params.media.dies, 32);
    let refuse = |text: &str| Params::parse("my.toml", text, &[]).unwrap_err().to_string();
    // Errors name the line in the file, or in the base.
    let error = refuse(&format!("{base}[zoned]\n\nzones = 0\n"));
    assert!(error.starts_with("my.toml:5: zoned.zones"), "{error}");
    let error = refuse(&format!("{base}[zoned]\nmax_active = 3\n"));
    assert!(error.starts_with(&format!("zn540:{}: zoned.max_open", line("max_open"))), "{error}");
    let error = refuse(&format!("{base}[media]\nreed_us = 20\n"));
    assert!(error.starts_with("my.toml:4: media.reed_us: unknown field"), "{error}");
    let error = refuse("base = \"zn541\"\n");
    assert!(error.starts_with("my.toml:1: base: must be one of zn540"), "{error}");
}

#[test]
fn size_sets_the_number_of_zones_or_blocks() {
    let zoned = Params::load("zn540", &[]).unwrap();
    let of = |size| ZnsSsd::new(&zoned, Some(size), 1).map(|ssd| ssd.geometry().zones);
    assert_eq!(of(1077 << 20).unwrap(), 1);
    assert_eq!(of(16 << 30).unwrap(), 15);
    let error = of((1077 << 20) - 1).unwrap_err().to_string();
    assert_eq!(error, "zn540: size: gives 0 zones of 1129316352 bytes");
    let conventional = Params::load("conventional", &[]).unwrap();
    let error = ConventionalSsd::new(&conventional, Some(1 << 20), 1).unwrap_err();
    assert_eq!(error.key, "conventional.over_provisioning");
    let full = ConventionalSsd::new(&conventional, Some(64 << 20), 1).unwrap();
    assert_eq!(full.blocks(), 64 << 8);
    let none = set(&[("conventional.over_provisioning", "0")]);
    let none = Params::load("conventional", &none).unwrap();
    assert!(ConventionalSsd::new(&none, None, 1).is_err());
}
