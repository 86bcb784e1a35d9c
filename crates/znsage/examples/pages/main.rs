// SPDX-License-Identifier: GPL-2.0-only
//! Writes the manual pages and shell completions from the grammar of the command
//! line. `make man` and `make completions` run it; it is not a part of the command.
//!
//!     cargo run -p znsage --example pages -- man DIRECTORY
//!     cargo run -p znsage --example pages -- completions DIRECTORY

mod conf;
mod manual;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;

use manual::SECTION;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["man", directory] => man(Path::new(directory)),
        ["completions", directory] => completions(Path::new(directory)),
        _ => {
            eprintln!("usage: pages man|completions DIRECTORY");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("pages: cannot write to {}: {e}", words[1]);
            ExitCode::FAILURE
        }
    }
}

/// Writes a page for the command, one for each subcommand, and one for znsage.conf.
fn man(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for command in pages() {
        let name = command.get_name().to_string();
        let file = fs::File::create(directory.join(format!("{name}.{SECTION}")))?;
        manual::write(command, &mut io::BufWriter::new(file))?;
    }
    conf::write(directory)
}

fn completions(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut candidates(grammar()), "znsage", directory)?;
    }
    Ok(())
}

const POLICIES: [&str; 4] = ["single", "cpu", "cgroup", "heat"];
const VICTIMS: [&str; 3] = ["greedy", "cost-benefit", "age"];
const COMPRESSORS: [&str; 3] = ["off", "lz4", "zstd"];

/// The grammar with words for the shells to offer, and files only where one is wanted.
fn candidates(command: Command) -> Command {
    let settings: [(_, &'static [&'static str]); 3] =
        [("policy", &POLICIES), ("victim", &VICTIMS), ("compress", &COMPRESSORS)];
    // clap requires words that live as long as the grammar.
    let words = |arg: &Arg| -> Vec<&'static str> {
        match arg.get_id().as_str() {
            "policy" => POLICIES.to_vec(),
            "victim" => VICTIMS.to_vec(),
            // Of `set`.
            "words" => {
                let of = |(key, values): (_, &'static [&'static str])| {
                    values.iter().map(move |value| &*format!("{key}={value}").leak())
                };
                settings.into_iter().flat_map(of).collect()
            }
            _ => Vec::new(),
        }
    };
    command
        .mut_args(|arg| {
            let words = words(&arg);
            let is_path = arg.get_id() == "device" || arg.get_value_hint() != ValueHint::Unknown;
            match arg.get_action().takes_values() {
                true if !words.is_empty() => arg.value_parser(PossibleValuesParser::new(words)),
                true if !is_path => arg.value_hint(ValueHint::Other),
                _ => arg,
            }
        })
        .mut_subcommands(candidates)
}

/// All commands with a page, named as the page: znsage, znsage-on, znsage-policy-load.
fn pages() -> Vec<Command> {
    let mut whole = grammar().disable_help_subcommand(true);
    // Pass global options and the version down.
    whole.build();
    let mut found = Vec::new();
    gather(&whole, "", &mut found);
    found
}

fn gather(command: &Command, above: &str, found: &mut Vec<Command>) {
    let name = match above {
        "" => command.get_name().to_string(),
        above => format!("{above}-{}", command.get_name()),
    };
    for below in command.get_subcommands() {
        gather(below, &name, found);
    }
    // clap requires names that live as long as the grammar.
    let name: &'static str = name.leak();
    found.push(command.clone().name(name));
}

/// The grammar without hidden commands.
fn grammar() -> Command {
    let all = znsage::parsers::grammar();
    let shown: Vec<Command> = all.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    let mut grammar = Command::new("znsage")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(shown);
    if let Some(about) = all.get_about() {
        grammar = grammar.about(about.clone());
    }
    if let Some(text) = all.get_after_help() {
        grammar = grammar.after_help(text.clone());
    }
    grammar
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of commands as words: "policy load".
    fn commands(command: &Command, above: &str, found: &mut Vec<String>) {
        for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            let words = format!("{above} {}", below.get_name());
            commands(below, &words, found);
            found.push(words.trim().to_string());
        }
    }

    #[test]
    fn every_command_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        man(directory.path()).unwrap();
        let mut all = vec![String::new()];
        commands(&znsage::parsers::grammar(), "", &mut all);
        assert!(all.len() > 10, "{all:?}");
        for words in &all {
            let name = format!("znsage {words}").trim_end().replace(' ', "-");
            let page = fs::read_to_string(directory.path().join(format!("{name}.8"))).unwrap();
            assert!(page.contains(&format!(".TH {name} 8 ")), "{name}:\n{page}");
            let version = concat!("znsage ", env!("CARGO_PKG_VERSION"));
            for part in ["OPTIONS", "FILES", "SEE ALSO", "EXIT STATUS", version] {
                assert!(page.contains(part), "{part} in {name}");
            }
            assert!(page.contains("EXAMPLES") || words == "policy", "{name}");
        }
        let written = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(written, all.len() + 1, "a page without a command");
    }

    #[test]
    fn first_page_names_commands_and_exit_statuses() {
        let directory = tempfile::tempdir().unwrap();
        man(directory.path()).unwrap();
        let page = fs::read_to_string(directory.path().join("znsage.8")).unwrap();
        for text in ["znsage\\-doctor(8)", "EXIT STATUS", "ZNSAGE_MODULE", "\\-\\-json"] {
            assert!(page.contains(text), "{text}:\n{page}");
        }
    }

    #[test]
    fn every_shell_completes_every_command() {
        let directory = tempfile::tempdir().unwrap();
        completions(directory.path()).unwrap();
        let mut all = Vec::new();
        commands(&znsage::parsers::grammar(), "", &mut all);
        for file in ["znsage.bash", "_znsage", "znsage.fish"] {
            let script = fs::read_to_string(directory.path().join(file)).unwrap();
            for words in &all {
                let last = words.rsplit(' ').next().unwrap();
                assert!(script.contains(last), "{words} in {file}");
            }
            for word in ["over-provisioning", "cost-benefit", "policy=heat", "LIVE%"] {
                // fish completes options only.
                let has = script.contains(word) || word.contains('=') && file.ends_with("fish");
                assert!(has, "{word} in {file}");
            }
            for hidden in ["bench-worker", "generator"] {
                assert!(!script.contains(hidden), "{hidden} in {file}: it is hidden");
            }
        }
    }
}
