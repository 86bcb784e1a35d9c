// SPDX-License-Identifier: GPL-2.0-only
//! Writes the manual pages and shell completions from the grammar of the command
//! line. `make man` and `make completions` run it; it is not a part of the command.
//!
//!     cargo run -p znsage --example pages -- man DIRECTORY
//!     cargo run -p znsage --example pages -- completions DIRECTORY

mod conf;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

/// System administration.
const SECTION: &str = "8";

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
        clap_mangen::Man::new(command).section(SECTION).render(&mut io::BufWriter::new(file))?;
    }
    conf::write(directory)
}

fn completions(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut grammar(), "znsage", directory)?;
    }
    Ok(())
}

/// All commands with a page, named as the page: znsage, znsage-on, znsage-sim-run.
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

    /// Names of commands as words: "sim run".
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
            assert!(page.contains(".SH OPTIONS"), "{name}");
        }
        let written = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(written, all.len() + 1, "a page without a command");
    }

    #[test]
    fn first_page_names_commands_and_exit_statuses() {
        let directory = tempfile::tempdir().unwrap();
        man(directory.path()).unwrap();
        let page = fs::read_to_string(directory.path().join("znsage.8")).unwrap();
        for text in ["znsage\\-doctor(8)", "Exit status:", "ZNSAGE_MODULE", "\\-\\-json"] {
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
            assert!(script.contains("over-provisioning"), "{file}");
            for hidden in ["bench-worker", "generator"] {
                assert!(!script.contains(hidden), "{hidden} in {file}: it is hidden");
            }
        }
    }
}
