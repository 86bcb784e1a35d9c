// SPDX-License-Identifier: GPL-2.0-only
//! Shared by the two test programs, `vm-suite` and `machine-suite`.

pub mod child;
pub mod document;
pub mod guest;
pub mod memory;
pub mod outcome;
pub mod pattern;
