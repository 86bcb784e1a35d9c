// SPDX-License-Identifier: GPL-2.0-only
//! The help of every command, compared with the files in tests/printed/help. To renew
//! them: SNAPSHOTS=overwrite cargo test -p znsage

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use snapbox::{assert_data_eq, Data, IntoData};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/printed/help")
}

/// All commands as words, the command itself first.
fn commands(grammar: &clap::Command, words: &[String], found: &mut Vec<Vec<String>>) {
    found.push(words.to_vec());
    for below in grammar.get_subcommands().filter(|c| !c.is_hide_set()) {
        commands(below, &[words, &[below.get_name().to_string()]].concat(), found);
    }
}

fn all() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    commands(&znsage::parsers::grammar(), &[], &mut found);
    found
}

fn file_name(words: &[String]) -> String {
    format!("{}.txt", [&["znsage".to_string()], words].concat().join("-"))
}

#[test]
fn help_prints_the_files() {
    for words in all() {
        let said = Command::new(env!("CARGO_BIN_EXE_znsage"))
            .args(&words)
            .arg("--help")
            // Default width.
            .env_remove("COLUMNS")
            .output()
            .expect("the command runs");
        assert_eq!(said.status.code(), Some(0), "{words:?}");
        assert!(said.stderr.is_empty(), "{words:?}");
        let text = String::from_utf8(said.stdout).unwrap();
        let file = Data::read_from(&directory().join(file_name(&words)), None);
        assert_data_eq!(text.into_data().raw(), file.raw());
    }
}

#[test]
fn no_file_without_a_command() {
    let there: BTreeSet<String> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let want: BTreeSet<String> = all().iter().map(|words| file_name(words)).collect();
    assert_eq!(there, want);
}
