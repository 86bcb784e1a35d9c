// SPDX-License-Identifier: GPL-2.0-only
//! The documents, for tests of what they say.

pub mod document;
