// SPDX-License-Identifier: GPL-2.0-only
//! A figure: published beside simulated values, and how well they agree.

use serde::Serialize;

use super::published::{Published, Stated};
use crate::chart::{self, number, Axis, Bar, BarChart, BarSeries, Group, LineChart, Look};
use crate::stats::{estimate, Estimate};

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name, for its files and `--only`.
    pub id: &'static str,
    /// Title.
    pub title: String,
    /// Short name of the publication.
    pub name: String,
    /// Where it was published.
    pub source: String,
    /// What was run to make it.
    pub about: Vec<String>,
    /// To the right.
    pub x: Across,
    /// Upwards, with its unit.
    pub y: Axis,
    /// Is more or less better? None: neither.
    pub better: Option<Better>,
    /// The systems or devices compared.
    pub series: Vec<Series>,
    /// Claims of the publication.
    pub claims: Vec<Claim>,
    /// Further notes.
    pub notes: Vec<String>,
}

/// The x axis.
#[derive(Clone, Debug)]
pub enum Across {
    /// Numbers: lines.
    Numbers(Axis),
    /// What is named, and the names: bars; `x` of the points is the index.
    Names(&'static str, Vec<String>),
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More.
    More,
    /// Less.
    Less,
}

/// The values of one system.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// Is it this project's engine?
    pub ours: bool,
    /// Is it a published system, to compare ours with?
    pub rival: bool,
    /// Only series of the same field are compared.
    pub field: u8,
    /// Published values by x.
    pub published: Vec<(f64, Stated)>,
    /// Simulated values by x; of several seeds their means.
    pub simulated: Vec<(f64, f64)>,
    /// The interval of each mean; none at all with one seed.
    pub spread: Vec<(f64, f64)>,
}

/// How well a claim was reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within its tolerance, and on the same side of no effect.
    Reproduced,
    /// The effect has the published direction, however large it is; for a plain size:
    /// within a factor of two.
    SameDirection,
    /// Neither.
    NotReproduced,
}

/// A published number and the simulated one.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// What was published.
    pub published: Published,
    /// The simulated value, of several seeds their mean; None if a run failed.
    pub simulated: Option<f64>,
    /// The interval of the mean; None with one seed.
    pub spread: Option<(f64, f64)>,
    /// Tolerance in percent.
    pub within: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// The likely reason, unless it was reproduced.
    pub reason: String,
    /// The same, for whatever the verdict over all seeds is.
    #[serde(skip)]
    because: String,
}

/// A point where this project's engine is behind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// Where.
    pub at: String,
    /// Our value.
    pub ours: f64,
    /// The best published system there.
    pub rival: String,
    /// Its value.
    pub theirs: f64,
}

impl Loss {
    /// For people.
    pub fn text(&self) -> String {
        format!("at {}: {}, {} {}", self.at, number(self.ours), self.rival, number(self.theirs))
    }
}

impl Series {
    /// A series without points.
    pub fn new(name: impl Into<String>, look: Look) -> Series {
        Series {
            name: name.into(),
            look,
            ours: false,
            rival: false,
            field: 0,
            published: Vec::new(),
            simulated: Vec::new(),
            spread: Vec::new(),
        }
    }

    /// Adds a simulated point, if there is one.
    pub fn point(mut self, x: f64, y: Option<f64>) -> Series {
        self.simulated.extend(y.filter(|y| y.is_finite()).map(|y| (x, y)));
        self
    }

    /// Adds simulated points.
    pub fn points(self, points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Series {
        points.into_iter().fold(self, |s, (x, y)| s.point(x, y))
    }

    /// Adds a published point.
    pub fn publish(mut self, x: f64, value: &Published) -> Series {
        self.published.push((x, value.is));
        self
    }
}

/// Default tolerance of a claim, percent.
pub const WITHIN: f64 = 10.0;

impl Claim {
    /// Compares a simulated value with a published one.
    pub fn new(published: &Published, simulated: Option<f64>, reason: &str) -> Claim {
        Claim::within(WITHIN, published, simulated, reason)
    }

    /// The same with a tolerance in percent.
    pub fn within(
        within: f64,
        published: &Published,
        simulated: Option<f64>,
        reason_of: &str,
    ) -> Claim {
        let simulated = simulated.filter(|s| s.is_finite());
        let verdict = simulated.map_or(Verdict::NotReproduced, |s| {
            judge(published.is, published.neutral, s, within / 100.0)
        });
        let reason = match (simulated, verdict) {
            (None, _) => "a run it needs failed".into(),
            (_, Verdict::Reproduced) => String::new(),
            _ => reason_of.into(),
        };
        let (published, because) = (published.clone(), reason_of.into());
        Claim { published, simulated, spread: None, within, verdict, reason, because }
    }

    /// The claim for the mean over several seeds; each is the same claim for one.
    fn over_seeds(each: &[&Claim]) -> Claim {
        let first = each[0];
        let values: Option<Vec<f64>> = each.iter().map(|c| c.simulated).collect();
        let of = values.as_deref().and_then(estimate);
        let mean = of.map(|e| e.mean);
        let claim = Claim::within(first.within, &first.published, mean, &first.because);
        Claim { spread: of.map(|e| (e.low, e.high)), ..claim }
    }

    /// The verdict, for people.
    pub fn verdict_text(&self) -> String {
        let bound = matches!(self.published.is, Stated::Above(_) | Stated::Below(_));
        match self.verdict {
            Verdict::Reproduced if bound => "reproduced".into(),
            Verdict::Reproduced => format!("reproduced within {} %", number(self.within)),
            Verdict::SameDirection => {
                format!("same direction, not within {} %", number(self.within))
            }
            Verdict::NotReproduced => "not reproduced".into(),
        }
    }

    /// The simulated value with its interval, for people; `-` if there is none.
    pub fn simulated_text(&self) -> String {
        self.simulated.map_or_else(|| "-".into(), |v| with_spread(v, self.spread))
    }

    /// `+12 %`, or nothing for a bound.
    pub fn difference(&self) -> String {
        match (self.published.is, self.simulated) {
            (Stated::Value(v), Some(s)) => chart::difference(v, s),
            (Stated::Range(a, _), Some(s)) if s < a => chart::difference(a, s),
            (Stated::Range(_, b), Some(s)) if s > b => chart::difference(b, s),
            (Stated::Range(..), Some(_)) => "within".into(),
            _ => String::new(),
        }
    }
}

fn judge(stated: Stated, neutral: Option<f64>, s: f64, within: f64) -> Verdict {
    let near = |v: f64| (s - v).abs() <= within * v.abs();
    // A gain of 5 % is not reproduced by a loss of 4 %, however near the ratios are.
    let opposite = |v: f64| neutral.is_some_and(|n| (s - n) * (v - n) < 0.0);
    let reproduced = match stated {
        Stated::Value(v) => near(v) && !opposite(v),
        Stated::Range(a, b) => {
            let inside = (a..=b).contains(&s);
            inside || ((near(a) || near(b)) && !(opposite(a) && opposite(b)))
        }
        Stated::Above(v) => s > v,
        Stated::Below(v) => s < v,
    };
    if reproduced {
        return Verdict::Reproduced;
    }
    let p = stated.number();
    let same = match (stated, neutral) {
        (Stated::Above(_) | Stated::Below(_), _) => false,
        (_, Some(n)) if p != n => (s - n) * (p - n) > 0.0,
        _ => s > p / 2.0 && s < p * 2.0,
    };
    if same {
        Verdict::SameDirection
    } else {
        Verdict::NotReproduced
    }
}

/// A mean with the ends of its interval.
pub(super) fn with_spread(value: f64, spread: Option<(f64, f64)>) -> String {
    match spread.map(|(low, high)| (number(low), number(high))) {
        Some((low, high)) if low != high => format!("{} ({low} to {high})", number(value)),
        _ => number(value),
    }
}

/// A row of a figure's table.
pub struct Row<'a> {
    /// Of the series.
    pub series: &'a Series,
    /// Where, in words.
    pub x: String,
    /// What was published there.
    pub published: Option<Stated>,
    /// What was simulated there.
    pub simulated: Option<f64>,
    /// The interval of the mean over the seeds.
    pub spread: Option<(f64, f64)>,
}

impl Row<'_> {
    /// Difference in percent, if there are both values.
    pub fn difference(&self) -> Option<f64> {
        match (self.published, self.simulated) {
            (Some(Stated::Value(p)), Some(s)) if p != 0.0 => Some((s / p - 1.0) * 100.0),
            _ => None,
        }
    }
}

impl Figure {
    /// All values: one row per series and x.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for series in &self.series {
            let (published, simulated) = (&series.published, &series.simulated);
            let mut xs: Vec<f64> =
                published.iter().map(|p| p.0).chain(simulated.iter().map(|p| p.0)).collect();
            xs.sort_by(f64::total_cmp);
            xs.dedup();
            rows.extend(xs.into_iter().map(|x| {
                let at = simulated.iter().position(|p| p.0 == x);
                Row {
                    series,
                    x: self.place(x),
                    published: published.iter().find(|p| p.0 == x).map(|p| p.1),
                    simulated: at.map(|i| simulated[i].1),
                    spread: at.and_then(|i| series.spread.get(i).copied()),
                }
            }));
        }
        rows
    }

    /// One figure of those that each of several seeds gave: means with intervals, and the
    /// verdicts about the means. A point that some seed lacks is left out.
    ///
    /// # Panics
    /// If there is none.
    pub fn over_seeds(each: Vec<Figure>) -> Figure {
        let mut figure = each[0].clone();
        if each.len() == 1 {
            return figure;
        }
        for (i, s) in figure.series.iter_mut().enumerate() {
            let all: Vec<&Series> = each.iter().map(|f| &f.series[i]).collect();
            let points = s.simulated.iter().filter_map(|(x, _)| Some((*x, estimate_at(&all, *x)?)));
            let points: Vec<(f64, Estimate)> = points.collect();
            s.simulated = points.iter().map(|(x, e)| (*x, e.mean)).collect();
            s.spread = points.iter().map(|(_, e)| (e.low, e.high)).collect();
        }
        for (i, claim) in figure.claims.iter_mut().enumerate() {
            *claim = Claim::over_seeds(&each.iter().map(|f| &f.claims[i]).collect::<Vec<_>>());
        }
        for note in each.into_iter().skip(1).flat_map(|f| f.notes) {
            if !figure.notes.contains(&note) {
                figure.notes.push(note);
            }
        }
        figure
    }

    fn place(&self, x: f64) -> String {
        match &self.x {
            Across::Names(_, names) => names[x as usize].clone(),
            // In full: 0.75 and 1234.5 are different places.
            Across::Numbers(_) => format!("{x}"),
        }
    }

    /// Points where this project's engine is more than 1 % worse than the best published
    /// system.
    pub fn losses(&self) -> Vec<Loss> {
        let Some(better) = self.better else { return Vec::new() };
        let ours = self.series.iter().filter(|s| s.ours);
        ours.flat_map(|s| self.losses_of(s, better)).collect()
    }

    fn losses_of(&self, ours: &Series, better: Better) -> Vec<Loss> {
        let worse = |a: f64, b: f64| match better {
            Better::More => a < b,
            Better::Less => a > b,
        };
        let best = |x: f64| {
            let theirs = self.series.iter().filter(|s| s.rival && s.field == ours.field);
            let there = theirs.flat_map(|s| {
                s.simulated.iter().filter(|p| p.0 == x).map(move |p| (s.name.as_str(), p.1))
            });
            there.reduce(|a, b| if worse(a.1, b.1) { b } else { a })
        };
        let lost = ours.simulated.iter().filter_map(|(x, value)| {
            let (rival, theirs) = best(*x)?;
            let lost = worse(*value, theirs) && (value - theirs).abs() > theirs.abs() * 0.01;
            let at = self.place(*x);
            lost.then(|| Loss { at, ours: *value, rival: rival.into(), theirs })
        });
        lost.collect()
    }

    /// The picture.
    pub fn svg(&self) -> String {
        match &self.x {
            Across::Numbers(x) => self.lines(x).svg(),
            Across::Names(what, names) => self.bars(what, names).svg(),
        }
    }

    fn lines(&self, x: &Axis) -> LineChart {
        let line = |s: &Series, published: bool, points: Vec<(f64, f64)>| chart::Series {
            spread: if published { Vec::new() } else { s.spread.clone() },
            label: if published { format!("{}, published", s.name) } else { s.name.clone() },
            look: s.look,
            published,
            // No line between single published points.
            line: !published,
            points,
        };
        let stated = |s: &Series| s.published.iter().map(|p| (p.0, p.1.number())).collect();
        let simulated = self.series.iter().map(|s| line(s, false, s.simulated.clone()));
        let published = self.series.iter().map(|s| line(s, true, stated(s)));
        let series = simulated.chain(published).filter(|s| !s.points.is_empty()).collect();
        let (title, subtitle) = (self.title.clone(), self.name.clone());
        LineChart { title, subtitle, x: x.clone(), y: self.y.clone(), series }
    }

    fn bars(&self, what: &str, names: &[String]) -> BarChart {
        let mut series = Vec::new();
        let mut groups: Vec<Group> =
            names.iter().map(|n| Group { label: n.clone(), bars: Vec::new() }).collect();
        for s in &self.series {
            for published in [true, false] {
                let bars: Vec<_> = (0..names.len()).map(|x| s.bar(published, x as f64)).collect();
                if bars.iter().all(Option::is_none) {
                    continue;
                }
                let label =
                    if published { format!("{}, published", s.name) } else { s.name.clone() };
                series.push(BarSeries { label, look: s.look, published });
                groups.iter_mut().zip(bars).for_each(|(g, bar)| g.bars.push(bar));
            }
        }
        let (title, subtitle) = (self.title.clone(), self.name.clone());
        BarChart { title, subtitle, x: what.into(), y: self.y.clone(), series, groups }
    }
}

/// The mean of all seeds at a place, if each has it.
fn estimate_at(all: &[&Series], x: f64) -> Option<Estimate> {
    let at = |s: &&Series| s.simulated.iter().find(|p| p.0 == x).map(|p| p.1);
    estimate(&all.iter().map(at).collect::<Option<Vec<f64>>>()?)
}

impl Series {
    fn bar(&self, published: bool, x: f64) -> Option<Bar> {
        match published {
            true => self.published.iter().find(|p| p.0 == x).map(|p| match p.1 {
                Stated::Range(low, high) => Bar::range(low, high),
                other => Bar::of(other.number()),
            }),
            false => {
                let at = self.simulated.iter().position(|p| p.0 == x)?;
                Some(Bar::of(self.simulated[at].1).with(self.spread.get(at).copied()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::published::Reading;

    fn stated(is: Stated, neutral: Option<f64>) -> Published {
        Published {
            id: "x".into(),
            what: "x".into(),
            is,
            unit: String::new(),
            neutral,
            place: "here".into(),
            reading: Reading::Text,
            source: "there".into(),
        }
    }

    #[test]
    fn verdicts() {
        use Verdict::*;
        for (is, neutral, simulated, verdict) in [
            (Stated::Value(2.0), Some(1.0), 1.9, Reproduced),
            (Stated::Value(2.0), Some(1.0), 5.0, SameDirection),
            (Stated::Value(2.0), Some(1.0), 0.9, NotReproduced),
            (Stated::Value(2.0), None, 3.9, SameDirection),
            (Stated::Value(2.0), None, 4.1, NotReproduced),
            (Stated::Value(1.0), Some(1.0), 1.5, SameDirection),
            (Stated::Value(1.0), Some(1.0), 0.95, Reproduced),
            (Stated::Value(1.05), Some(1.0), 1.01, Reproduced),
            (Stated::Value(1.05), Some(1.0), 0.99, NotReproduced),
            (Stated::Range(1.02, 1.2), Some(1.0), 0.98, NotReproduced),
            (Stated::Range(28.0, 52.0), Some(0.0), 40.0, Reproduced),
            (Stated::Range(28.0, 52.0), Some(0.0), 55.0, Reproduced),
            (Stated::Range(28.0, 52.0), Some(0.0), 10.0, SameDirection),
            (Stated::Range(28.0, 52.0), Some(0.0), -10.0, NotReproduced),
            (Stated::Above(1.0), Some(1.0), 1.01, Reproduced),
            (Stated::Above(1.0), Some(1.0), 0.99, NotReproduced),
        ] {
            let claim = Claim::new(&stated(is, neutral), Some(simulated), "because");
            assert_eq!(claim.verdict, verdict, "{is:?} {simulated}");
            assert_eq!(claim.reason.is_empty(), verdict == Reproduced);
        }
        let failed = Claim::new(&stated(Stated::Value(1.0), None), None, "because");
        assert_eq!(
            (failed.verdict, failed.reason.as_str()),
            (NotReproduced, "a run it needs failed")
        );
    }

    #[test]
    fn seeds_are_averaged() {
        let figure = |values: [f64; 2], claimed: f64| {
            let points = [(10.0, Some(values[0])), (20.0, Some(values[1]))];
            let claim =
                Claim::new(&stated(Stated::Value(2.0), Some(1.0)), Some(claimed), "because");
            Figure {
                id: "x",
                title: String::new(),
                name: String::new(),
                source: String::new(),
                about: vec![],
                x: Across::Numbers(Axis::new("x")),
                y: Axis::new("y"),
                better: None,
                series: vec![Series::new("one", Look::other(0)).points(points)],
                claims: vec![claim],
                notes: vec!["the same".into()],
            }
        };
        let one = Figure::over_seeds(vec![figure([1.0, 5.0], 2.1)]);
        assert!(one.series[0].spread.is_empty() && one.claims[0].spread.is_none());
        let all = Figure::over_seeds(vec![
            figure([1.0, 5.0], 2.1),
            figure([2.0, 5.0], 1.5),
            figure([3.0, 5.0], 1.5),
        ]);
        let s = &all.series[0];
        assert_eq!((s.simulated[0], s.simulated[1]), ((10.0, 2.0), (20.0, 5.0)));
        assert!(s.spread[0].0 < 0.0 && s.spread[0].1 > 4.0 && s.spread[1] == (5.0, 5.0));
        let claim = &all.claims[0];
        assert_eq!(claim.verdict, Verdict::SameDirection, "of the mean, 1.7");
        assert_eq!((claim.reason.as_str(), all.notes.len()), ("because", 1));
        assert_eq!(all.rows()[0].spread, Some(s.spread[0]));
        roxmltree::Document::parse(&all.svg()).unwrap();
    }

    #[test]
    fn losses_are_listed() {
        let look = Look::other(0);
        let mut ours = Series::new("znsage", look).points([(10.0, Some(5.0)), (20.0, Some(9.0))]);
        ours.ours = true;
        let mut theirs = Series::new("other", look).points([(10.0, Some(6.0)), (20.0, Some(8.0))]);
        theirs.rival = true;
        let figure = Figure {
            id: "x",
            title: String::new(),
            name: String::new(),
            source: String::new(),
            about: vec![],
            x: Across::Numbers(Axis::new("x")),
            y: Axis::new("y"),
            better: Some(Better::More),
            series: vec![ours, theirs],
            claims: vec![],
            notes: vec![],
        };
        assert_eq!(figure.losses()[0].text(), "at 10: 5, other 6");
        assert_eq!(figure.losses().len(), 1);
        let less = Figure { better: Some(Better::Less), ..figure.clone() };
        assert_eq!(less.losses()[0].text(), "at 20: 9, other 8");
        assert_eq!(figure.rows().len(), 4);
    }
}
