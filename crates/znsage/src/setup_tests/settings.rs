// SPDX-License-Identifier: GPL-2.0-only
//! znsage.conf: its keys, its limits and the example in dist.

use clap::Parser;

use super::machine::*;
use crate::cli::{Cli, Command, On, OnArgs, OnCommand};
use crate::conf::{self, Conf};
use crate::sys::Sys;

fn read(text: &str) -> Conf {
    let fake = machine();
    fake.put("/etc/znsage.conf", text);
    conf::read(&fake)
}

#[test]
fn keys_are_the_options_of_on() {
    let options = "--size 100M --zone-size 4M --over-provisioning 7 --policy my-own --victim age --chunk 64K \
                   --write-unit 32K --priority 5 --deadline 500us --reserve 3 --stripe 2 --pace 40 \
                   --gc-low 6 --gc-high 9 \
                   --encrypt aes-xts --compress zstd --keep-slots --no-discard --force";
    let mut text = "[all]\ndevice = /dev/disk/by-id/nvme-x\n".to_string();
    for option in options.split("--").filter(|o| !o.is_empty()) {
        let (key, value) = option.trim().split_once(' ').unwrap_or((option.trim(), "yes"));
        text += &format!("{key}={value}\n");
    }
    let words = ["znsage", "on", "/dev/disk/by-id/nvme-x"].into_iter();
    let command = Cli::try_parse_from(words.chain(options.split_whitespace())).unwrap().command;
    let Command::On(On { command: OnCommand::Device(want), .. }) = command else { unreachable!() };
    let conf = read(&text);
    assert_eq!(format!("{:?}", conf.section("all").unwrap()), format!("{want:?}"), "{conf:?}");

    let debug = format!("{want:?}");
    assert!(!debug.contains("None") && !debug.contains("false"), "an option is missing: {debug}");
    let plain = read("[a]\ndevice=/dev//nvme1n1/\nforce = no\n");
    let want = format!("{:?}", OnArgs::plain("/dev/nvme1n1"));
    assert_eq!(format!("{:?}", plain.section("a").unwrap()), want);
}

#[test]
fn bytes_that_are_not_text_cost_only_their_section() {
    let fake = machine();
    let text =
        b"# caf\xe9\n[a] # swap\ndevice = /dev/sda\n[b]\ndevice = /dev/sdb\npolicy = h\xe9at\n";
    std::fs::create_dir_all(fake.at("/etc")).unwrap();
    std::fs::write(fake.at("/etc/znsage.conf"), text).unwrap();
    let conf = conf::read(&fake);
    let faults: Vec<String> = conf.faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults, ["/etc/znsage.conf:6: `policy = h\u{fffd}at` is not UTF-8"]);
    assert!(conf.section("a").is_ok() && conf.section("b").is_err());
    assert_eq!(conf.sections.len(), 2);
}

/// A longer path would make the generator fail for all sections.
#[test]
fn device_paths_fit_into_unit_names() {
    let faults = |length: usize| {
        let name = "x".repeat(length);
        read(&format!("[a]\ndevice = /dev/{name}\n")).faults
    };
    assert_eq!(faults(249 - "dev-.device".len()), []);
    let faults = faults(250 - "dev-.device".len());
    assert!(faults[0].to_string().contains(":2: device: /dev/xxx"), "{faults:?}");
}

#[test]
fn example_has_all_keys_and_is_valid_without_its_comment_marks() {
    let text = include_str!("../../../../dist/znsage.conf");
    assert!(read(text).sections.is_empty(), "all of it is commented out");
    let text: String = (text.lines())
        .map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line))
        .fold(String::new(), |text, line| text + line + "\n");
    let conf = read(&text);
    assert_eq!(conf.faults, []);
    let args = format!("{:?}", conf.section("swap").unwrap());
    assert!(!args.contains("None") && !args.contains("false"), "{args}");
}
