// SPDX-License-Identifier: GPL-2.0-only
//! `znsage on --dry-run`: what `on` would do. Changes nothing.

use serde_json::json;

use crate::cli::{OnArgs, OnCommand};
use crate::device::Backing;
use crate::error::{Kind, Result};
use crate::examine::{check_owner, examine, map_bytes};
use crate::sys::{require_root, Sys};
use crate::{conf, device, module, units};

pub struct Report {
    backing: Backing,
    /// At most; the module holds back a little more.
    swap_bytes: u64,
    zones: u64,
    zone_bytes: u64,
    map_bytes: u64,
    /// Why `on` would ask.
    asks: Option<String>,
}

pub fn run(sys: &dyn Sys, what: &OnCommand, page: u64) -> Result<Report> {
    require_root(sys, "look at what a device holds")?;
    match what {
        OnCommand::DryRun(what) => run(sys, what, page),
        OnCommand::Device(args) => look(sys, args, page),
        OnCommand::Profile(profile) => look(sys, &conf::profile(sys, profile)?, page),
        OnCommand::Section(name) => look(sys, conf::read(sys).section(name)?, page),
    }
}

fn look(sys: &dyn Sys, args: &OnArgs, page: u64) -> Result<Report> {
    let backing = examine(sys, args, page)?;
    module::find(sys)?;
    let asks = match check_owner(sys, &backing) {
        _ if args.force => None,
        Err(e) if e.kind == Kind::Data => Some(e.hint.unwrap_or_default()),
        checked => checked.map(|()| None)?,
    };
    let (zones, zone_bytes) = match &backing.zones {
        Some(zones) => (zones.number, zones.bytes),
        None => {
            let unit = args.write_unit.unwrap_or(page);
            let default = || device::default_zone(sys, &backing, unit);
            let zone = args.zone_size.unwrap_or_else(default).max(1);
            (backing.bytes / zone, zone)
        }
    };
    let most = backing.usable_bytes / 100 * u64::from(100 - args.over_provisioning);
    Ok(Report {
        swap_bytes: args.size.unwrap_or(most),
        map_bytes: map_bytes(args, &backing, page),
        zones,
        zone_bytes,
        asks,
        backing,
    })
}

impl Report {
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "version": 1,
            "device": self.backing.path,
            "bytes": self.backing.bytes,
            "holds": self.backing.loses(),
            "asks": self.asks.is_some(),
            "swap_bytes_at_most": self.swap_bytes,
            "zones": self.zones,
            "zone_bytes": self.zone_bytes,
            "map_bytes": self.map_bytes,
        })
    }

    pub fn to_text(&self) -> String {
        let Backing { path, bytes, .. } = &self.backing;
        let holds = self.backing.loses();
        let mut text = format!("{path}: {}\n", units::size(*bytes));
        text += &match (&self.asks, holds) {
            (_, None) => "no data was found on it\n".to_string(),
            (None, Some(holds)) => format!("it has {holds}, which `on` erases\n"),
            (Some(hint), Some(holds)) => {
                let hint = hint.replace('\n', "\n  ");
                format!("it has {holds}, so `on` asks first\n  {hint}\n")
            }
        };
        text + &format!(
            "up to {} of swap, in {} zones of {}\n{} of memory for the map\nnothing was changed\n",
            units::size(self.swap_bytes),
            self.zones,
            units::size(self.zone_bytes),
            units::size(self.map_bytes),
        )
    }
}
