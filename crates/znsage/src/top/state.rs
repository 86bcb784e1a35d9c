// SPDX-License-Identifier: GPL-2.0-only
//! The state of the screen, changed by samples and keys and drawn by the view. Uses no
//! terminal, clock or file.

use std::time::Duration;

use super::groups::Group;
use super::keys::Key;
use super::map::Map;
use super::rates::{self, History, Rates, Seen};
use super::rows::{self, Order, Row, Which};
use super::sample::Sample;
use crate::error::Result;

/// A device that is on, or was since the start.
#[derive(Debug)]
pub struct Watched {
    pub name: String,
    pub seen: Seen,
    pub gone: bool,
    /// None at the first sample.
    pub rates: Option<Rates>,
    pub history: History,
    pub streams: Vec<Row>,
    pub map: Map,
    at: Duration,
}

/// Sorting and scrolling of a table.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub order: Order,
    pub scroll: usize,
}

/// What a key asks of the main loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Quit,
    /// Redraw the whole screen.
    Redraw,
    /// Suspend, as after Ctrl-Z.
    Suspend,
}

/// Intervals for + and -, in ms.
const INTERVALS: [u64; 9] = [250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000];

/// Rows to move for PageUp and PageDown.
const PAGE: usize = 10;

#[derive(Debug)]
pub struct State {
    /// In bytes.
    pub page: u64,
    /// Ordered by number.
    pub devices: Vec<Watched>,
    /// Name of the displayed device.
    pub shown: String,
    pub groups: Vec<Row>,
    /// None without cgroup v2.
    last_groups: Option<Vec<Group>>,
    groups_at: Duration,
    pub interval: Duration,
    pub paused: bool,
    pub help: bool,
    pub table: Which,
    pub streams_place: Place,
    pub groups_place: Place,
    /// Error of the last sample.
    pub problem: Option<String>,
    looked: Option<Duration>,
}

impl State {
    /// `page` in bytes; `shown` is the device to display first.
    pub fn new(page: u64, interval: Duration, shown: String) -> Self {
        let place = |column| Place { order: Order { column, reverse: false }, scroll: 0 };
        State {
            page,
            devices: Vec::new(),
            shown,
            groups: Vec::new(),
            last_groups: None,
            groups_at: Duration::ZERO,
            interval,
            paused: false,
            help: false,
            table: Which::Streams,
            streams_place: place(1),
            groups_place: place(0),
            problem: None,
            looked: None,
        }
    }

    pub fn device(&self) -> Option<&Watched> {
        self.devices.get(self.selected()?)
    }

    /// Index of the displayed device.
    pub fn selected(&self) -> Option<usize> {
        self.devices.iter().position(|d| d.name == self.shown)
    }

    /// Displays another device. A sample is due, because zones and cgroups are those of
    /// the previous device.
    fn show(&mut self, i: usize) {
        let Some(device) = self.devices.get(i).filter(|d| d.name != self.shown) else {
            return;
        };
        self.shown = device.name.clone();
        self.last_groups = self.last_groups.as_ref().map(|_| Vec::new());
        self.looked = None;
    }

    pub fn has_groups(&self) -> bool {
        self.last_groups.is_some()
    }

    /// True if groups have no rates, because their parents do not enable the io controller.
    pub fn lacks_io(&self) -> bool {
        self.last_groups.iter().flatten().any(|group| group.out_bytes.is_none())
    }

    /// Time until the next sample; None while paused.
    pub fn due(&self, now: Duration) -> Option<Duration> {
        if self.paused {
            return None;
        }
        let next = self.looked.map_or(now, |looked| looked + self.interval);
        Some(next.saturating_sub(now))
    }

    /// Adds the sample taken at `at`.
    pub fn take(&mut self, sample: Result<Sample>, at: Duration) {
        self.looked = Some(at);
        let mut sample = match sample {
            Ok(sample) => sample,
            Err(e) => {
                self.problem = Some(e.message);
                return;
            }
        };
        self.problem = None;
        for old in &mut self.devices {
            let gone = !sample.devices.iter().any(|seen| seen.device.name == old.name);
            if old.gone && !gone {
                // Its counters restarted.
                old.at = sample.at;
            }
            old.gone = gone;
        }
        for seen in std::mem::take(&mut sample.devices) {
            let map = match seen.device.name == self.shown {
                true => Some(std::mem::take(&mut sample.map)),
                false => None,
            };
            self.update(seen, map, &sample);
        }
        self.devices.sort_by_key(|d| (d.name.len(), d.name.clone()));
        if self.selected().is_none() {
            self.show(0);
        }
        let seconds = at.saturating_sub(self.groups_at).as_secs_f64();
        let before = self.last_groups.take().unwrap_or_default();
        self.groups = rows::groups(&before, sample.groups.as_deref().unwrap_or_default(), seconds);
        (self.last_groups, self.groups_at) = (sample.groups, at);
        self.sort();
    }

    fn update(&mut self, seen: Seen, map: Option<Map>, sample: &Sample) {
        let groups = sample.groups.as_deref().unwrap_or_default();
        let Some(watched) = self.devices.iter_mut().find(|d| d.name == seen.device.name) else {
            self.devices.push(Watched {
                name: seen.device.name.clone(),
                gone: false,
                rates: None,
                history: History::default(),
                streams: rows::streams(None, &seen, groups, 0.0, self.page),
                map: map.unwrap_or_default(),
                at: sample.at,
                seen,
            });
            return;
        };
        let seconds = sample.at.saturating_sub(watched.at).as_secs_f64();
        watched.rates = rates::between(&watched.seen, &seen, seconds, self.page);
        match &watched.rates {
            Some(rates) => watched.history.add(rates),
            None => watched.history = History::default(),
        }
        let before = watched.rates.is_some().then_some(&watched.seen);
        watched.streams = rows::streams(before, &seen, groups, seconds, self.page);
        watched.map = map.unwrap_or(std::mem::take(&mut watched.map));
        (watched.seen, watched.at) = (seen, sample.at);
    }

    fn sort(&mut self) {
        rows::sort(&mut self.groups, self.groups_place.order);
        for device in &mut self.devices {
            rows::sort(&mut device.streams, self.streams_place.order);
        }
    }

    pub fn place(&self, which: Which) -> Place {
        match which {
            Which::Streams => self.streams_place,
            Which::Groups => self.groups_place,
        }
    }

    fn place_mut(&mut self) -> &mut Place {
        match self.table {
            Which::Streams => &mut self.streams_place,
            Which::Groups => &mut self.groups_place,
        }
    }

    pub fn rows(&self, which: Which) -> &[Row] {
        match which {
            Which::Streams => self.device().map_or(&[], |d| &d.streams),
            Which::Groups => &self.groups,
        }
    }

    /// Handles a key; returns a request to the main loop, if any.
    pub fn press(&mut self, key: Key) -> Option<Request> {
        match key {
            Key::Char('q') | Key::Ctrl('c') => return Some(Request::Quit),
            Key::Ctrl('z') => return Some(Request::Suspend),
            Key::Ctrl('l') => return Some(Request::Redraw),
            Key::Char('?' | 'h') => self.help = !self.help,
            Key::Escape => self.help = false,
            Key::Char('p' | ' ') => self.paused = !self.paused,
            Key::Char('+' | '=') => self.interval = longer(self.interval),
            Key::Char('-') => self.interval = shorter(self.interval),
            Key::Tab | Key::Right => self.go(1),
            Key::BackTab | Key::Left => self.go(-1),
            Key::Char(digit @ '1'..='9') => {
                self.show(digit as usize - '1' as usize);
            }
            Key::Char('t') => {
                self.table = match self.table {
                    Which::Streams => Which::Groups,
                    Which::Groups => Which::Streams,
                }
            }
            Key::Char('s' | '>') => self.sort_by(1),
            Key::Char('S' | '<') => self.sort_by(-1),
            Key::Char('r') => {
                let order = &mut self.place_mut().order;
                order.reverse = !order.reverse;
                self.sort();
            }
            Key::Up | Key::Char('k') => self.scroll(-1),
            Key::Down | Key::Char('j') => self.scroll(1),
            Key::PageUp => self.scroll(-(PAGE as isize)),
            Key::PageDown => self.scroll(PAGE as isize),
            Key::Home => self.place_mut().scroll = 0,
            Key::End => self.scroll(isize::MAX),
            _ => {}
        }
        None
    }

    /// Moves to another device, wrapping around.
    fn go(&mut self, by: isize) {
        let n = self.devices.len().max(1) as isize;
        let now = self.selected().unwrap_or(0) as isize;
        self.show((now + by).rem_euclid(n) as usize);
    }

    fn sort_by(&mut self, by: isize) {
        let n = self.table.columns().len() as isize;
        let order = &mut self.place_mut().order;
        order.column = (order.column as isize + by).rem_euclid(n) as usize;
        self.sort();
    }

    fn scroll(&mut self, by: isize) {
        let last = self.rows(self.table).len().saturating_sub(1);
        let place = self.place_mut();
        place.scroll = place.scroll.saturating_add_signed(by).min(last);
    }
}

fn longer(interval: Duration) -> Duration {
    let mut steps = INTERVALS.map(Duration::from_millis).into_iter();
    steps.find(|step| *step > interval).unwrap_or(interval)
}

fn shorter(interval: Duration) -> Duration {
    let mut steps = INTERVALS.map(Duration::from_millis).into_iter().rev();
    steps.find(|step| *step < interval).unwrap_or(interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Kind};

    fn seen(name: &str, host_blocks: u64) -> Seen {
        let mut seen = Seen::default();
        seen.device.name = name.to_string();
        seen.device.host_blocks = host_blocks;
        seen
    }

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// A state after one sample per second with these devices.
    fn after(looks: &[&[(&str, u64)]]) -> State {
        let mut state = State::new(4096, secs(1), "znsage2".to_string());
        for (i, devices) in looks.iter().enumerate() {
            look(&mut state, i as u64, devices);
        }
        state
    }

    fn look(state: &mut State, at: u64, devices: &[(&str, u64)]) {
        let devices = devices.iter().map(|(name, host)| seen(name, *host)).collect();
        state.take(Ok(Sample { at: secs(at), devices, ..Sample::default() }), secs(at));
    }

    fn out(state: &State) -> Option<f64> {
        state.device()?.rates.map(|r| r.out_bytes)
    }

    #[test]
    fn rates_need_two_samples() {
        let mut state = after(&[&[("znsage0", 100)]]);
        assert_eq!(out(&state), None);
        look(&mut state, 4, &[("znsage0", 500)]);
        assert_eq!(out(&state), Some(100.0 * 4096.0));
    }

    #[test]
    fn device_may_vanish_and_return() {
        let mut state = after(&[&[("znsage0", 100)], &[("znsage0", 200)], &[]]);
        assert!(state.device().unwrap().gone);
        assert_eq!(out(&state), Some(100.0 * 4096.0), "the last values stay");
        look(&mut state, 3, &[("znsage0", 500)]);
        assert!(!state.device().unwrap().gone);
        assert_eq!(out(&state), None, "its counters restarted");
        assert_eq!(state.device().unwrap().history.out.newest().count(), 0);
        look(&mut state, 4, &[("znsage0", 501)]);
        assert_eq!(out(&state), Some(4096.0));
    }

    #[test]
    fn new_device_does_not_change_the_displayed_one() {
        let mut state =
            after(&[&[("znsage2", 1)], &[("znsage10", 1), ("znsage1", 1), ("znsage2", 1)]]);
        let names: Vec<_> = state.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["znsage1", "znsage2", "znsage10"]);
        assert_eq!(state.device().unwrap().name, "znsage2");
        for (key, name) in [
            (Key::Tab, "znsage10"),
            (Key::Right, "znsage1"),
            (Key::BackTab, "znsage10"),
            (Key::Left, "znsage2"),
            (Key::Char('1'), "znsage1"),
            (Key::Char('9'), "znsage1"),
        ] {
            assert_eq!(state.press(key), None);
            assert_eq!(state.device().unwrap().name, name, "{key:?}");
        }
        assert_eq!(state.due(secs(1)), Some(secs(0)), "the zones of the new device must be read");
    }

    #[test]
    fn error_is_shown_until_the_next_good_sample() {
        let mut state = after(&[&[("znsage0", 1)]]);
        state.take(Err(Error::new(Kind::Kernel, "cannot read x")), secs(1));
        assert_eq!(state.problem.as_deref(), Some("cannot read x"));
        assert_eq!(state.devices.len(), 1);
        look(&mut state, 2, &[("znsage0", 1)]);
        assert_eq!(state.problem, None);
    }

    #[test]
    fn samples_are_due_after_the_interval() {
        let mut state = State::new(4096, secs(2), String::new());
        assert_eq!(state.due(secs(7)), Some(secs(0)));
        look(&mut state, 7, &[]);
        assert_eq!(state.due(secs(8)), Some(secs(1)));
        assert_eq!(state.due(secs(20)), Some(secs(0)));
        state.press(Key::Char('p'));
        assert_eq!(state.due(secs(20)), None);
        state.press(Key::Char(' '));
        assert_eq!(state.due(secs(20)), Some(secs(0)));
    }

    #[test]
    fn interval_changes_in_steps_within_limits() {
        let mut state = State::new(4096, Duration::from_millis(700), String::new());
        state.press(Key::Char('+'));
        assert_eq!(state.interval, secs(1));
        state.press(Key::Char('-'));
        assert_eq!(state.interval, Duration::from_millis(500));
        (0..20).for_each(|_| assert_eq!(state.press(Key::Char('-')), None));
        assert_eq!(state.interval, Duration::from_millis(250));
        (0..20).for_each(|_| assert_eq!(state.press(Key::Char('+')), None));
        assert_eq!(state.interval, secs(300));
    }

    #[test]
    fn tables_sort_and_scroll_independently() {
        let mut state = after(&[&[("znsage0", 1)]]);
        let group =
            |path: &str, swap_bytes| Group { path: path.into(), swap_bytes, ..Group::default() };
        let groups = Some(vec![group("a", 1), group("b", 3), group("c", 2)]);
        let sample =
            Sample { at: secs(1), devices: vec![seen("znsage0", 1)], groups, ..Sample::default() };
        state.take(Ok(sample), secs(1));
        state.press(Key::Char('t'));
        let first = |state: &State| state.rows(Which::Groups)[0][4].text.clone();
        assert_eq!(first(&state), "b");
        state.press(Key::Char('r'));
        assert_eq!(first(&state), "a");
        state.press(Key::Char('S'));
        assert_eq!((state.groups_place.order.column, first(&state)), (4, "c".to_string()));
        state.press(Key::Char('s'));
        assert_eq!(state.groups_place.order.column, 0);
        assert_eq!(state.streams_place.order.column, 1);
        for (key, scroll) in [
            (Key::Up, 0),
            (Key::Down, 1),
            (Key::PageDown, 2),
            (Key::End, 2),
            (Key::Char('k'), 1),
            (Key::Home, 0),
        ] {
            state.press(key);
            assert_eq!(state.groups_place.scroll, scroll, "{key:?}");
        }
    }

    #[test]
    fn keys_for_quit_suspend_and_help() {
        let mut state = after(&[]);
        assert_eq!(state.press(Key::Char('q')), Some(Request::Quit));
        assert_eq!(state.press(Key::Ctrl('c')), Some(Request::Quit));
        assert_eq!(state.press(Key::Ctrl('z')), Some(Request::Suspend));
        assert_eq!(state.press(Key::Ctrl('l')), Some(Request::Redraw));
        state.press(Key::Char('?'));
        assert!(state.help);
        assert_eq!(state.press(Key::Escape), None);
        assert!(!state.help);
        // Keys work without a device.
        for key in [Key::Tab, Key::Left, Key::Down, Key::End, Key::Char('s'), Key::Char('1')] {
            assert_eq!(state.press(key), None);
        }
    }
}
