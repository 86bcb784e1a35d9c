// SPDX-License-Identifier: GPL-2.0-only
//! The devices of the machine that tests/run starts.

/// 128 MiB, zones of 128 KiB, no limits on open zones. Large devices have as many zones
/// (1024): empty and open ones are a small part of the device.
pub const MAIN: &str = "ZNS0";
/// 64 MiB, blocks of 512 bytes, zones of 1 MiB with a capacity of 896 KiB, at most 4
/// open or active.
pub const TIGHT: &str = "ZNS1";
/// 256 MiB, zones of 4 MiB.
pub const MEDIUM: &str = "ZNS2";
/// 1 GiB, zones of 64 MiB.
pub const LARGE: &str = "ZNS3";
/// 64 MiB, zones of 512 KiB, at most one open or active.
pub const ONE_OPEN: &str = "ZNS4";
/// 256 MiB, conventional. On kernels from 7.0 with four placement handles (FDP).
pub const CONVENTIONAL: &str = "CONV0";
