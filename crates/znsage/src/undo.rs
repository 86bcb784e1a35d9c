// SPDX-License-Identifier: GPL-2.0-only
//! Steps that undo what was done.

use crate::error::{Error, Result};
use crate::sys::Sys;

type Step = Box<dyn FnOnce(&dyn Sys) -> Result<()>>;

pub struct Undo<'a> {
    sys: &'a dyn Sys,
    steps: Vec<(&'static str, Step)>,
}

impl<'a> Undo<'a> {
    pub fn new(sys: &'a dyn Sys) -> Self {
        Undo { sys, steps: Vec::new() }
    }

    pub fn push(
        &mut self,
        what: &'static str,
        step: impl FnOnce(&dyn Sys) -> Result<()> + 'static,
    ) {
        self.steps.push((what, Box::new(step)));
    }

    /// Runs all steps, last first, because of `cause`. A step that fails does not stop
    /// the others; its error is added to the hint.
    pub fn roll_back(self, mut cause: Error) -> Error {
        for (what, step) in self.steps.into_iter().rev() {
            if let Err(e) = step(self.sys) {
                cause = cause.add(&format!("could not {what} afterwards: {e}"));
            }
        }
        cause
    }
}
