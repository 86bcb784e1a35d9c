// SPDX-License-Identifier: GPL-2.0-only
//! Policies from C source.

use std::fs;
use std::path::PathBuf;

use znsage_sim::spec::{PlacementKind, WorkloadKind};
use znsage_sim::{run, RunError, Spec};

fn spec(source: PathBuf) -> Spec {
    let mut spec = Spec { size: Some(512 << 20), utilization: 80.0, ..Spec::default() };
    spec.set("device.zoned.zone_capacity", "3840 KiB").unwrap();
    spec.host.memory = 16 << 20;
    (spec.run.warmup, spec.run.measure, spec.run.shadow) = (0.5, 0.3, true);
    spec.znsage.policy_source = Some(source);
    spec
}

/// The error for a source.
fn refusal(source: PathBuf) -> String {
    match run(&spec(source)) {
        Err(RunError::Spec(e)) => {
            assert_eq!(e.key, "znsage.policy-source");
            e.what
        }
        other => panic!("{other:?}"),
    }
}

/// A module that registers `name`, with `place` and the members in `ops`.
fn module(name: &str, code: &str, ops: &str) -> String {
    format!(
        "#include <linux/module.h>\n#include <znsage.h>\n{code}\n\
         static struct znsage_policy ops = {{ .name = \"{name}\", {ops} }};\n\
         static int __init begin(void) {{ return znsage_register_policy(&ops); }}\n\
         static void __exit end(void) {{ znsage_unregister_policy(&ops); }}\n\
         module_init(begin);\nmodule_exit(end);\nMODULE_LICENSE(\"GPL\");\n"
    )
}

#[test]
fn c_policy_is_compiled_and_called() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("keys.c");
    let code = "static u32 place(struct zse_engine *dev, const struct znsage_page *page) \
                { struct znsage_levels l; znsage_get_levels(dev, &l); \
                return page->cpu % l.streams; }";
    let ops = ".place = place";
    fs::write(&source, module("keys", code, ops)).unwrap();
    let mine = run(&spec(source.clone())).unwrap();
    assert!(mine.wrong.is_empty(), "{:#?}", mine.wrong);
    // It does the same as policy cpu.
    let mut same = spec(source.clone());
    (same.znsage.policy_source, same.znsage.policy) = (None, PlacementKind::Cpu);
    assert_eq!(mine.waf, run(&same).unwrap().waf);
    // It stays loaded.
    assert_eq!(mine.waf, run(&spec(source)).unwrap().waf);
}

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// Samples in BPF do what the policies do whose names they have: their sources run here, too.
#[test]
fn samples_in_bpf_place_as_those_in_c() {
    let run = |spec: &Spec| {
        let r = run(spec).unwrap();
        assert!(r.wrong.is_empty(), "{:#?}", r.wrong);
        r
    };
    let in_bpf = |name| run(&spec(sample(&format!("bpf/{name}.bpf.c"))));
    for (name, policy) in [("cpu", PlacementKind::Cpu), ("cgroup", PlacementKind::Cgroup)] {
        let mut builtin = spec(PathBuf::new());
        (builtin.znsage.policy_source, builtin.znsage.policy) = (None, policy);
        assert_eq!(in_bpf(name).waf, run(&builtin).waf, "{name}");
    }
    // Other streams would show: hot pages share zones here.
    let zipf = |name| run(&Spec { workload: WorkloadKind::Zipf, ..spec(sample(name)) });
    let [c, bpf, cpu] = ["hotcold.c", "bpf/hotcold.bpf.c", "bpf/cpu.bpf.c"].map(zipf);
    assert_eq!(c.waf, bpf.waf);
    assert_ne!(c.waf, cpu.waf);
    // It looks at all zones to choose a victim.
    let greedy = zipf("bpf/greedy.bpf.c");
    assert!(greedy.waf.gc > 0.0 && greedy.waf != cpu.waf);
}

#[test]
fn c_policy_is_not_shared_between_devices() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("counts.c");
    let code = "#include <linux/slab.h>\n\
        static u32 place(struct zse_engine *dev, const struct znsage_page *page) \
        { u32 *turn = znsage_private(dev); struct znsage_levels l; \
          znsage_get_levels(dev, &l); return ++*turn % (l.streams + 1); }\n\
        static void *attach(struct zse_engine *dev) { return kzalloc(4, GFP_KERNEL); }\n\
        static void detach(struct zse_engine *dev, void *p) { kfree(p); }";
    let ops = ".streams = 3, .place = place, .attach = attach, .detach = detach";
    fs::write(&source, module("counts", code, ops)).unwrap();
    // One answer in four is out of range, and refused.
    let a = run(&spec(source.clone())).unwrap();
    assert!(a.wrong.is_empty(), "{:#?}", a.wrong);
    assert_eq!(a.waf, run(&spec(source)).unwrap().waf, "begins anew with each device");
}

#[test]
fn errors_of_a_policy_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let what = refusal(write("broken.c", "#include <znsage.h>\nthis is no C\n"));
    assert!(what.contains("does not compile") && what.contains("this is no C"), "{what}");
    let what = refusal(write("nothing.c", "#include <znsage.h>\n"));
    assert!(what.contains("no module_init()"), "{what}");
    let silent = "#include <linux/module.h>\nstatic int f(void) { return 0; }\nmodule_init(f);\n";
    let what = refusal(write("silent.c", silent));
    assert!(what.contains("registers no policy"), "{what}");
    let what = refusal(write("nowhere.c", &module("nowhere", "", "")));
    assert!(what.contains("a policy needs a name and place()"), "{what}");
    let code = "static u32 place(struct zse_engine *dev, const struct znsage_page *page) \
                { return 0; }";
    let what = refusal(write("again.c", &module("heat", code, ".place = place")));
    assert!(what.contains("there is a policy of that name"), "{what}");
    let what = refusal(dir.path().join("missing.c"));
    assert!(what.contains("missing.c: No such file"), "{what}");
}
