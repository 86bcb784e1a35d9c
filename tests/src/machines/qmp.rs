// SPDX-License-Identifier: GPL-2.0-only
//! QEMU's monitor: commands and events.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use znsage_guest::outcome::Outcome;

use crate::lines::Lines;

/// For QEMU's answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Monitor {
    lines: Lines,
    events: VecDeque<Value>,
}

impl Monitor {
    pub fn connect(path: &Path) -> Outcome<Monitor> {
        let mut monitor =
            Monitor { lines: Lines::connect(path, PATIENCE)?, events: VecDeque::new() };
        monitor.lines.receive(PATIENCE)?.ok_or("QEMU's monitor does not greet")?;
        monitor.order("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    pub fn order(&mut self, name: &str, arguments: Value) -> Outcome<Value> {
        self.lines.send(&json!({"execute": name, "arguments": arguments}))?;
        loop {
            let Some(mut answer) = self.lines.receive(PATIENCE)? else {
                return Err(format!("QEMU does not answer to {name}"));
            };
            if let Some(e) = answer.get("error") {
                return Err(format!("{name}: {}", e["desc"].as_str().unwrap_or("refused")));
            }
            match answer.get_mut("return") {
                Some(value) => return Ok(value.take()),
                None => self.events.push_back(answer),
            }
        }
    }

    /// Drops all events so far.
    pub fn forget(&mut self) -> Outcome {
        while self.lines.receive(Duration::ZERO)?.is_some() {}
        self.events.clear();
        Ok(())
    }

    /// Waits for an event.
    pub fn event(&mut self, name: &str, patience: Duration) -> Outcome<Value> {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let event = match self.events.pop_front() {
                Some(event) => Some(event),
                None => self.lines.receive(left)?,
            };
            match event {
                Some(event) if event["event"] == name => return Ok(event),
                Some(_) => {}
                None => return Err(format!("no {name} in {} s", patience.as_secs())),
            }
        }
    }
}
