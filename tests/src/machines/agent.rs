// SPDX-License-Identifier: GPL-2.0-only
//! Runs commands in a machine by Debian's qemu-guest-agent, which systemd starts and
//! stops with the machine.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::prelude::{Engine, BASE64_STANDARD};
use serde_json::{json, Value};
use znsage_guest::outcome::{Context, Outcome};

use crate::lines::Lines;

const ANSWER: Duration = Duration::from_secs(30);
const LOOK_UP: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(100);

pub struct Agent {
    lines: Lines,
    asked: u64,
}

/// How a command ended.
pub struct Ran {
    /// None: a signal killed it.
    pub status: Option<i64>,
    pub out: String,
    pub err: String,
}

impl Agent {
    pub fn connect(path: &Path) -> Outcome<Agent> {
        Ok(Agent { lines: Lines::connect(path, ANSWER)?, asked: 0 })
    }

    /// Waits until the machine has started. It repeats its request, since one that was sent
    /// before the last stop gets no answer.
    pub fn meet(&mut self, patience: Duration) -> Outcome {
        let end = Instant::now() + patience;
        while Instant::now() < end {
            self.asked += 1;
            let wanted = json!(self.asked);
            self.lines.send(&json!({"execute": "guest-sync", "arguments": {"id": wanted}}))?;
            let until = Instant::now() + LOOK_UP;
            while Instant::now() < until {
                match self.lines.receive(until.saturating_duration_since(Instant::now()))? {
                    Some(answer) if answer["return"] == wanted => return Ok(()),
                    _ => {}
                }
            }
        }
        Err(format!("it has not started in {} s", patience.as_secs()))
    }

    fn ask(&mut self, name: &str, arguments: Value) -> Outcome<Value> {
        self.lines.send(&json!({"execute": name, "arguments": arguments}))?;
        let mut answer =
            self.lines.receive(ANSWER)?.ok_or("the agent in the machine does not answer")?;
        if let Some(e) = answer.get("error") {
            return Err(format!("{name}: {}", e["desc"].as_str().unwrap_or("refused")));
        }
        Ok(answer["return"].take())
    }

    /// Starts a line of shell without waiting for an answer.
    pub fn tell(&mut self, line: &str) -> Outcome {
        let arguments = json!({"path": "/bin/sh", "arg": ["-c", line]});
        self.lines.send(&json!({"execute": "guest-exec", "arguments": arguments}))
    }

    /// Runs a line of shell to its end.
    pub fn run(&mut self, line: &str, patience: Duration) -> Outcome<Ran> {
        let end = Instant::now() + patience;
        let job = self.ask(
            "guest-exec",
            json!({"path": "/bin/sh", "arg": ["-c", line], "capture-output": true}),
        )?;
        while Instant::now() < end {
            let state = self.ask("guest-exec-status", json!({"pid": job["pid"]}))?;
            if state["exited"] == true {
                return Ok(Ran {
                    status: state["exitcode"].as_i64(),
                    out: text(&state["out-data"])?,
                    err: text(&state["err-data"])?,
                });
            }
            sleep(LOOK);
        }
        Err(format!("`{line}` has not ended in {} s", patience.as_secs()))
    }
}

fn text(data: &Value) -> Outcome<String> {
    let bytes =
        BASE64_STANDARD.decode(data.as_str().unwrap_or("")).context("the agent's answer")?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_string())
}
