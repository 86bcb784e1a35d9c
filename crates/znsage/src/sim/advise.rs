// SPDX-License-Identifier: GPL-2.0-only
//! `znsage sim advise`: settings for a device and a workload, and why.

use std::fmt::Write;
use std::time::Instant;

use serde_json::{json, Value};
use znsage_sim::advise::{
    self, Advice, AdviceError, Advised, Full, Gain, Goal, Measured, Question, Tried,
};
use znsage_sim::scale::{self, Scaled};
use znsage_sim::spec::SystemKind;
use znsage_sim::Spec;

use super::run::{self, failed};
use super::sweep;
use crate::cli::sim::{AdviseArgs, For};
use crate::error::{Error, Kind, Result};
use crate::outcome::Outcome;
use crate::{interrupt, progress};

impl For {
    fn goal(self) -> Goal {
        match self {
            For::Speed => Goal::Speed,
            For::Latency => Goal::Latency,
            For::Wear => Goal::Wear,
        }
    }

    /// The quantity that gains are percentages of.
    fn name(self) -> &'static str {
        match self {
            For::Speed => "speed",
            For::Latency => "latency",
            For::Wear => "flash life",
        }
    }
}

pub fn advise(args: &AdviseArgs) -> Result<Outcome> {
    let mut spec = args.what.spec(None, None)?;
    if spec.system != SystemKind::ZnSage {
        return Err(Error::new(
            Kind::Usage,
            format!("system: advice is for znsage only, not {}", spec.system),
        ));
    }
    if !args.what.has_size() {
        advise::quick(&mut spec).map_err(error)?;
    }
    let scaled = scale::device(&spec).map_err(|e| failed(&e.into()))?.scaled;
    let question = Question {
        spec,
        goal: args.goal.goal(),
        budget: args.budget.into(),
        jobs: sweep::jobs(args.jobs),
    };
    let begun = Instant::now();
    let advice = {
        let mut line = progress::Progress::new();
        let mut show = |p: advise::Progress| line.show(|| format!("{}: {} runs", p.doing, p.done));
        advise::advise(&question, &mut interrupt::seen, &mut show).map_err(error)?
    };
    let mut text = to_text(args.goal, &question.spec, scaled.as_ref(), &advice);
    let (runs, took) = (advice.runs, begun.elapsed().as_secs_f64());
    let _ =
        writeln!(text, "\n{runs} runs in {took:.0} s, comparisons with seeds {}", seeds(&advice));
    let json = to_json(args.goal, &question.spec, scaled.as_ref(), &advice);
    Ok(Outcome { text, json, damage: false })
}

fn error(e: AdviceError) -> Error {
    match &e {
        AdviceError::Run(e) => failed(e),
        AdviceError::Stopped => Error::interrupted(),
        AdviceError::Panicked(_) => Error::new(Kind::Failure, e.to_string()),
    }
}

fn seeds(advice: &Advice) -> String {
    let (first, last) = (advice.seeds[0], advice.seeds[advice.seeds.len() - 1]);
    format!("{first} to {last}")
}

/// A value in the form that the option accepts.
fn value(s: &Advised, value: &str) -> String {
    let number = || value.parse::<u64>().expect("it is a whole number");
    match s.setting.key {
        "znsage.chunk" => match number() {
            n if n % 1024 == 0 => format!("{}K", n / 1024),
            n => n.to_string(),
        },
        "znsage.deadline" => format!("{}us", number() / 1000),
        _ => value.to_string(),
    }
}

/// A value for the text. Watermarks of 0 mean the default.
fn shown(s: &Advised, of: &str) -> String {
    match (s.setting.key, of) {
        ("znsage.gc-low" | "znsage.gc-high", "0") => "the default".into(),
        _ => value(s, of),
    }
}

fn changed(advice: &Advice) -> impl Iterator<Item = &Advised> {
    advice.settings.iter().filter(|s| s.value != s.default)
}

/// The command that makes the settings.
fn command(advice: &Advice) -> String {
    let options = changed(advice).map(|s| format!(" {} {}", s.setting.option, value(s, &s.value)));
    "znsage on DEVICE".to_string() + &options.collect::<String>()
}

fn interval(g: &Gain) -> String {
    format!("{:+.1} % ({:+.1} to {:+.1})", g.percent, g.low, g.high)
}

fn to_text(goal: For, spec: &Spec, scaled: Option<&Scaled>, advice: &Advice) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", command(advice));
    text.push('\n');
    let _ = writeln!(
        text,
        "best {} of {} under {}, {} % in use",
        goal.name(),
        spec.device,
        spec.workload,
        spec.utilization
    );
    if let Some(s) = scaled {
        let _ = writeln!(text, "scaled: {}", run::scaled(s));
    }
    if let Some(instead) = &advice.instead {
        let _ = writeln!(text, "{instead}");
    }
    table(&mut text, &advice.before, &advice.after);
    why(&mut text, goal, advice);
    others(&mut text, goal, advice);
    full(&mut text, advice);
    if advice.cut_short {
        text += "the search used up its budget; --budget N extends it\n";
    }
    text
}

fn table(text: &mut String, before: &Measured, after: &Measured) {
    let _ = writeln!(text, "\n{:24}{:>12}{:>12}", "", "default", "advised");
    let mut row = |name: &str, of: fn(&Measured) -> f64, digits: usize| {
        let (a, b) = (of(before), of(after));
        let change = match a == 0.0 {
            true => String::new(),
            false => format!("{:+.1} %", (b / a - 1.0) * 100.0),
        };
        let line = format!("{name:24}{a:>12.digits$}{b:>12.digits$}  {change:>8}");
        let _ = writeln!(text, "{}", line.trim_end());
    };
    row("operations/s", |m| m.operations_s, 0);
    row("bandwidth, MB/s", |m| m.bandwidth_mb_s, 1);
    row("WAF", |m| m.waf, 3);
    row("fault p99, us", |m| m.p99_us, 0);
    row("stalls of swap-out", |m| m.stalls, 0);
    row("swap space, % of device", |m| m.space_percent, 1);
}

fn why(text: &mut String, goal: For, advice: &Advice) {
    let noise = advice.noise_percent;
    verified(text, goal, advice);
    let Some(gain) = &advice.gain else {
        let _ = writeln!(
            text,
            "\nno setting improves {} by more than the noise ({noise:.1} % between seeds): keep the default",
            goal.name()
        );
        return;
    };
    let _ = writeln!(
        text,
        "\n{} {} with 95 % confidence; {noise:.1} % between seeds. The interval covers the seeds of\n\
         this simulated device, not what the model leaves out",
        goal.name(),
        interval(gain)
    );
    if let Some(price) = price(advice) {
        let _ = writeln!(text, "cost: {price}");
    }
    for s in changed(advice) {
        let (is, was) = (shown(s, &s.value), shown(s, &s.default));
        let _ = write!(text, "  {} {is} instead of {was}: ", s.setting.option);
        let _ = match (&s.gain, &s.without) {
            (Some(gain), Some(without)) => writeln!(
                text,
                "{} {}; without it {:.1} MB/s, WAF {:.3}, p99 {:.0} us, {:.0} stalls",
                goal.name(),
                interval(gain),
                without.bandwidth_mb_s,
                without.waf,
                without.p99_us,
                without.stalls
            ),
            _ => writeln!(text, "{was} is impossible"),
        };
    }
}

/// What came of the advice on all zones of the device.
fn verified(text: &mut String, goal: For, advice: &Advice) {
    let Some(v) = &advice.verified else { return };
    let gain = match &v.gain {
        Some(gain) => format!("{} {}", goal.name(), interval(gain)),
        None => "a run gets stuck".into(),
    };
    let holds = if v.holds { "verified" } else { "what the search found is withdrawn" };
    let _ = writeln!(text, "\n{holds}: on all {} zones of the device, {gain}", v.zones);
}

/// What gets worse by more than a few percent.
fn price(advice: &Advice) -> Option<String> {
    const SMALL: f64 = 3.0;
    let (a, b) = (&advice.before, &advice.after);
    let worse = [
        ("operations", a.operations_s / b.operations_s),
        ("WAF", b.waf / a.waf),
        ("fault p99", b.p99_us / a.p99_us),
    ];
    let all = worse.into_iter().filter_map(|(name, ratio)| {
        let percent = (ratio - 1.0) * 100.0;
        (percent.is_finite() && percent > SMALL).then(|| format!("{name} worse by {percent:.0} %"))
    });
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Results with swap full, where over-provisioning matters.
fn full(text: &mut String, advice: &Advice) {
    if advice.full.is_empty() {
        return;
    }
    *text += "\nwith the advised settings and swap full, by over-provisioning:\n";
    let _ = writeln!(
        text,
        "  {:>17}{:>10}{:>8}{:>10}{:>14}{:>16}",
        "over-provisioning", "in use", "WAF", "MB/s", "operations/s", "fault p99, us"
    );
    for f in &advice.full {
        let (m, held) = (&f.measured, format!("{} %", f.over_provisioning));
        let used = format!("{} %", f.utilization);
        let _ = writeln!(
            text,
            "  {held:>17}{used:>10}{:>8.2}{:>10.1}{:>14.0}{:>16.0}",
            m.waf, m.bandwidth_mb_s, m.operations_s, m.p99_us
        );
    }
}

/// Values that were tried and rejected.
fn others(text: &mut String, goal: For, advice: &Advice) {
    let _ = writeln!(
        text,
        "\nalso tried: {} with this value instead of the advised one, one seed:",
        goal.name()
    );
    for s in &advice.settings {
        let one = |t: &Tried| match &t.gain {
            Ok(gain) => Some(format!("{} {gain:+.1} %", shown(s, &t.value))),
            Err(_) => None,
        };
        let could: Vec<String> = s.tried.iter().filter_map(one).collect();
        let not = s.tried.iter().filter(|t| t.gain.is_err()).map(|t| shown(s, &t.value));
        let not: Vec<String> = not.collect();
        let _ = write!(text, "  {} {}", s.setting.option, shown(s, &s.value));
        if !could.is_empty() {
            let _ = write!(text, "; {}", could.join(", "));
        }
        if !not.is_empty() {
            let _ = write!(text, "; impossible: {}", not.join(", "));
        }
        text.push('\n');
    }
}

fn to_json(goal: For, spec: &Spec, scaled: Option<&Scaled>, advice: &Advice) -> Value {
    let measured = |m: &Measured| {
        json!({
            "operations_s": m.operations_s,
            "bandwidth_mb_s": m.bandwidth_mb_s,
            "waf": m.waf,
            "fault_p99_us": m.p99_us,
            "stalls": m.stalls,
            "swap_space_percent": m.space_percent,
        })
    };
    let gain = |g: &Gain| json!({"percent": g.percent, "low": g.low, "high": g.high});
    let tried = |s: &Advised, t: &Tried| match &t.gain {
        Ok(gain) => json!({"value": value(s, &t.value), "gain_percent": gain}),
        Err(why) => json!({"value": value(s, &t.value), "impossible": why}),
    };
    let setting = |s: &Advised| {
        json!({
            "setting": s.setting.option.trim_start_matches('-'),
            "key": s.setting.key,
            "default": value(s, &s.default),
            "advised": value(s, &s.value),
            "gain": s.gain.as_ref().map(gain),
            "without": s.without.as_ref().map(measured),
            "tried": s.tried.iter().map(|t| tried(s, t)).collect::<Vec<_>>(),
        })
    };
    let full = |f: &Full| {
        json!({
            "over_provisioning_percent": f.over_provisioning,
            "utilization_percent": f.utilization,
            "measured": measured(&f.measured),
        })
    };
    json!({
        "version": 1,
        "commands": [command(advice)],
        "goal": goal.name(),
        "spec": spec,
        "scaled": scaled,
        "instead": advice.instead,
        "default": measured(&advice.before),
        "advised": measured(&advice.after),
        "gain": advice.gain.as_ref().map(gain),
        "verified": advice.verified.map(|v| json!({
            "zones": v.zones,
            "gain": v.gain.as_ref().map(gain),
            "holds": v.holds,
        })),
        "noise_percent": advice.noise_percent,
        "full": advice.full.iter().map(full).collect::<Vec<_>>(),
        "settings": advice.settings.iter().map(setting).collect::<Vec<_>>(),
        "runs": advice.runs,
        "seeds": advice.seeds,
        "cut_short": advice.cut_short,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup_tests::schema;
    use crate::sim::tests::sim;

    const SMALL: &str = "--device zn540 --size 384M --set device.zoned.zone_capacity=3M \
        --set device.zoned.zones=128 --set device.media.read_jitter_us=[] \
        --set device.media.program_jitter_us=[] --set device.controller.write_jitter_us=[] \
        --set host.memory=8M --set host.threads=8 --set host.cpus=2 --set run.warmup=0.2 \
        --set run.measure=0.2 --jobs 2";

    fn ask(words: &str) -> Result<Outcome> {
        let words = format!("advise {words}");
        sim(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// With this seed all other advised settings are possible with the old chunk, so
    /// that the gain of the chunk is known.
    #[test]
    fn advice_has_a_command_and_reasons() {
        let report = ask(&format!("{SMALL} --set znsage.chunk=4K --seed 1")).unwrap();
        let first = report.text.lines().next().unwrap();
        assert!(first.starts_with("znsage on DEVICE") && first.contains(" --chunk "), "{first}");
        // The advised command line must be valid.
        let words: Vec<&str> = first.split(' ').collect();
        <crate::cli::Cli as clap::Parser>::try_parse_from(words).unwrap();
        for part in ["default     advised", "% confidence", "--chunk", "swap full", "seeds 2 to 6"]
        {
            assert!(report.text.contains(part), "{part} in:\n{}", report.text);
        }
        assert!(report.text.contains("scaled: 128 zones of 3 MiB"), "{}", report.text);
        let j = &report.json;
        assert_eq!(j["commands"][0], first);
        assert!(j["advised"]["operations_s"].as_f64() > j["default"]["operations_s"].as_f64());
        let chunk = &j["settings"][1];
        assert_eq!((&chunk["setting"], &chunk["default"]), (&json!("chunk"), &json!("4K")));
        assert!(chunk["gain"]["low"].as_f64().unwrap() > 0.0);

        // With more zones it is verified. This full, the largest
        // over-provisioning leaves too few slots.
        let more = SMALL.replace("zones=128", "zones=160");
        let verified = ask(&format!("{more} --utilization 75 --set znsage.chunk=4K --seed 1"));
        let verified = verified.unwrap();
        assert!(verified.text.contains(": on all 160 zones of the device"), "{}", verified.text);
        assert!(verified.text.contains("impossible: 28"), "{}", verified.text);
        schema::matches("sim advise", &[report.json, verified.json, none()]);
    }

    #[test]
    fn settings_are_options_of_on() {
        let grammar = <crate::cli::Cli as clap::CommandFactory>::command();
        let on = grammar.find_subcommand("on").unwrap();
        for setting in &advise::SETTINGS {
            let is = |arg: &clap::Arg| {
                arg.get_long().map(|l| format!("--{l}")).as_deref() == Some(setting.option)
            };
            assert!(on.get_arguments().any(is), "{}", setting.option);
        }
    }

    /// A document without what may be missing.
    fn none() -> Value {
        json!({"scaled": null, "gain": null, "verified": {"zones": 1, "gain": null, "holds": false}})
    }

    #[test]
    fn exhausted_budget_is_reported() {
        let report = ask(&format!("{SMALL} --budget 3 --for wear")).unwrap();
        assert!(report.text.contains("the search used up its budget"), "{}", report.text);
        assert_eq!(report.json["cut_short"], true);
    }

    #[test]
    fn invalid_specs_are_refused() {
        for (words, kind, part) in [
            ("--device conventional", Kind::Usage, "device: advice needs a zoned one"),
            ("--device floppy", Kind::Device, "no such device; there are zn540"),
            ("--set system=stock", Kind::Usage, "advice is for znsage only, not stock"),
            ("--utilization 120", Kind::Usage, "utilization: 120 is not"),
        ] {
            let e = ask(words).err().unwrap();
            assert_eq!(e.kind, kind, "{}", e.message);
            assert!(e.message.contains(part), "{}", e.message);
        }
    }
}
