// SPDX-License-Identifier: GPL-2.0-only
//! One program for all tests: linking takes longer than most of them.

mod common;

mod bounds;
mod compression;
mod device_conventional;
mod device_params;
mod device_small_zone;
mod device_speed;
mod device_zn540;
mod device_zns;
mod device_zns_plus;
mod emulated_append;
mod open_loop;
mod policies;
mod policy_source;
mod recorded;
mod sweep;
mod systems;
mod tails;
mod trace;
mod virtual_zones;
