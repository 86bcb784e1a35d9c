// SPDX-License-Identifier: GPL-2.0-only
//! The command; all of it is in the library, where it can be fuzzed.

use std::process::ExitCode;

fn main() -> ExitCode {
    znsage::main()
}
