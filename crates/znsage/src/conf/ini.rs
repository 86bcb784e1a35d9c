// SPDX-License-Identifier: GPL-2.0-only
//! The lines of a file of settings: `[section]`, `key = value`, `# comment`.
//!
//! Of our own, on purpose: a mistake is to be told by its line, which the
//! crates for INI forget, and the rules are systemd's (no quotes, no escapes,
//! comments on lines of their own), as people know them from beside.

/// A file, line by line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// In order; a section that comes twice is there twice.
    pub sections: Vec<Header>,
    pub wrong: Vec<Wrong>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub line: usize,
    pub entries: Vec<Entry>,
}

/// `key = value`; an empty value takes back what an earlier file said.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub value: String,
    pub line: usize,
}

/// A line that makes no sense.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub line: usize,
    /// Where it is, if that can be told.
    pub section: Option<String>,
    pub message: String,
    pub hint: &'static str,
}

/// As long as fits into the name of a unit with all that is around it.
const LONGEST_NAME: usize = 64;

const FORM: &str = "write `[NAME]`, `KEY = VALUE` or `# COMMENT`";

pub fn parse(text: &str) -> Text {
    let mut parsed = Text::default();
    // After a header that makes no sense, lines belong to nothing.
    let mut lost = false;
    // Some editors begin a file with a mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, text) in text.lines().enumerate().map(|(i, text)| (i + 1, text.trim())) {
        if text.is_empty() || text.starts_with(['#', ';']) {
            continue;
        }
        if text.starts_with('[') {
            let header = header(text, line).map(|h| parsed.sections.push(h));
            lost = header.is_err();
            parsed.wrong.extend(header.err());
        } else if !lost {
            entry(&mut parsed, text, line);
        }
    }
    parsed
}

fn header(text: &str, line: usize) -> Result<Header, Wrong> {
    let wrong = |message: String, hint| Wrong { line, section: None, message, hint };
    let Some(name) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) else {
        return Err(wrong(format!("`{}` is no section", shown(text)), FORM));
    };
    match is_name(name) {
        true => Ok(Header { name: name.to_string(), line, entries: Vec::new() }),
        false => Err(wrong(
            format!("`{}` cannot be the name of a section", shown(name)),
            "up to 64 letters, digits, - and _, and first a letter or digit",
        )),
    }
}

/// What can be a part of a unit's name and of a command line as it is.
pub fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn entry(parsed: &mut Text, text: &str, line: usize) {
    let current = parsed.sections.last_mut();
    let section = current.as_ref().map(|s| s.name.clone());
    let mut wrong = |message: String, hint| {
        parsed.wrong.push(Wrong { line, section: section.clone(), message, hint });
    };
    let Some((key, value)) = text.split_once('=').map(|(k, v)| (k.trim_end(), v.trim_start()))
    else {
        return wrong(format!("`{}` is no setting", shown(text)), FORM);
    };
    let Some(current) = current else {
        return wrong(
            format!("`{}` belongs to no section", shown(key)),
            "begin each device with a line such as [swap]",
        );
    };
    if value.contains(|c: char| c.is_control()) {
        return wrong(
            format!("the value of `{}` holds control characters", shown(key)),
            "write it anew",
        );
    }
    current.entries.push(Entry { key: key.to_string(), value: value.to_string(), line });
}

/// Of what others wrote, as much as a message needs.
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
    fn lines_are_read() {
        let text =
            "\u{feff}# one\n\n[a]\r\n size=8G\n; two\n\tpolicy = heat # 3 \nchunk =\n[b-2]\n[a]";
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
    fn nonsense_is_told_by_its_line() {
        for (text, line, part) in [
            ("size = 8G", 1, "`size` belongs to no section"),
            ("[a]\n\nsize 8G", 3, "`size 8G` is no setting"),
            ("\n[a", 2, "`[a` is no section"),
            ("[a] # b", 1, "is no section"),
            ("[]", 1, "`` cannot be the name"),
            ("[-a]", 1, "`-a` cannot be"),
            ("[a b]\nsize = 1\nnothing", 1, "`a b` cannot be"),
            ("[a/../b]", 1, "cannot be"),
            ("[a]\nsize = 1\0", 2, "control characters"),
        ] {
            let wrong = parse(text).wrong;
            assert_eq!(wrong.len(), 1, "{text:?}: {wrong:?}");
            assert_eq!(wrong[0].line, line, "{text:?}");
            assert!(wrong[0].message.contains(part), "{text:?}: {}", wrong[0].message);
        }
    }

    #[test]
    fn long_lines_are_shown_in_part() {
        assert_eq!(shown(&"x".repeat(100)).len(), 80);
        assert_eq!(shown("a\tb"), "a?b");
    }
}
