// SPDX-License-Identifier: GPL-2.0-only
//! What tests and benchmarks do in a virtual machine.

pub mod child;
pub mod guest;
pub mod inject;
pub mod memory;
pub mod null_blk;
pub mod outcome;
pub mod pattern;
pub mod scsi_debug;
