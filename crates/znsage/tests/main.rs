// SPDX-License-Identifier: GPL-2.0-only
//! One program for all tests: linking takes longer than most of them.

mod cli;
mod corruption;
mod documents;
mod help;
mod layers;
