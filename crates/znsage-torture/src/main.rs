// SPDX-License-Identifier: GPL-2.0-only
//! The command.

use std::process::ExitCode;

fn main() -> ExitCode {
    znsage_torture::cli::main()
}
