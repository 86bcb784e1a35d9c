// SPDX-License-Identifier: GPL-2.0-only
//! `znsage on --dry-run`: what `on` would do. Changes nothing.

use serde_json::json;

use crate::cli::OnCommand;
use crate::device::Backing;
use crate::error::Result;
use crate::examine::{examine, map_bytes};
use crate::sys::{require_root, Sys};
use crate::{conf, module, record, units};

pub struct Report {
    backing: Backing,
    holds: Option<String>,
    /// `on` would ask before it takes the device.
    asks: bool,
    /// The module holds back a little more.
    swap_bytes: u64,
    map_bytes: u64,
}

pub fn run(sys: &dyn Sys, what: &OnCommand, page: u64) -> Result<Report> {
    require_root(sys, "look at what a device holds")?;
    let conf = conf::read(sys);
    let profile;
    let args = match what {
        OnCommand::Device(args) => args,
        OnCommand::Section(name) => conf.section(name)?,
        OnCommand::Profile(from) => {
            profile = conf::profile(sys, from)?;
            &profile
        }
    };
    let (backing, holds) = examine(sys, args, page)?;
    module::find(sys)?;
    let most = backing.usable_bytes / 100 * u64::from(100 - args.over_provisioning);
    Ok(Report {
        holds: holds.any(),
        asks: !args.force && record::check_owner(sys, &backing, &holds).is_err(),
        swap_bytes: args.size.unwrap_or(most),
        map_bytes: map_bytes(args, &backing, page),
        backing,
    })
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "version": 1,
            "device": self.backing.path,
            "bytes": self.backing.usable_bytes,
            "makes_file": self.makes_file(),
            "holds": self.holds,
            "asks": self.asks,
            "swap_bytes_at_most": self.swap_bytes,
            "map_bytes": self.map_bytes,
        })
    }

    fn makes_file(&self) -> bool {
        self.backing.file.as_ref().is_some_and(|file| file.make)
    }

    pub fn to_text(&self) -> String {
        let path = &self.backing.path;
        let first = match (&self.holds, self.asks) {
            _ if self.makes_file() => format!("{path}: `on` would make this file"),
            (None, _) => format!("{path}: no data found"),
            (Some(what), true) => format!("{path} has {what}: `on` would ask, then erase it"),
            (Some(what), false) => {
                format!("{path} has {what}: `on` would erase it without a question")
            }
        };
        format!(
            "{first}\nup to {} of swap on {}, {} of memory for the map\nnothing was changed\n",
            units::size(self.swap_bytes),
            units::size(self.backing.usable_bytes),
            units::size(self.map_bytes),
        )
    }
}
