// SPDX-License-Identifier: GPL-2.0-only
//! The manual page of znsage.conf. It takes keys and explanations from the options
//! of `znsage on`.

use std::io;
use std::path::Path;

use clap::{Arg, ArgAction};
use roff::{bold, italic, roman, Inline, Roff};

/// File formats.
const SECTION: &str = "5";
pub const FILE: &str = "znsage.conf.5";

const EXAMPLE: &str = "\
[swap]
device = /var/lib/znsage.swap
size = 16G
priority = 10
policy = heat
";

const FORMAT: &str = "\
A section is a device, or a swap file. Its name, of letters, digits, - and _, is that of the service, \
znsage@NAME.service. Each key is the option of znsage on with that name, and has the same units, \
limits and default; an empty value restores the default. A comment begins with # or ;, on a line \
of its own or after the name of a section.";

const FILES: &str = "\
znsage reads the first of /etc/znsage.conf, /run/znsage.conf and /usr/lib/znsage.conf, and then all \
znsage.conf.d/*.conf in these places, in the order of their names. If two files have the same \
name, /etc overrides /run, which overrides /usr/lib; an empty file or a link to /dev/null masks \
the others. Settings in later files override earlier ones key by key.";

const SERVICES: &str = "\
znsage-generator makes the services when the machine starts and at systemctl daemon-reload, \
which is needed after a change. A service starts before swap.target, or later when the device \
appears. If the device is missing, it waits 90 s and fails, or with nofail = yes does neither. It \
stops when the machine stops, and when znsage off turns the device off. A section with a mistake \
has a service that fails with file and line; znsage doctor checks all of them.";

pub fn write(directory: &Path) -> io::Result<()> {
    let mut page = Roff::new();
    page.control("TH", ["znsage.conf", SECTION, "", concat!("znsage ", env!("CARGO_PKG_VERSION"))]);
    page.control("SH", ["NAME"]);
    page.text([roman("znsage.conf - devices and files that are swap after every start")]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([roman("/etc/znsage.conf, /etc/znsage.conf.d/*.conf")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(FORMAT)]);
    page.control("PP", []);
    page.text([roman(FILES)]);
    page.control("SH", ["KEYS"]);
    let grammar = znsage::parsers::section();
    for key in grammar.get_arguments() {
        page.control("TP", []);
        page.text(head(key));
        page.text([roman(meaning(key))]);
    }
    page.control("SH", ["SERVICES"]);
    page.text([roman(SERVICES)]);
    page.control("SH", ["EXAMPLE"]);
    page.control("nf", []);
    page.text([roman(EXAMPLE)]);
    page.control("fi", []);
    page.control("SH", ["SEE ALSO"]);
    page.text(
        ["znsage(8)", "znsage-on(8)", "znsage-doctor(8)", "systemd.special(7)"]
            .map(|page| roman(format!("{page} "))),
    );
    page.to_writer(&mut io::BufWriter::new(std::fs::File::create(directory.join(FILE))?))
}

/// `size = SIZE`.
fn head(key: &Arg) -> Vec<Inline> {
    let name = key.get_long().unwrap_or(key.get_id().as_str());
    let value = match (key.get_action(), key.get_value_names()) {
        (ArgAction::SetTrue, _) => "yes|no".to_string(),
        (_, Some(names)) if key.get_long().is_some() => names.join(" "),
        _ => "PATH".to_string(),
    };
    vec![bold(name), roman(" = "), italic(value)]
}

fn meaning(key: &Arg) -> String {
    let mut text =
        key.get_long_help().or(key.get_help()).map(ToString::to_string).unwrap_or_default();
    let words = |values: Vec<String>| values.join(", ");
    let allowed: Vec<String> =
        key.get_possible_values().iter().map(|v| v.get_name().to_string()).collect();
    if !allowed.is_empty() && !matches!(key.get_action(), ArgAction::SetTrue) {
        text += &format!(" One of: {}.", words(allowed));
    }
    let defaults: Vec<String> =
        key.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
    if !defaults.is_empty() && !matches!(key.get_action(), ArgAction::SetTrue) {
        text += &format!(" [default: {}]", words(defaults));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys, from the parser's error for an unknown one.
    fn keys() -> Vec<String> {
        let said = znsage::parsers::complaint("[a]\nnothing = 1\n").unwrap();
        let list =
            said.split_once("The keys are: ").map(|(_, list)| list.lines().next().unwrap_or(list));
        list.expect(&said).split(", ").map(str::to_string).collect()
    }

    #[test]
    fn every_key_is_explained() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path()).unwrap();
        let page = std::fs::read_to_string(directory.path().join(FILE)).unwrap();
        assert!(page.contains(".TH znsage.conf 5 "), "{page}");
        let explained: Vec<String> = page
            .split(".TP\n")
            .skip(1)
            .map(|entry| {
                let (head, meaning) = entry.split_once('\n').unwrap();
                let name = head.trim_start_matches("\\fB").split("\\fR").next().unwrap();
                assert!(meaning.trim().len() > 20, "{entry}");
                name.replace("\\-", "-")
            })
            .collect();
        assert_eq!(explained, keys());
        assert!(explained.len() > 10, "{explained:?}");
    }

    #[test]
    fn example_has_no_faults() {
        assert_eq!(znsage::parsers::complaint(EXAMPLE), None);
    }
}
