// SPDX-License-Identifier: GPL-2.0-only
//! A profile: settings that `znsage probe` recommends, for `znsage on --profile`. It
//! is a section of znsage.conf without a device.

use super::{add_file, complaint, grammar, options, parse, Draft, Setting, DEVICE};
use crate::cli::{OnArgs, Profile};
use crate::error::{reason, Error, Kind, Result};
use crate::sys::Sys;

/// Names the command line in faults.
const COMMAND_LINE: &str = "the command line";

/// The command line of `on` with a profile.
///
/// # Errors
/// If the file is unreadable, has faults, or has not exactly one section.
pub fn profile(sys: &dyn Sys, profile: &Profile) -> Result<OnArgs> {
    let name = profile.file.display().to_string();
    let unreadable = |e| {
        Error::new(Kind::Usage, format!("cannot read {name}: {}", reason(&e)))
            .hint("`znsage probe --profile FILE` writes one")
    };
    let path = std::path::absolute(&profile.file).map_err(unreadable)?;
    let text = sys.read(&path.to_string_lossy()).map_err(unreadable)?;
    let (grammar, mut drafts, mut faults) = (grammar(), Vec::new(), Vec::new());
    add_file(&mut drafts, &mut faults, &grammar, &name, &text);
    if let Some(e) = complaint(faults.iter()) {
        return Err(e);
    }
    let [draft] = &mut drafts[..] else {
        return Err(Error::new(Kind::Usage, format!("{name} has {} sections", drafts.len()))
            .hint("a profile has exactly one, with a line such as [nvme1n1] above the settings"));
    };
    override_with(draft, &profile.given);
    let (mut words, faults) = options(draft, &grammar);
    if let Some(e) = complaint(faults.iter()) {
        return Err(e);
    }
    words.extend(["--".to_string(), profile.device.clone()]);
    parse(&grammar, words).map_err(|e| Error::new(Kind::Usage, format!("{name}: {e}")))
}

fn override_with(draft: &mut Draft, given: &[(String, String)]) {
    draft.settings.remove(DEVICE);
    for (key, value) in given {
        let (value, file) = (value.clone(), COMMAND_LINE.to_string());
        draft.settings.insert(key.clone(), Setting { value, file, line: 1 });
    }
}
