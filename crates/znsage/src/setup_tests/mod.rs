// SPDX-License-Identifier: GPL-2.0-only
//! `on`, `off`, `status` and `check` against a machine that behaves like a
//! kernel with the module, down to the errors.

mod afterwards;
mod machine;
mod refusals;
mod turning_on;
