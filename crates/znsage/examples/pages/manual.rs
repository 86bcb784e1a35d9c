// SPDX-License-Identifier: GPL-2.0-only
//! The manual page of a command: clap's sections, the parts of its help that stand
//! below the options, and examples, files, exit statuses and other pages.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;
use roff::{bold, roman, Roff};

/// System administration.
pub const SECTION: &str = "8";

/// Examples of a page: what to type, and what it does.
const EXAMPLES: [(&str, &[[&str; 2]]); 16] = [
    (
        "znsage",
        &[
            ["znsage on /var/lib/znsage.swap --size 16G", "Make a swap file and swap to it."],
            ["znsage list --all", "Which devices can be used for swap?"],
            ["znsage off", "Read everything back, and release it."],
        ],
    ),
    (
        "znsage-on",
        &[
            ["znsage on /var/lib/znsage.swap --size 16G", "Make a swap file and swap to it."],
            ["znsage on /dev/nvme1n1", "Swap to this device."],
            [
                "znsage on --compress lz4 --encrypt aes-xts /dev/nvme1n1",
                "Compress and encrypt pages.",
            ],
            ["znsage on --config swap", "As the section swap of /etc/znsage.conf says."],
        ],
    ),
    ("znsage-off", &[["znsage off", "All devices."], ["znsage off /dev/nvme1n1", "One device."]]),
    (
        "znsage-list",
        &[
            ["znsage list", "All zoned devices."],
            [
                "znsage list -n -b -o DEVICE,SIZE /dev/nvme1n1",
                "For a script: path and size in bytes.",
            ],
        ],
    ),
    ("znsage-doctor", &[["znsage doctor", "What is wrong, and what to do?"]]),
    (
        "znsage-status",
        &[
            ["znsage status", "Counters, latencies and zones of all devices."],
            ["znsage status -o NAME,SIZE,USED,WAF", "Only these columns."],
            ["znsage status --prometheus", "For node_exporter's textfile collector."],
        ],
    ),
    (
        "znsage-top",
        &[["znsage top --interval 5", "A new sample every five seconds; ? explains the screen."]],
    ),
    ("znsage-set", &[["znsage set policy=heat pace=50", "If one device is on."]]),
    ("znsage-policy", &[["znsage policy load mine.bpf.o", "Load a policy in BPF."]]),
    ("znsage-policy-load", &[["znsage policy load mine.bpf.o", "Load a policy in BPF."]]),
    ("znsage-policy-unload", &[["znsage policy unload mine", "Unload it."]]),
    (
        "znsage-guard",
        &[["znsage guard znsage0", "If `znsage doctor` says that its guard is gone."]],
    ),
    ("znsage-check", &[["znsage check", "Walk the maps of all devices."]]),
    (
        "znsage-bench",
        &[["znsage bench --size 1G --memory-limit 256M --pattern zipf", "Swap 768 MiB of 1 GiB."]],
    ),
    (
        "znsage-estimate",
        &[["znsage estimate 1234", "How far would the pages of this process shrink?"]],
    ),
    (
        "znsage-probe",
        &[["znsage probe --profile nvme.conf /dev/nvme1n1", "Destroys all data on the device."]],
    ),
];

const FILES: [[&str; 2]; 4] = [
    ["/etc/znsage.conf", "Devices that are swap after every start: znsage.conf(5)."],
    ["/sys/block/znsageN/znsage/", "Counters and settings of a device that is on."],
    ["/sys/kernel/debug/znsage/znsageN/zones", "Every zone, for root."],
    ["/run/znsage/", "What `on` must undo at `off`."],
];

pub fn write(command: Command, to: &mut dyn Write) -> io::Result<()> {
    let name = command.get_name().to_string();
    let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_commands = command.has_subcommands();
    let page = Man::new(command)
        .section(SECTION)
        .source(concat!("znsage ", env!("CARGO_PKG_VERSION")))
        .manual("znsage");
    page.render_title(to)?;
    page.render_name_section(to)?;
    page.render_synopsis_section(to)?;
    page.render_description_section(to)?;
    page.render_options_section(to)?;
    if has_commands {
        page.render_subcommands_section(to)?;
    }
    let mut rest = Roff::new();
    help(&mut rest, &below);
    if let Some((_, examples)) = EXAMPLES.iter().find(|(page, _)| *page == name) {
        rest.control("SH", ["EXAMPLES"]);
        examples.iter().for_each(|example| item(&mut rest, example));
    }
    rest.control("SH", ["FILES"]);
    FILES.iter().for_each(|file| item(&mut rest, file));
    if name != "znsage" {
        rest.control("SH", ["EXIT STATUS"]);
        rest.text([roman("0 if nothing is wrong; znsage(8) lists the others.")]);
    }
    rest.control("SH", ["SEE ALSO"]);
    rest.text([roman("znsage(8), znsage.conf(5), znsage-doctor(8), swapon(8), zramctl(8)")]);
    rest.control("PP", []);
    rest.text([roman("/usr/share/doc/znsage/")]);
    rest.to_writer(to)
}

fn item(page: &mut Roff, [what, means]: &[&str; 2]) {
    page.control("TP", []);
    page.text([bold(*what)]);
    page.text([roman(*means)]);
}

/// Parts of the help such as "Exit status:", whose indented lines stay as they are.
fn help(page: &mut Roff, text: &str) {
    for part in text.split("\n\n") {
        match part.split_once(":\n") {
            Some((title, lines)) if lines.lines().all(|line| line.starts_with(' ')) => {
                page.control("SH", [title.to_uppercase().as_str()]);
                page.control("nf", []);
                page.text([roman(lines)]);
                page.control("fi", []);
            }
            _ if part.is_empty() => {}
            _ => {
                page.control("PP", []);
                page.text([roman(part)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_commands() {
        for [line, _] in EXAMPLES.iter().flat_map(|(_, examples)| *examples) {
            let words = shlex::split(line).unwrap();
            znsage::parsers::grammar().try_get_matches_from(words).unwrap();
        }
    }

    #[test]
    fn tables_keep_their_lines() {
        let mut page = Roff::new();
        help(&mut page, "Exit status:\n  0  done\n  1  damage\n\nA sentence.");
        let text = page.to_roff();
        assert!(text.contains(".SH \"EXIT STATUS\"\n.nf\n  0  done\n  1  damage\n.fi\n"), "{text}");
        assert!(text.contains(".PP\nA sentence."), "{text}");
    }
}
