// SPDX-License-Identifier: GPL-2.0-only
//! `znsage check`: the module walks the maps of a live device.

use serde_json::json;

use crate::cli::CheckArgs;
use crate::counters;
use crate::error::{Error, Kind, Result};
use crate::sys::{require_root, Sys};

#[derive(Debug)]
pub struct Report {
    /// Each device with its violations.
    pub devices: Vec<(String, Vec<String>)>,
}

pub fn run(sys: &dyn Sys, args: &CheckArgs) -> Result<Report> {
    require_root(sys, "check the maps")?;
    let names = match &args.device {
        Some(wanted) => vec![counters::find(sys, wanted)?.name],
        None => counters::names(sys),
    };
    if names.is_empty() {
        // Not "0 violations": a script that checks has to notice.
        return Err(Error::new(Kind::Device, "no znsage device is on"));
    }
    let devices = names
        .into_iter()
        .map(|name| Ok((violations(sys, &name)?, name)))
        .map(|r: Result<_>| r.map(|(violations, name)| (name, violations)))
        .collect::<Result<Vec<_>>>()?;
    Ok(Report { devices })
}

fn violations(sys: &dyn Sys, name: &str) -> Result<Vec<String>> {
    let path = format!("{}/check", counters::directory(name));
    sys.write(&path, "1").map_err(|e| Error::io("write to", &sys.at(&path), e))?;
    let text = sys.read(&path).map_err(|e| Error::io("read", &sys.at(&path), e))?;
    if text.trim() == "ok" {
        return Ok(Vec::new());
    }
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    match lines.is_empty() {
        true => Err(Error::new(Kind::Kernel, format!("{path} is empty"))),
        false => Ok(lines),
    }
}

impl Report {
    pub fn clean(&self) -> bool {
        self.devices.iter().all(|(_, found)| found.is_empty())
    }

    pub fn to_json(&self) -> serde_json::Value {
        let devices: Vec<_> = self
            .devices
            .iter()
            .map(|(name, found)| json!({"name": name, "violations": found}))
            .collect();
        json!({"version": 1, "ok": self.clean(), "devices": devices})
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, found) in &self.devices {
            match found.len() {
                0 => text += &format!("{name}: ok\n"),
                n => text += &format!("{name}: {n} violations\n"),
            }
            for line in found {
                text += &format!("  {line}\n");
            }
        }
        text
    }
}
