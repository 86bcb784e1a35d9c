// SPDX-License-Identifier: GPL-2.0-only
//! What the documents tell people to type, for the tests that type it.

use std::fs;
use std::path::Path;

use crate::outcome::{Context, Outcome};

/// A document of the repository.
pub struct Document {
    name: String,
    text: String,
}

/// A line of a code block, without `$`, `sudo` and what is said behind it.
fn command(line: &str) -> Option<&str> {
    let line = line.strip_prefix("    ")?;
    let line = line.split("  # ").next().unwrap_or(line).trim_end();
    Some(line.trim_start_matches("$ ").trim_start_matches("sudo "))
}

impl Document {
    /// By its path in the repository.
    pub fn open(name: &str) -> Outcome<Document> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
        let text = fs::read_to_string(&path).context(path.display())?;
        Ok(Document { name: name.to_string(), text })
    }

    /// All lines of its code blocks.
    pub fn commands(&self) -> Vec<&str> {
        self.text.lines().filter_map(command).collect()
    }

    /// Those below a heading, up to the next, whose first word is one of these.
    ///
    /// # Errors
    ///
    /// If there is none: the document has changed, and so has the test to.
    pub fn below(&self, heading: &str, words: &[&str]) -> Outcome<Vec<&str>> {
        let is_it = |line: &&str| line.trim_start_matches('#').trim_start() == heading;
        let lines = self.text.lines().skip_while(|line| !is_it(line)).skip(1);
        let found: Vec<&str> = lines
            .take_while(|line| !line.starts_with('#'))
            .filter_map(command)
            .filter(|line| line.split(' ').next().is_some_and(|word| words.contains(&word)))
            .collect();
        if found.is_empty() {
            return Err(format!("{}, {heading}: no line begins with any of {words:?}", self.name));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_what_is_to_be_typed() {
        let text = "# One\nsay\n    $ sudo a b   # why\n    c\n## Two\n    a x\n    a#y\n# Three\n";
        let document = Document { name: "it".to_string(), text: text.to_string() };
        assert_eq!(document.commands(), ["a b", "c", "a x", "a#y"]);
        assert_eq!(document.below("One", &["a"]), Ok(vec!["a b"]));
        assert_eq!(document.below("Two", &["a", "a#y"]), Ok(vec!["a x", "a#y"]));
        assert!(document.below("Two", &["c"]).is_err());
        assert!(document.below("Three", &["a"]).is_err());
    }
}
