// SPDX-License-Identifier: GPL-2.0-only
//! Reads the documents of the repository, for tests of what they say.

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use znsage_guest::outcome::{Context, Outcome};

#[derive(Debug, Default)]
pub struct Document {
    /// Its path in the repository.
    pub name: String,
    /// Lines of code blocks that are for a shell.
    pub lines: Vec<Line>,
    /// Code within sentences.
    pub spans: Vec<String>,
    /// Targets of links and images.
    pub links: Vec<String>,
    /// What a link to one of its headings has after the `#`.
    pub anchors: Vec<String>,
}

/// A line of a code block, with the lines that a backslash joins to it.
#[derive(Debug)]
pub struct Line {
    /// The heading above it.
    heading: String,
    /// Its number in the file, from 1.
    pub number: usize,
    pub text: String,
}

impl Line {
    /// Without prompt, `sudo` and comment.
    fn command(&self) -> &str {
        let text = self.text.split("  # ").next().unwrap_or_default().trim_end();
        text.trim_start_matches("$ ").trim_start_matches("sudo ")
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

impl Document {
    /// Opens a document by its path in the repository.
    pub fn open(name: &str) -> Outcome<Document> {
        let path = root().join(name);
        let text = fs::read_to_string(&path).context(path.display())?;
        Ok(Document { name: name.to_string(), ..Document::parse(&text) })
    }

    /// Opens every document of the repository.
    pub fn all() -> Outcome<Vec<Document>> {
        let mut documents = Vec::new();
        let mut directories = vec![String::new()];
        while let Some(directory) = directories.pop() {
            let path = root().join(&directory);
            for entry in fs::read_dir(&path).context(path.display())? {
                let entry = entry.context(path.display())?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.ends_with(".md") {
                    documents.push(Document::open(&(directory.clone() + &name))?);
                } else if entry.path().is_dir()
                    && !name.starts_with('.')
                    && !["build", "target"].contains(&name.as_str())
                {
                    directories.push(format!("{directory}{name}/"));
                }
            }
        }
        Ok(documents)
    }

    fn parse(text: &str) -> Document {
        let mut document = Document::default();
        let mut heading = String::new();
        let (mut in_heading, mut in_shell) = (false, false);
        for (event, range) in Parser::new(text).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => {
                    (in_heading, heading) = (true, String::new());
                    document.anchors.push(String::new());
                }
                Event::End(TagEnd::Heading(_)) => in_heading = false,
                Event::Start(Tag::CodeBlock(kind)) => in_shell = is_shell(&kind),
                Event::End(TagEnd::CodeBlock) => in_shell = false,
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Text(words) if in_heading => {
                    heading += &words;
                    document.add_to_anchor(&words);
                }
                Event::Text(code) if in_shell => {
                    let first = text[..range.start].matches('\n').count() + 1;
                    for (i, line) in code.lines().enumerate() {
                        document.add_line(&heading, first + i, line);
                    }
                }
                Event::Code(code) => {
                    if in_heading {
                        document.add_to_anchor(&code);
                    }
                    document.spans.push(code.into_string());
                }
                _ => {}
            }
        }
        document
    }

    /// Adds words of a heading as GitHub does.
    fn add_to_anchor(&mut self, words: &str) {
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let kept = kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c });
        self.anchors.last_mut().expect("a heading").extend(kept);
    }

    fn add_line(&mut self, heading: &str, number: usize, text: &str) {
        match self.lines.last_mut().filter(|last| last.text.ends_with('\\')) {
            Some(last) => {
                last.text.pop();
                last.text += text;
            }
            // Lines that are indented further are of drawings and output.
            None if text.starts_with(' ') => {}
            None => {
                let (heading, text) = (heading.to_string(), text.to_string());
                self.lines.push(Line { heading, number, text });
            }
        }
    }

    /// Its commands, without prompt, `sudo` and comment.
    pub fn commands(&self) -> Vec<&str> {
        self.lines.iter().map(Line::command).collect()
    }

    /// The commands directly below a heading whose first word is one of `words`.
    ///
    /// # Errors
    ///
    /// There is none: the document has changed, and the test must follow.
    pub fn below(&self, heading: &str, words: &[&str]) -> Outcome<Vec<&str>> {
        let lines = self.lines.iter().filter(|line| line.heading == heading).map(Line::command);
        let begins = |line: &&str| line.split(' ').next().is_some_and(|word| words.contains(&word));
        let found: Vec<&str> = lines.filter(begins).collect();
        match found.is_empty() {
            true => Err(format!("{}, {heading}: no line begins with any of {words:?}", self.name)),
            false => Ok(found),
        }
    }
}

/// Code blocks in another language name it.
fn is_shell(kind: &CodeBlockKind) -> bool {
    match kind {
        CodeBlockKind::Indented => true,
        CodeBlockKind::Fenced(language) => ["", "sh"].contains(&&**language),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_lose_prompt_sudo_and_comment() {
        let text =
            "# One\nsay\n\n    $ sudo a b   # why\n    c\n## Two\n    a x\n    a#y\n# Three\n";
        let document = Document::parse(text);
        assert_eq!(document.commands(), ["a b", "c", "a x", "a#y"]);
        assert_eq!(document.below("One", &["a"]), Ok(vec!["a b"]));
        assert_eq!(document.below("Two", &["a", "a#y"]), Ok(vec!["a x", "a#y"]));
        assert!(document.below("Two", &["c"]).is_err());
        assert!(document.below("Three", &["a"]).is_err());
    }

    #[test]
    fn lines_have_numbers_and_join_at_backslashes() {
        let text = "Text\n\n    a \\\n      --b\n    c\n      drawn\n\n```promql\nd\n```\n\n```sh\ne\n```\n";
        let document = Document::parse(text);
        let lines: Vec<_> = document.lines.iter().map(|l| (l.number, l.text.as_str())).collect();
        assert_eq!(lines, [(3, "a   --b"), (5, "c"), (13, "e")]);
    }

    #[test]
    fn spans_and_links_are_found() {
        let document = Document::parse("## `a`\n\n| `c\nd` | [e](f.md#g) |\n\n![h](i.svg)\n");
        assert_eq!(document.spans, ["a", "c d"]);
        assert_eq!(document.links, ["f.md#g", "i.svg"]);
        let document = Document::parse("# A `b`, c-d\n\n## 1. E\n");
        assert_eq!(document.anchors, ["a-b-c-d", "1-e"]);
    }
}
