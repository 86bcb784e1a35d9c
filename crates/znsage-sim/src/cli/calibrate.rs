// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-sim calibrate`: a device file of a drive that `znsage probe` measured.

use std::fs;

use crate::calibrate::{self, Probe};

use super::args::CalibrateArgs;
use super::{usage, Error, Outcome, Result, Status};

pub fn calibrate(args: &CalibrateArgs) -> Result<Outcome> {
    let at = args.probe.display();
    let text = fs::read_to_string(&args.probe)
        .map_err(|e| Error { status: Status::Io, message: format!("{at}: {e}") })?;
    let probe: Probe = serde_json::from_str(&text)
        .map_err(|e| usage(format!("{at}: {e}: give what `znsage probe --save` wrote")))?;
    let name = args.device.file_stem().unwrap_or_default().to_string_lossy();
    let calibrated = calibrate::calibrate(&name, &probe, args.base.as_deref())
        .map_err(|e| usage(format!("{at}: {e}")))?;
    fs::write(&args.device, &calibrated.toml).map_err(|e| Error {
        status: Status::Io,
        message: format!("{}: {e}", args.device.display()),
    })?;
    let json = serde_json::to_value(&calibrated).expect("it is JSON");
    Ok(Outcome::fine(calibrated.to_string(), json))
}
