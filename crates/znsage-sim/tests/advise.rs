// SPDX-License-Identifier: GPL-2.0-only
//! Advice on settings: it finds plainly wrong settings, does not advise noise,
//! and does not depend on the number of threads.

use znsage_sim::advise::{self, Advice, AdviceError, Advised, Goal, Question, SEEDS};
use znsage_sim::Spec;

/// Runs of some milliseconds.
fn spec() -> Spec {
    let mut spec = Spec { device: "zn540".into(), size: Some(384 << 20), ..Spec::default() };
    (spec.host.memory, spec.host.cpus, spec.host.threads) = (8 << 20, 2, 8);
    (spec.run.warmup, spec.run.measure) = (0.3, 0.3);
    spec.set("device.zoned.zone_capacity", "3 MiB").unwrap();
    spec.set("device.zoned.zones", "128").unwrap();
    // What is found depends on single runs; it stays as it is when jitter changes.
    for key in ["media.read", "media.program", "controller.write"] {
        spec.set(&format!("device.{key}_jitter_us"), "[]").unwrap();
    }
    spec
}

fn ask(spec: Spec, goal: Goal, jobs: usize) -> Result<Advice, AdviceError> {
    ask_within(80, spec, goal, jobs)
}

fn ask_within(budget: usize, spec: Spec, goal: Goal, jobs: usize) -> Result<Advice, AdviceError> {
    let question = Question { spec, goal, budget, jobs };
    advise::advise(&question, &mut || false, &mut |_| {})
}

fn of<'a>(advice: &'a Advice, key: &str) -> &'a Advised {
    advice.settings.iter().find(|s| s.setting.key == key).unwrap()
}

#[test]
fn a_bad_setting_is_found_and_its_gain_is_proven() {
    let mut spec = spec();
    spec.set("znsage.chunk", "4K").unwrap();
    // With this seed all other advised settings are possible with the old chunk, so that
    // the gain of the chunk is known.
    spec.seed = 3;
    let advice = ask(spec.clone(), Goal::Speed, 2).unwrap();
    assert!(!advice.cut_short, "{} runs", advice.runs);
    let chunk = of(&advice, "znsage.chunk");
    assert_eq!(chunk.default, "4096");
    assert!(chunk.value.parse::<u64>().unwrap() >= 16 << 10, "{chunk:?}");
    let gain = chunk.gain.unwrap();
    assert!(gain.counts() && gain.low < gain.percent && gain.percent < gain.high, "{gain:?}");
    assert!(advice.gain.unwrap().counts());
    assert!(advice.after.operations_s > advice.before.operations_s);
    assert_eq!(advice.seeds.len(), SEEDS);
    assert!(!advice.seeds.contains(&spec.seed), "the search had that one");

    // Only changes that count are advised.
    for s in &advice.settings {
        assert_eq!(s.value != s.default, s.gain.is_some_and(|g| g.counts()), "{s:?}");
        assert!(!s.tried.is_empty(), "{s:?}");
    }
    // Unsupported policies are listed with the reason.
    let unknown = of(&advice, "znsage.policy").tried.iter().filter(|t| t.gain.is_err()).count();
    let policies = znsage_sim::spec::PolicyKind::ALL.len();
    assert!(unknown < policies - 1, "some are known: {unknown}");

    // Less over-provisioning means fuller swap and more GC.
    assert!(advice.full.len() >= 3, "{:?}", advice.full);
    let pairs = advice.full.iter().zip(&advice.full[1..]);
    for (less, more) in pairs {
        assert!(less.over_provisioning < more.over_provisioning);
        assert!(less.utilization > more.utilization);
        assert!(less.measured.waf > more.measured.waf, "{less:?} {more:?}");
    }
}

#[test]
fn threads_change_nothing() {
    let [one, two] = [1, 2].map(|jobs| ask_within(12, spec(), Goal::Speed, jobs).unwrap());
    assert!(one.runs > 8, "{} runs", one.runs);
    assert_eq!(format!("{one:?}"), format!("{two:?}"));
}

/// A device of 520 small zones, searched with an eighth of them.
#[test]
fn advice_is_verified_on_all_zones_of_the_device() {
    let mut spec = Spec { device: "hynix".into(), size: Some(264 << 20), ..Spec::default() };
    (spec.host.memory, spec.host.cpus, spec.host.threads) = (4 << 20, 2, 8);
    (spec.run.warmup, spec.run.measure) = (0.3, 0.3);
    spec.set("device.zoned.zones", "520").unwrap();
    // Most of each append is padding, whatever the number of zones.
    spec.set("znsage.deadline", "100").unwrap();
    let advice = ask(spec.clone(), Goal::Speed, 2).unwrap();
    let verified = advice.verified.expect("something is advised, on fewer zones");
    assert_eq!(verified.zones, 520);
    // A setting for few zones may be none for many, such as gc-low above gc-high.
    let gains = verified.gain.is_some_and(|gain| gain.counts());
    assert_eq!(verified.holds, gains && advice.gain.is_some(), "{verified:?}");
    assert_eq!(advice.gain.is_some(), verified.holds, "what does not hold is withdrawn");
    // On all of them from the start there is nothing to verify.
    spec.size = None;
    spec.set("device.zoned.zones", "66").unwrap();
    spec.set("device.zoned.zone_capacity", "4032 KiB").unwrap();
    spec.set("device.zoned.zone_size", "4032 KiB").unwrap();
    assert!(ask(spec, Goal::Speed, 2).unwrap().verified.is_none());
}

#[test]
fn over_provisioning_that_does_not_fit_is_replaced() {
    let advice = ask(Spec { utilization: 88.0, ..spec() }, Goal::Wear, 1).unwrap();
    let instead = advice.instead.as_ref().unwrap();
    assert!(instead.starts_with("over-provisioning of 12 % does not leave"), "{instead}");
    let over = of(&advice, "znsage.over-provisioning");
    assert!(over.value.parse::<u32>().unwrap() < 12, "{over:?}");
    assert!(over.gain.is_none(), "there is nothing to compare with");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let refused = |key: &str, value: &str| {
        let mut spec = spec();
        spec.set(key, value).unwrap();
        ask(spec, Goal::Speed, 1).unwrap_err().to_string()
    };
    assert!(refused("device", "floppy").contains("no such device"));
    assert!(refused("host.cpus", "0").starts_with("host.cpus: "));
    assert!(refused("utilization", "99").starts_with("utilization: "));
    let mut spec = spec();
    (spec.device, spec.device_set) = ("conventional".into(), vec![]);
    let e = ask(spec, Goal::Speed, 1).unwrap_err().to_string();
    assert_eq!(e, "device: advice needs a zoned one");
}

#[test]
fn advice_can_be_interrupted() {
    let question = Question { spec: spec(), goal: Goal::Latency, budget: 80, jobs: 1 };
    let runs = std::cell::Cell::new(0);
    let e =
        advise::advise(&question, &mut || runs.get() >= 3, &mut |p| runs.set(p.done)).unwrap_err();
    assert!(matches!(e, AdviceError::Stopped));
    assert!(runs.get() < 6);
}

#[test]
fn a_large_device_gets_the_size_of_a_quick_run() {
    for name in ["zn540", "hynix"] {
        let mut spec = Spec { device: name.into(), ..Spec::default() };
        advise::quick(&mut spec).unwrap();
        assert_eq!((spec.size, spec.host.memory), (Some(4 << 30), 16 << 20), "{name}");
        znsage_sim::check(&spec).unwrap();
    }
    let own = &mut Spec { device: "zns-plus".into(), ..Spec::default() };
    own.set("device.zoned.zones", "16").unwrap();
    advise::quick(own).unwrap();
    assert_eq!(own.size, None, "the device is small");
}
