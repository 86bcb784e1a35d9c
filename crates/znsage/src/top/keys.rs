// SPDX-License-Identifier: GPL-2.0-only
//! Parses keys from the bytes of a terminal.
//!
//! crossterm loops forever, using a whole CPU, when the terminal hangs up, as after a
//! broken ssh connection.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// Ctrl and a lower-case letter.
    Ctrl(char),
    Tab,
    BackTab,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

const ESCAPE: u8 = 0x1b;

/// Removes keys from `bytes`. An incomplete escape sequence stays for the next call;
/// unknown ones are skipped.
pub fn take(bytes: &mut Vec<u8>) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = &bytes[..];
    while let Some((&first, after)) = rest.split_first() {
        let (key, len) = match (first, after.first()) {
            (ESCAPE, Some(b'[' | b'O')) => match sequence(after) {
                Some((key, len)) => (key, 1 + len),
                None => break,
            },
            (ESCAPE, _) => (Some(Key::Escape), 1),
            (b'\t', _) => (Some(Key::Tab), 1),
            (1..=26, _) => (Some(Key::Ctrl((first - 1 + b'a') as char)), 1),
            (b' '..=b'~', _) => (Some(Key::Char(first as char)), 1),
            _ => (None, 1),
        };
        keys.extend(key);
        rest = &rest[len..];
    }
    let left = rest.len();
    bytes.drain(..bytes.len() - left);
    keys
}

/// Parses a sequence without its escape: the key, if known, and its length. None if
/// incomplete.
fn sequence(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let parameters = bytes[1..].iter().take_while(|b| (0x20..0x40).contains(*b)).count();
    let end = 1 + parameters;
    let key = match (*bytes.get(end)?, &bytes[1..end]) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"5") => Key::PageUp,
        (b'~', b"6") => Key::PageDown,
        (b'Z', _) => Key::BackTab,
        _ => return Some((None, end + 1)),
    };
    Some((Some(key), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> (Vec<Key>, usize) {
        let mut bytes = text.as_bytes().to_vec();
        (take(&mut bytes), bytes.len())
    }

    #[test]
    fn keys_parse() {
        use Key::*;
        for (text, keys) in [
            ("q", vec![Char('q')]),
            ("\x03\x0c\t", vec![Ctrl('c'), Ctrl('l'), Tab]),
            ("\x1b", vec![Escape]),
            ("\x1b\x1b", vec![Escape, Escape]),
            ("\x1b[A\x1bOB\x1b[C\x1b[1;5D", vec![Up, Down, Right, Left]),
            (
                "\x1b[H\x1b[4~\x1b[5~\x1b[6~\x1b[Zp",
                vec![Home, End, PageUp, PageDown, BackTab, Char('p')],
            ),
            ("\x1b[24~ä\x7f+", vec![Char('+')]),
        ] {
            assert_eq!(all(text), (keys, 0), "{text:?}");
        }
    }

    #[test]
    fn incomplete_sequences_wait() {
        let mut bytes = b"p\x1b[1".to_vec();
        assert_eq!(take(&mut bytes), [Key::Char('p')]);
        assert_eq!(bytes, b"\x1b[1");
        bytes.push(b'~');
        assert_eq!(take(&mut bytes), [Key::Home]);
        assert!(bytes.is_empty());
    }
}
