// SPDX-License-Identifier: GPL-2.0-only
//! Runs of choices, each made once.

use std::collections::{BTreeMap, BTreeSet};

use super::question::{AdviceError, Goal, Measured, Question, Tried};
use super::setting::{Choice, Setting, SETTINGS};
use crate::pool::End;
use crate::run::check;
use crate::spec::Spec;
use crate::stats::percent;
use crate::sweep::{self, run_each};

/// Runs of each choice, each with a seed of its own.
pub const SEEDS: usize = 5;

/// Progress. The total number of runs is not known in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs made.
    pub done: usize,
    /// What they are for.
    pub doing: &'static str,
}

/// Result of a choice, or why it cannot run.
type Outcome = Result<Measured, String>;

/// Results by choice and seed.
type Known = BTreeMap<(Choice, u64), Outcome>;

/// All runs so far.
pub(super) struct Runs<'a> {
    question: &'a Question,
    stop: &'a mut dyn FnMut() -> bool,
    show: &'a mut dyn FnMut(Progress),
    known: Known,
    seeds: Vec<u64>,
    made: usize,
    pub doing: &'static str,
}

impl<'a> Runs<'a> {
    pub fn new(
        question: &'a Question,
        stop: &'a mut dyn FnMut() -> bool,
        show: &'a mut dyn FnMut(Progress),
    ) -> Self {
        let first = question.spec.seed;
        let seeds = (1..=SEEDS as u64).map(|i| first.wrapping_add(i)).collect();
        Runs { question, stop, show, known: BTreeMap::new(), seeds, made: 0, doing: "searching" }
    }

    pub fn spec(&self) -> &'a Spec {
        &self.question.spec
    }

    pub fn goal(&self) -> Goal {
        self.question.goal
    }

    pub fn made(&self) -> usize {
        self.made
    }

    /// The seed of the search.
    pub fn seed(&self) -> u64 {
        self.question.spec.seed
    }

    /// Seeds of the comparisons, different from that of the search, whose best may be
    /// luck.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// Does the budget allow `more` runs?
    pub fn affords(&self, more: usize) -> bool {
        self.made + more <= self.question.budget
    }

    /// How many of the choices can run and have not.
    pub fn unknown(&self, choices: &[Choice]) -> usize {
        let seed = self.seed();
        let unknown = |c: &&Choice| !self.known.contains_key(&((*c).clone(), seed));
        choices.iter().filter(unknown).filter(|c| check(&c.spec(self.spec(), seed)).is_ok()).count()
    }

    /// Runs choices with the seed of the search.
    pub fn look(&mut self, choices: Vec<Choice>) -> Result<(), AdviceError> {
        let seed = self.seed();
        self.make(&choices.into_iter().map(|c| (c, seed)).collect::<Vec<_>>())
    }

    /// Runs the choices that have not run.
    pub fn make(&mut self, wanted: &[(Choice, u64)]) -> Result<(), AdviceError> {
        let unknown = wanted.iter().filter(|key| !self.known.contains_key(*key));
        let unknown: BTreeSet<_> = unknown.cloned().collect();
        let specs = unknown.into_iter().map(|(c, seed)| {
            let spec = c.spec(self.spec(), seed);
            ((c, seed), spec)
        });
        let ran = self.run(specs.collect())?;
        self.known.extend(ran);
        Ok(())
    }

    /// Runs specs; returns what became of them.
    fn run<K: Send + 'static>(
        &mut self,
        specs: Vec<(K, Spec)>,
    ) -> Result<Vec<(K, Outcome)>, AdviceError> {
        let Runs { made, show, stop, doing, .. } = self;
        let mut all = Vec::new();
        let end = run_each(self.question.jobs, specs, &mut *stop, |key, spec, outcome| {
            let outcome = outcome.ok_or_else(|| AdviceError::Panicked(settings(&spec)))?;
            *made += usize::from(!matches!(outcome, sweep::Outcome::Impossible(_)));
            show(Progress { done: *made, doing });
            let measured = match outcome {
                sweep::Outcome::Result(r) => Ok(Measured::of(&r)),
                sweep::Outcome::Stuck(why) | sweep::Outcome::Impossible(why) => Err(why),
            };
            all.push((key, measured));
            Ok::<_, AdviceError>(())
        })?;
        match end {
            End::Done => Ok(all),
            End::Stopped => Err(AdviceError::Stopped),
        }
    }

    /// Runs other specs; returns the results of those that finished, ordered by key.
    pub fn others<K: Copy + Ord + Send + 'static>(
        &mut self,
        specs: Vec<(K, Spec)>,
    ) -> Result<Vec<(K, Measured)>, AdviceError> {
        let ran = self.run(specs)?.into_iter();
        let mut all: Vec<_> = ran.filter_map(|(key, m)| Some((key, m.ok()?))).collect();
        all.sort_by_key(|(key, _)| *key);
        Ok(all)
    }

    /// The result of a choice with a seed, if known.
    pub fn get(&self, choice: &Choice, seed: u64) -> Option<&Outcome> {
        self.known.get(&(choice.clone(), seed))
    }

    /// The score of a choice in the search, if it ran.
    pub fn score(&self, choice: &Choice) -> Option<f64> {
        let measured = self.get(choice, self.seed())?.as_ref().ok()?;
        Some(self.goal().score(measured))
    }

    /// The same, if its latency is no reason against it.
    pub fn allowed_score(&self, choice: &Choice, start: &Choice) -> Option<f64> {
        let base = self.get(start, self.seed())?.as_ref().ok()?;
        let measured = self.get(choice, self.seed())?.as_ref().ok()?;
        self.goal().allows(measured, base).then(|| self.goal().score(measured))
    }

    /// The results of a choice with all seeds, if it ran with each.
    pub fn all(&self, choice: &Choice) -> Option<Vec<Measured>> {
        let one = |seed: &u64| self.get(choice, *seed)?.as_ref().ok().copied();
        self.seeds.iter().map(one).collect()
    }

    /// The other values tried of a setting, everything else as chosen.
    pub fn neighbours(&self, best: &Choice, setting: usize) -> Vec<Tried> {
        let seed = self.seed();
        let Some(score) = self.score(best) else { return Vec::new() };
        let mut tried = Vec::new();
        for ((choice, of), outcome) in &self.known {
            let value = choice.value(setting);
            if *of != seed || choice == best || *choice != best.with(setting, value) {
                continue;
            }
            let gain = outcome.as_ref().map(|m| percent(libm::log(self.goal().score(m) / score)));
            tried.push(Tried { value: value.into(), gain: gain.map_err(Clone::clone) });
        }
        // Numbers by their size.
        tried.sort_by_key(|t| (t.value.parse::<u64>().ok(), t.value.clone()));
        tried
    }
}

fn settings(spec: &Spec) -> String {
    let choice = Choice::of(spec).expect("it could be run");
    let one = |(i, s): (usize, &Setting)| format!("{}={}", s.key, choice.value(i));
    SETTINGS.iter().enumerate().map(one).collect::<Vec<_>>().join(" ")
}
