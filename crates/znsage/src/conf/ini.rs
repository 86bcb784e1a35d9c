// SPDX-License-Identifier: GPL-2.0-only
//! The lines of a file of settings: `[section]`, `key = value`, `# comment`.
//!
//! INI crates lose line numbers, which error messages need. The rules are those of
//! systemd: no quotes, no escapes, comments on their own lines. A comment may also follow
//! the name of a section.

use crate::units::is_section_name;

/// A file, line by line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// In order. A repeated section is listed twice.
    pub sections: Vec<Header>,
    pub wrong: Vec<Wrong>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub line: usize,
    pub entries: Vec<Entry>,
}

/// `key = value`. An empty value removes the setting of an earlier file.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub value: String,
    pub line: usize,
}

/// An invalid line.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub line: usize,
    /// The section of the line, if known.
    pub section: Option<String>,
    pub message: String,
    pub hint: &'static str,
}

const FORM: &str = "write `[NAME]`, `KEY = VALUE` or `# COMMENT`";

pub fn parse(text: &str) -> Text {
    let mut parsed = Text::default();
    // Lines after an invalid header belong to no section.
    let mut skip = false;
    // Some editors start a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, text) in text.lines().enumerate().map(|(i, text)| (i + 1, text.trim())) {
        if text.is_empty() || text.starts_with(['#', ';']) {
            continue;
        }
        if text.starts_with('[') {
            let header = header(text, line).map(|h| parsed.sections.push(h));
            skip = header.is_err();
            parsed.wrong.extend(header.err());
        } else if !skip {
            entry(&mut parsed, text, line);
        }
    }
    parsed
}

fn header(text: &str, line: usize) -> Result<Header, Wrong> {
    let wrong = |message: String, hint| Wrong { line, section: None, message, hint };
    // A comment may follow: the name of a section has neither of its characters.
    let bare = text.split(['#', ';']).next().unwrap_or(text).trim_end();
    let Some(name) = bare.strip_prefix('[').and_then(|t| t.strip_suffix(']')) else {
        return Err(wrong(format!("`{}` is not a section", shown(text)), FORM));
    };
    match is_section_name(name) {
        true => Ok(Header { name: name.to_string(), line, entries: Vec::new() }),
        false => Err(wrong(
            format!("`{}` is not a valid section name", shown(name)),
            "use up to 64 letters, digits, - and _, starting with a letter or digit",
        )),
    }
}

fn entry(parsed: &mut Text, text: &str, line: usize) {
    let current = parsed.sections.last_mut();
    let section = current.as_ref().map(|s| s.name.clone());
    let mut wrong = |message: String, hint| {
        parsed.wrong.push(Wrong { line, section: section.clone(), message, hint });
    };
    let Some((key, value)) = text.split_once('=').map(|(k, v)| (k.trim_end(), v.trim_start()))
    else {
        return wrong(format!("`{}` is not a setting", shown(text)), FORM);
    };
    let Some(current) = current else {
        return wrong(
            format!("`{}` is outside of any section", shown(key)),
            "start each device with a line such as [swap]",
        );
    };
    if value.contains(|c: char| c.is_control()) {
        return wrong(
            format!("the value of `{}` has control characters", shown(key)),
            "remove them",
        );
    }
    // What files.rs has made of it.
    if text.contains('\u{fffd}') {
        return wrong(format!("`{}` is not UTF-8", shown(text)), "save the file as UTF-8");
    }
    current.entries.push(Entry { key: key.to_string(), value: value.to_string(), line });
}

/// Text of the user for a message: shortened, without control characters.
pub fn shown(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { '?' } else { c });
    match text.chars().count() > 80 {
        true => clean.take(77).chain("...".chars()).collect(),
        false => clean.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_parse() {
        let text =
            "\u{feff}# one\n\n[a]\r\n size=8G\n; two\n\tpolicy = heat # 3 \nchunk =\n[b-2] # four\n[a]; \u{fffd}";
        let parsed = parse(text);
        assert_eq!(parsed.wrong, []);
        let names: Vec<_> = parsed.sections.iter().map(|s| (s.name.as_str(), s.line)).collect();
        assert_eq!(names, [("a", 3), ("b-2", 8), ("a", 9)]);
        let entries: Vec<_> = (parsed.sections[0].entries.iter())
            .map(|e| (e.key.as_str(), e.value.as_str(), e.line))
            .collect();
        assert_eq!(entries, [("size", "8G", 4), ("policy", "heat # 3", 6), ("chunk", "", 7)]);
    }

    #[test]
    fn invalid_lines_are_reported_by_number() {
        for (text, line, part) in [
            ("size = 8G", 1, "`size` is outside of any section"),
            ("[a]\n\nsize 8G", 3, "`size 8G` is not a setting"),
            ("\n[a", 2, "`[a` is not a section"),
            ("[a] b", 1, "is not a section"),
            ("[a # b]", 1, "is not a section"),
            ("[a]\nsize = 1\u{fffd}", 2, "is not UTF-8"),
            ("[]", 1, "`` is not a valid"),
            ("[-a]", 1, "`-a` is not"),
            ("[a b]\nsize = 1\nnothing", 1, "`a b` is not"),
            ("[a/../b]", 1, "is not a valid"),
            ("[a]\nsize = 1\0", 2, "control characters"),
        ] {
            let wrong = parse(text).wrong;
            assert_eq!(wrong.len(), 1, "{text:?}: {wrong:?}");
            assert_eq!(wrong[0].line, line, "{text:?}");
            assert!(wrong[0].message.contains(part), "{text:?}: {}", wrong[0].message);
        }
    }

    #[test]
    fn long_lines_are_shortened() {
        assert_eq!(shown(&"x".repeat(100)).len(), 80);
        assert_eq!(shown("a\tb"), "a?b");
    }
}
