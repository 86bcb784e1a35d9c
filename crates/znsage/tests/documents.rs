// SPDX-License-Identifier: GPL-2.0-only
//! What the documents tell people to type: that it is still understood, and that
//! what they point to is there. Commands on devices are run by `command::` of
//! tests/.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::error::ErrorKind;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All documents of the repository.
fn documents() -> Vec<PathBuf> {
    fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap_or("");
            if path.is_dir() && !name.starts_with('.') && !["target", "build"].contains(&name) {
                collect(&path, found);
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&root(), &mut found);
    assert!(found.len() > 20, "{found:?}");
    found
}

/// A command line of a document, without `$` and `sudo`.
struct Line {
    place: String,
    words: Vec<String>,
}

/// Lines of code blocks; one that ends with a backslash goes on.
fn lines_of(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (i, line) in text.lines().enumerate() {
        let code = line.strip_prefix("    ").filter(|code| goes_on || !code.starts_with(' '));
        let Some(code) = code else {
            goes_on = false;
            continue;
        };
        let (code, more) = match code.strip_suffix('\\') {
            Some(code) => (code, true),
            None => (code, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.1 += code,
            None => lines.push((i + 1, code.to_string())),
        }
        goes_on = more;
    }
    lines
}

/// The commands in a line of a shell: `a && b | c; d`, without redirections and what
/// loops and comments are made of.
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
    for path in documents() {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        for (number, line) in lines_of(&fs::read_to_string(&path).unwrap()) {
            for words in commands_in(&line) {
                found.push(Line { place: format!("{name}:{number}: {line}"), words });
            }
        }
    }
    found
}

/// What stands in a sentence, as `znsage set policy=heat`; the command alone is a name.
fn mentions() -> Vec<Line> {
    let mut found = Vec::new();
    for path in documents() {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        for span in text.split('`').skip(1).step_by(2).filter(|s| s.starts_with("znsage ")) {
            let words = shlex::split(span).unwrap_or_default();
            found.push(Line { place: format!("{name}: `{span}`"), words });
        }
    }
    found
}

fn understood(words: &[String]) -> Result<(), clap::Error> {
    znsage::parsers::grammar().try_get_matches_from(words).map(drop)
}

#[test]
fn the_command_understands_what_documents_tell_to_type() {
    let mut n = 0;
    for line in commands() {
        if ["znsage", "target/release/znsage"].contains(&line.words[0].as_str()) {
            n += 1;
            understood(&line.words).unwrap_or_else(|e| panic!("{}\n{e}", line.place));
        }
    }
    assert!(n > 30, "only {n} commands were found");
}

#[test]
fn it_understands_what_they_mention() {
    let mut n = 0;
    for line in mentions() {
        // Words that stand for others.
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

/// Targets of the Makefile, and variables that it looks at.
fn makefile() -> (BTreeSet<String>, String) {
    let text = fs::read_to_string(root().join("Makefile")).unwrap();
    let phony = text.lines().find_map(|line| line.strip_prefix(".PHONY: ")).unwrap();
    (phony.split_whitespace().map(str::to_string).collect(), text)
}

#[test]
fn make_has_the_targets_that_they_name() {
    let (targets, text) = makefile();
    let mut n = 0;
    for line in commands() {
        let makes = line.words.iter().position(|word| word == "make");
        // Of other Makefiles; and `SLOWNESS=4 make test`.
        let Some(at) = makes.filter(|_| !line.words.contains(&"-C".to_string())) else {
            continue;
        };
        n += 1;
        for word in line.words[..at].iter().chain(&line.words[at + 1..]) {
            match word.split_once('=') {
                // Programs that it starts look at that one.
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
fn programs_of_the_repository_are_there() {
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
fn links_lead_somewhere() {
    let mut n = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for part in text.split("](").skip(1) {
            let Some((target, _)) = part.split_once(')') else { continue };
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            n += 1;
            let file = target.split('#').next().unwrap();
            let there = path.parent().unwrap().join(file).exists();
            assert!(there, "{}: {target}", path.display());
        }
    }
    assert!(n > 60, "only {n} links were found");
}

/// In a directory that looks like the repository, but for what they write.
#[test]
fn experiments_run() {
    let home = tempfile::tempdir().unwrap();
    for name in ["crates", "samples", "include", "port"] {
        std::os::unix::fs::symlink(root().join(name), home.path().join(name)).unwrap();
    }
    let command = Path::new(env!("CARGO_BIN_EXE_znsage")).parent().unwrap();
    let path = format!("{}:{}", command.display(), std::env::var("PATH").unwrap());
    let text = fs::read_to_string(root().join("docs/research.md")).unwrap();
    let lines = lines_of(&text);
    assert!(lines.len() >= 10, "{lines:?}");
    for (number, line) in lines {
        let ran = Command::new("sh")
            .args(["-c", &line])
            .current_dir(home.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "docs/research.md:{number}: {line}\n{said}");
    }
    for file in ["results/report.html", "one.html", "figures/index.html"] {
        assert!(home.path().join(file).is_file(), "there is no {file}");
    }
}

#[test]
fn lines_are_taken_apart() {
    let text = "Text\n\n    $ sudo znsage on /dev/x \\\n        --force  # really\n    for a in 1 2; do b $a; done > c\n";
    let lines = lines_of(text);
    assert_eq!(lines.len(), 2);
    assert_eq!(commands_in(&lines[0].1), [["znsage", "on", "/dev/x", "--force"]]);
    let loops = commands_in(&lines[1].1);
    assert_eq!(loops.last().unwrap(), &["b", "$a"]);
}
