// SPDX-License-Identifier: GPL-2.0-only
//! Colours and characters. Only the sixteen colours of the terminal are used, and no
//! information depends on colour alone.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::bar;

use crate::top::map::{State, Zone};

/// Abilities of the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    pub color: bool,
    /// ASCII only.
    pub ascii: bool,
}

const ASCII_BARS: bar::Set = bar::Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "*",
    five_eighths: "+",
    half: "=",
    three_eighths: "-",
    one_quarter: ".",
    one_eighth: "_",
    empty: " ",
};

const SHARES: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII_SHARES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

impl Look {
    pub fn fg(self, color: Color) -> Style {
        match self.color {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    /// For labels and rules.
    pub fn faint(self) -> Style {
        self.fg(Color::DarkGray)
    }

    pub fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub fn bad(self) -> Style {
        self.fg(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub fn bars(self) -> bar::Set<'static> {
        if self.ascii {
            ASCII_BARS
        } else {
            bar::NINE_LEVELS
        }
    }

    pub fn rule(self) -> &'static str {
        if self.ascii {
            "-"
        } else {
            "─"
        }
    }

    pub fn cut(self) -> &'static str {
        if self.ascii {
            "~"
        } else {
            "…"
        }
    }

    /// The filled and the empty part of a bar.
    pub fn gauge(self) -> [&'static str; 2] {
        if self.ascii {
            ["#", "."]
        } else {
            ["█", "░"]
        }
    }

    /// A share of live blocks, 0 to 1.
    fn share(self, share: f64) -> &'static str {
        let signs: &[&'static str] = if self.ascii { &ASCII_SHARES } else { &SHARES };
        let i = (share * signs.len() as f64) as usize;
        signs[i.min(signs.len() - 1)]
    }

    /// Character and style of a cell of the map.
    pub fn zone(self, zone: Zone) -> (&'static str, Style) {
        match zone.state {
            State::Empty => (if self.ascii { "." } else { "·" }, self.faint()),
            State::Full => (self.share(zone.live), self.fg(heat(zone.live))),
            State::Open => ("o", self.fg(Color::LightCyan)),
            State::Closing => ("c", self.fg(Color::Cyan)),
            State::Victim => ("v", self.fg(Color::LightMagenta).add_modifier(Modifier::BOLD)),
            State::Reset => ("r", self.fg(Color::LightMagenta)),
            State::Retired => ("!", self.bad()),
        }
    }
}

/// Mostly live zones are good; mostly stale ones are the next victims.
fn heat(live: f64) -> Color {
    match live {
        n if n < 1.0 / 3.0 => Color::Red,
        n if n < 2.0 / 3.0 => Color::Yellow,
        _ => Color::Green,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_differ_without_colour() {
        use State::*;
        for ascii in [false, true] {
            let look = Look { color: false, ascii };
            let sign = |state| look.zone(Zone { state, live: 0.5 }).0;
            let mut signs = [Retired, Victim, Reset, Open, Closing, Full, Empty].map(sign).to_vec();
            assert!(!ascii || signs.iter().all(|s| s.is_ascii()));
            signs.sort_unstable();
            signs.dedup();
            assert_eq!(signs.len(), 7);
            let (_, style) = look.zone(Zone { state: Full, live: 0.1 });
            assert_eq!(style.fg, None);
        }
    }

    #[test]
    fn shares_go_from_least_to_most() {
        let signs = |ascii: bool| {
            let look = Look { color: true, ascii };
            let shares = (0..=100).map(|i| look.share(f64::from(i) / 100.0));
            let mut signs: Vec<_> = shares.collect();
            signs.dedup();
            signs.concat()
        };
        assert_eq!(signs(false), "▁▂▃▄▅▆▇█");
        assert_eq!(signs(true), "0123456789");
    }
}
