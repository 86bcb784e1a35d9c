// SPDX-License-Identifier: GPL-2.0-only
//! The command; all of it is in the library, where documents are checked against it.

use std::process::ExitCode;

fn main() -> ExitCode {
    znsage_sim::cli::main()
}
