// SPDX-License-Identifier: GPL-2.0-only
//! Checks the documents: the command understands what they tell people to type, and
//! files, links and make targets exist. `command::` of tests/ runs the commands on
//! devices.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use clap::error::ErrorKind;
use znsage_tests::document::{root, Document};

fn documents() -> Vec<Document> {
    let documents = Document::all().unwrap();
    assert!(documents.len() > 20, "{documents:?}");
    documents
}

/// A command and the line of a document that has it.
struct Line {
    place: String,
    words: Vec<String>,
}

/// The commands in a line of a shell, `a && b | c; d`, without redirections, comments and
/// the words of a loop.
fn commands_in(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    for word in shlex::split(line).unwrap_or_default() {
        let (word, ends) = match word.strip_suffix(';') {
            Some(word) => (word.to_string(), true),
            None => (word, false),
        };
        match word.as_str() {
            "&&" | "|" => commands.push(Vec::new()),
            "do" | "$" | "sudo" | "done" => {}
            _ => commands.last_mut().unwrap().push(word),
        }
        if ends {
            commands.push(Vec::new());
        }
    }
    for command in &mut commands {
        let end = command.iter().position(|word| [">", "<", "2>"].contains(&word.as_str()));
        command.truncate(end.unwrap_or(command.len()));
    }
    commands.retain(|command| !command.is_empty());
    commands
}

fn commands() -> Vec<Line> {
    let mut found = Vec::new();
    for document in documents() {
        for line in &document.lines {
            let place = format!("{}:{}: {}", document.name, line.number, line.text);
            let commands = commands_in(&line.text).into_iter();
            found.extend(commands.map(|words| Line { place: place.clone(), words }));
        }
    }
    found
}

/// Commands within sentences, as `znsage set policy=heat`; `znsage` alone is a name.
fn mentions() -> Vec<Line> {
    let mut found = Vec::new();
    for document in documents() {
        let is_command =
            |span: &&String| span.starts_with("znsage ") || span.starts_with("znsage-sim ");
        for span in document.spans.iter().filter(is_command) {
            let words = shlex::split(span).unwrap_or_default();
            found.push(Line { place: format!("{}: `{span}`", document.name), words });
        }
    }
    found
}

fn understood(words: &[String]) -> Result<(), clap::Error> {
    let grammar = match words[0].ends_with("znsage-sim") {
        true => znsage_sim::cli::grammar(),
        false => znsage::parsers::grammar(),
    };
    grammar.try_get_matches_from(words).map(drop)
}

#[test]
fn commands_in_code_blocks_parse() {
    let mut n = 0;
    for line in commands() {
        if ["znsage", "znsage-sim", "target/release/znsage"].contains(&line.words[0].as_str()) {
            n += 1;
            understood(&line.words).unwrap_or_else(|e| panic!("{}\n{e}", line.place));
        }
    }
    assert!(n > 30, "only {n} commands were found");
}

#[test]
fn commands_in_sentences_parse() {
    let mut n = 0;
    for line in mentions() {
        // Placeholders.
        if line.words.iter().any(|word| word.contains("...") || word == "COMMAND") {
            continue;
        }
        n += 1;
        let Err(e) = understood(&line.words) else { continue };
        let incomplete = [
            ErrorKind::MissingRequiredArgument,
            ErrorKind::MissingSubcommand,
            ErrorKind::DisplayHelp,
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
            // An option without its value.
            ErrorKind::InvalidValue,
        ];
        assert!(incomplete.contains(&e.kind()), "{}\n{e}", line.place);
    }
    assert!(n > 50, "only {n} were found");
}

/// The targets of the Makefile, and its text.
fn makefile() -> (BTreeSet<String>, String) {
    let text = fs::read_to_string(root().join("Makefile")).unwrap();
    let phony = text.lines().find_map(|line| line.strip_prefix(".PHONY: ")).unwrap();
    (phony.split_whitespace().map(str::to_string).collect(), text)
}

#[test]
fn make_targets_exist() {
    let (targets, text) = makefile();
    let mut n = 0;
    for line in commands() {
        let makes = line.words.iter().position(|word| word == "make");
        // Not those of another Makefile. Variables come before or after the word,
        // as in `SLOWNESS=4 make test`.
        let Some(at) = makes.filter(|_| !line.words.contains(&"-C".to_string())) else {
            continue;
        };
        n += 1;
        for word in line.words[..at].iter().chain(&line.words[at + 1..]) {
            match word.split_once('=') {
                // Programs that make starts read SLOWNESS.
                Some((name, _)) => {
                    assert!(text.contains(name) || name == "SLOWNESS", "{}", line.place);
                }
                None => assert!(targets.contains(word), "{}", line.place),
            }
        }
    }
    assert!(n > 15, "only {n} were found");
}

#[test]
fn programs_exist() {
    let mut n = 0;
    for line in commands() {
        let program = line.words.iter().find(|word| !word.contains('='));
        let Some(program) = program else { continue };
        let made = ["target/", "build/", "parts", "/"].iter().any(|p| program.starts_with(p));
        if !program.contains('/') || made || !program.is_ascii() {
            continue;
        }
        if root().join(program.split('/').next().unwrap()).is_dir() {
            n += 1;
            assert!(root().join(program).is_file(), "{}", line.place);
        }
    }
    assert!(n > 5, "only {n} were found");
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut n = 0;
    for document in documents() {
        let path = root().join(&document.name);
        for target in document.links.iter().filter(|t| !t.contains("://")) {
            n += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            assert!(file.exists(), "{}: {target}", document.name);
            if !anchor.is_empty() {
                let name = file.strip_prefix(root()).unwrap().to_str().unwrap();
                let anchors = Document::open(name).unwrap().anchors;
                assert!(anchors.iter().any(|a| a == anchor), "{}: {target}", document.name);
            }
        }
    }
    assert!(n > 60, "only {n} links were found");
}

/// Runs in a directory with links to the repository, so that the results stay out of it. The
/// simulator is beside the command after `cargo build --workspace`.
#[test]
fn experiments_run() {
    let home = tempfile::tempdir().unwrap();
    let root = root().canonicalize().unwrap();
    for name in ["crates", "samples", "include", "port"] {
        std::os::unix::fs::symlink(root.join(name), home.path().join(name)).unwrap();
    }
    let command = Path::new(env!("CARGO_BIN_EXE_znsage")).parent().unwrap();
    let path = format!("{}:{}", command.display(), std::env::var("PATH").unwrap());
    let document = Document::open("docs/dev/research.md").unwrap();
    assert!(document.lines.len() >= 10, "{document:?}");
    for line in &document.lines {
        let ran = Command::new("sh")
            .args(["-c", &line.text])
            .current_dir(home.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{}:{}: {}\n{said}", document.name, line.number, line.text);
    }
    assert!(home.path().join("runs").read_dir().unwrap().count() > 20);
}

#[test]
fn lines_are_split_into_commands() {
    let commands = commands_in("$ sudo znsage on /dev/x     --force  # really");
    assert_eq!(commands, [["znsage", "on", "/dev/x", "--force"]]);
    let loops = commands_in("for a in 1 2; do b $a; done > c");
    assert_eq!(loops.last().unwrap(), &["b", "$a"]);
}
