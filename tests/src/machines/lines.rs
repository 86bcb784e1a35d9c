// SPDX-License-Identifier: GPL-2.0-only
//! Lines of JSON over a socket, the protocol of QEMU and of the guest agent.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use znsage_guest::outcome::{Context, Outcome};

pub struct Lines {
    stream: UnixStream,
    /// The part of a line that has arrived.
    pending: Vec<u8>,
}

impl Lines {
    /// Connects; the other side may still be starting.
    pub fn connect(path: &Path, patience: Duration) -> Outcome<Lines> {
        let end = Instant::now() + patience;
        loop {
            match UnixStream::connect(path) {
                Ok(stream) => return Ok(Lines { stream, pending: Vec::new() }),
                Err(e) if Instant::now() > end => return Err(format!("{}: {e}", path.display())),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    pub fn send(&mut self, value: &Value) -> Outcome {
        self.stream.write_all(format!("{value}\n").as_bytes()).context("write to QEMU")
    }

    /// The next value, or None if none comes in time. A guest that stops in the middle of a
    /// line leaves one that is not JSON; it is skipped.
    pub fn receive(&mut self, patience: Duration) -> Outcome<Option<Value>> {
        let end = Instant::now() + patience;
        loop {
            while let Some(at) = self.pending.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=at).collect();
                if let Ok(value) = serde_json::from_slice(&line) {
                    return Ok(Some(value));
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left)).context("set a time-out")?;
            let mut buffer = [0; 65536];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err("QEMU has hung up".to_string()),
                Ok(n) => self.pending.extend_from_slice(&buffer[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(e) => return Err(format!("read from QEMU: {e}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_arrive_whole_and_in_order() {
        let (stream, mut other) = UnixStream::pair().unwrap();
        let mut lines = Lines { stream, pending: Vec::new() };
        other.write_all(b"{\"a\":1}\n{\"b\":").unwrap();
        let soon = Duration::from_millis(20);
        assert_eq!(lines.receive(soon).unwrap(), Some(json!({"a": 1})));
        assert_eq!(lines.receive(soon).unwrap(), None);
        other.write_all(b"2}\nhalf of a\n3\n").unwrap();
        assert_eq!(lines.receive(soon).unwrap(), Some(json!({"b": 2})));
        assert_eq!(lines.receive(soon).unwrap(), Some(json!(3)));
        drop(other);
        assert!(lines.receive(soon).unwrap_err().contains("hung up"));
    }
}
