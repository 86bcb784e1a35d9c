// SPDX-License-Identifier: GPL-2.0-only
//! A client of Redis: commands are arrays of strings, and replies come in their order.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::result::{Context, Result};

#[derive(Debug, PartialEq)]
pub enum Reply {
    Text(Vec<u8>),
    Number(i64),
    Nothing,
    List(Vec<Reply>),
}

pub struct Client {
    input: BufReader<UnixStream>,
    output: UnixStream,
}

impl Client {
    pub fn connect(socket: &Path) -> std::io::Result<Client> {
        let output = UnixStream::connect(socket)?;
        Ok(Client { input: BufReader::new(output.try_clone()?), output })
    }

    pub fn ask(&mut self, words: &[&[u8]]) -> Result<Reply> {
        self.send(&command(words))?;
        self.reply()
    }

    /// Asks for a text, such as that of INFO.
    pub fn text(&mut self, words: &[&str]) -> Result<String> {
        let bytes: Vec<&[u8]> = words.iter().map(|w| w.as_bytes()).collect();
        match self.ask(&bytes)? {
            Reply::Text(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            other => Err(format!("Redis: {} gave {other:?}", words.join(" "))),
        }
    }

    /// Sends commands; each gets a reply.
    pub fn send(&mut self, commands: &[u8]) -> Result<()> {
        self.output.write_all(commands).context("Redis does not listen")
    }

    pub fn reply(&mut self) -> Result<Reply> {
        reply(&mut self.input)
    }
}

pub fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend(*word);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Reads a reply. One that reports an error is an error.
fn reply(from: &mut impl BufRead) -> Result<Reply> {
    let mut line = String::new();
    let n = from.read_line(&mut line).context("Redis does not answer")?;
    if n == 0 {
        return Err("Redis hung up".to_string());
    }
    let strange = || format!("Redis: strange reply `{}`", line.trim_end());
    let (kind, rest) = line.trim_end().split_at_checked(1).ok_or_else(strange)?;
    let number = || rest.parse::<i64>().map_err(|_| strange());
    match kind {
        "+" => Ok(Reply::Text(rest.as_bytes().to_vec())),
        "-" => Err(format!("Redis: {rest}")),
        ":" => Ok(Reply::Number(number()?)),
        "$" => match usize::try_from(number()?) {
            Err(_) => Ok(Reply::Nothing),
            Ok(length) => bulk(from, length),
        },
        "*" => match usize::try_from(number()?) {
            Err(_) => Ok(Reply::Nothing),
            Ok(length) => Ok(Reply::List((0..length).map(|_| reply(from)).collect::<Result<_>>()?)),
        },
        _ => Err(strange()),
    }
}

fn bulk(from: &mut impl Read, length: usize) -> Result<Reply> {
    let mut bytes = Vec::new();
    let wanted = length as u64 + 2;
    let read = from.take(wanted).read_to_end(&mut bytes);
    let n = read.context("Redis does not answer")?;
    if n as u64 != wanted {
        return Err("Redis hung up".to_string());
    }
    bytes.truncate(length);
    Ok(Reply::Text(bytes))
}

/// A field of INFO, which has lines such as `rdb_bgsave_in_progress:0`.
pub fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_strings() {
        assert_eq!(command(&[b"GET", b"k1"]), b"*2\r\n$3\r\nGET\r\n$2\r\nk1\r\n");
    }

    #[test]
    fn replies_are_parsed() {
        let read = |mut text: &[u8]| reply(&mut text);
        let text = |t: &str| Reply::Text(t.as_bytes().to_vec());
        assert_eq!(read(b"+OK\r\n"), Ok(text("OK")));
        assert_eq!(read(b":42\r\n"), Ok(Reply::Number(42)));
        assert_eq!(read(b"$4\r\na\r\nb\r\n"), Ok(text("a\r\nb")));
        assert_eq!(read(b"$-1\r\n"), Ok(Reply::Nothing));
        let list = Reply::List(vec![text("x"), Reply::Nothing]);
        assert_eq!(read(b"*2\r\n$1\r\nx\r\n$-1\r\n"), Ok(list));
    }

    #[test]
    fn errors_are_reported() {
        let failed = |mut text: &[u8]| reply(&mut text).unwrap_err();
        assert_eq!(failed(b"-ERR no\r\n"), "Redis: ERR no");
        assert_eq!(failed(b""), "Redis hung up");
        assert_eq!(failed(b"$9\r\nshort"), "Redis hung up");
        assert!(failed(b"?\r\n").contains("strange"));
        assert!(failed(b":x\r\n").contains("strange"));
    }

    #[test]
    fn fields_of_info_are_found() {
        let info = "# Persistence\r\nrdb_bgsave_in_progress:1\r\nrdb_last_bgsave_status:ok\r\n";
        assert_eq!(field(info, "rdb_bgsave_in_progress"), Some("1"));
        assert_eq!(field(info, "rdb_last_bgsave_status"), Some("ok"));
        assert_eq!(field(info, "rdb_last"), None);
    }
}
