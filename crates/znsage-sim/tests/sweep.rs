// SPDX-License-Identifier: GPL-2.0-only
//! Sweeps: the file format; and interruptions, threads and shards change no
//! byte of the results.

use std::fs;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use znsage_sim::sweep::merge::Merged;
use znsage_sim::sweep::table::{Cells, Table};
use znsage_sim::sweep::{
    drive, output, report, Driven, Outcome, Plan, Progress, Shard, Stage, Store, Sweep, SweepError,
};

/// Twelve short runs.
const SMALL: &str = r#"
    device = "zn540"
    size = "192M"
    host.memory = "8M"
    host.threads = 4
    host.cpus = 2
    run.warmup = 0.1
    run.measure = 0.2
    "device.zoned.zone_capacity" = "3 MiB"
    [sweep]
    system = ["znsage", "znsage-2025"]
    utilization = [40, 70]
    seed = [1, 2, 3]
"#;

fn parse(text: &str) -> Result<Sweep, SweepError> {
    Sweep::parse("file.toml", text)
}

fn plan(dir: &Path, shard: &str, jobs: usize) -> Plan {
    Plan { shard: shard.parse().unwrap(), dir: dir.into(), jobs }
}

fn whole(sweep: &Sweep, plan: &Plan) -> Driven {
    let driven = drive(sweep, plan, || false, |_| {}).unwrap();
    assert!(driven.complete() && driven.panicked.is_empty(), "{driven:?}");
    driven
}

/// The bytes of all tables.
fn tables(dir: &Path, driven: &Driven) -> Vec<Vec<u8>> {
    let paths = output::write(dir, &driven.entries).unwrap();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A short file that would take for ever: all combinations are the same point.
#[test]
fn too_many_combinations_are_refused_before_expansion() {
    let lists = |n: usize, list: &str| {
        let key = |i| format!("\"device.k{i}\" = {list}\n");
        format!("[sweep]\n{}", (0..n).map(key).collect::<String>())
    };
    let singles: String = (0..10).map(|i| format!("device.s{i} = 1\n")).collect();
    for (text, what) in [
        (lists(64, "[1, 1]"), "more than 20000 points"),
        (lists(14, "[1, 1]") + &singles, "more than 300000 settings"),
        (lists(5000, "1"), "more than 200 lists"),
    ] {
        assert!(message(&text).contains(what), "{}", message(&text));
    }
}

/// Missing points are listed, so a store must not claim too many.
#[test]
fn store_with_too_many_points_is_refused() {
    let header = r#"{"znsage-sweep":1,"version":"0.1.0","digest":"","points":4000000000000}"#;
    let e = Store::parse(Path::new("runs.jsonl"), format!("{header}\n").as_bytes()).unwrap_err();
    assert!(e.to_string().contains("20000 is the most"), "{e}");
}

fn message(text: &str) -> String {
    match parse(text) {
        Ok(sweep) => {
            let dir = tempfile::tempdir().unwrap();
            let out = dir.path().join("out");
            let e = drive(&sweep, &plan(&out, "1/1", 1), || false, |_| {}).unwrap_err();
            assert!(!out.exists(), "nothing is made of what is refused");
            e.to_string()
        }
        Err(e) => e.to_string(),
    }
}

#[test]
fn lists_are_multiplied_in_the_order_of_the_file() {
    let sweep = parse(SMALL).unwrap();
    assert_eq!(sweep.points.len(), 12);
    let words: Vec<_> = sweep.points.iter().map(|p| sweep.describe(p)).collect();
    assert_eq!(words[0], "system=znsage, utilization=40.0, seed=1");
    assert_eq!(words[1], "system=znsage, utilization=40.0, seed=2");
    assert_eq!(words[11], "system=znsage-2025, utilization=70.0, seed=3");
    let spec = &sweep.points[4].spec;
    assert_eq!((spec.utilization, spec.seed, spec.host.cpus), (70.0, 2, 2));
    assert_eq!(spec.device_set, [("zoned.zone_capacity".into(), "3 MiB".into())]);
}

#[test]
fn several_tables_are_united() {
    let sweep = parse(
        r#"
        [[sweep]]
        znsage.chunk = ["64K", "128K"]
        [[sweep]]
        "device.zoned.max_append" = "192 KiB"
        [sweep.znsage]
        chunk = ["192K"]
        [[sweep]]
        znsage = { chunk = ["128K"], reserve = [1, 2] }
        "#,
    )
    .unwrap();
    let label = |i: usize| serde_json::to_string(&sweep.label(&sweep.points[i])).unwrap();
    // 128 KiB with a reserve of 2 is a duplicate.
    assert_eq!(sweep.points.len(), 4);
    assert!(
        label(2).ends_with(
            r#""znsage.chunk":196608,"device.zoned.max_append":"192 KiB","znsage.reserve":2}"#
        ),
        "{}",
        label(2)
    );
    assert!(label(3).contains(r#""znsage.chunk":131072,"device.zoned.max_append":null"#));
}

#[test]
fn errors_name_key_and_line() {
    let cases = [
        ("[sweep", "file.toml:1: "),
        ("size = 1\n", "file.toml: there is no table [sweep]"),
        ("[sweep]\n", "file.toml:1: sweep: there are no lists"),
        ("[sweep]\nseed = []", "file.toml:2: seed: the list is empty"),
        ("sweep = 3", "file.toml:1: sweep: a table of lists is expected"),
        ("skip-impossible = 1\n[sweep]\nseed = [1]", "file.toml:1: skip-impossible: true or false"),
        (
            "host.cpu = 2\n[sweep]\nseed = [1]",
            "file.toml:1: host.cpu: unknown field `cpu`, expected one of `cpus`",
        ),
        (
            "[sweep]\nsystem = ['stock',\n 'znfast']",
            "file.toml:3: system: unknown variant `znfast`, expected one of `stock`",
        ),
        (
            "[sweep]\nhosts.cpus = [1]",
            "file.toml:2: hosts.cpus: no such table; there are costs, host",
        ),
        (
            "[sweep]\nhost.cpus = [1, 2,\n 65]",
            "file.toml:3: host.cpus: 65 is not from 1 to 64 (host.cpus=65)",
        ),
        (
            "[sweep]\ndevice = ['zn540', 'floppy']",
            "file.toml:2: device: floppy: no such device; there are zn540",
        ),
        (
            "[sweep]\n'device.zoned.zoned' = [1]",
            "file.toml:2: device.zoned.zoned: unknown field `zoned`, expected one of `zones`",
        ),
        (
            "[sweep]\n'device.zoned.zone_capacity' = [\n'1G',\n'3 GiB']",
            "file.toml:4: device.zoned.zone_capacity: 3 GiB is more than the zone size, 2 GiB",
        ),
        (
            "'device.zoned.zone_capacity' = '3 GiB'\n[sweep]\nseed = [1]",
            "file.toml:1: device.zoned.zone_capacity: 3 GiB is more than the zone size, 2 GiB",
        ),
        // Errors found only by building the device or the system.
        ("[sweep]\nsize = ['64G', '1M']", "file.toml:2: size: zn540: gives 0 zones"),
        (
            "[sweep]\nznsage.chunk = ['256K',\n'2M']",
            "file.toml:3: znsage.chunk: must be a multiple of 1 blocks of 4 KiB and at most 256",
        ),
        (
            "utilization = 70\n[sweep]\nznsage.over-provisioning = [12, 35]",
            "file.toml:1: utilization: ",
        ),
        (
            "[sweep]\nsystem = ['znsage', 'stock']",
            "file.toml: device: stock needs a conventional one",
        ),
    ];
    for (text, want) in cases {
        let is = message(text);
        assert!(is.starts_with(want), "{text}\n  is     {is}\n  should {want}");
    }
}

#[test]
fn too_many_points_are_refused() {
    let list: Vec<String> = (1..=400).map(|n| n.to_string()).collect();
    let list = list.join(", ");
    let text = format!("[sweep]\nseed = [{list}]\nhost.memory = ['64M']\nload.think = [{list}]");
    assert!(message(&text).contains("more than 20000 points"));
}

#[test]
fn impossible_points_can_be_listed() {
    let text = "skip-impossible = true\n".to_string()
        + &SMALL.replace("seed = [1, 2, 3]", "znsage.over-provisioning = [12, 40]");
    let sweep = parse(&text).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let driven = whole(&sweep, &plan(dir.path(), "1/1", 1));
    let impossible: Vec<_> = driven
        .entries
        .values()
        .filter_map(|e| match &e.outcome {
            Outcome::Impossible(why) => Some((e.index, why.as_str())),
            _ => None,
        })
        .collect();
    let [(3, why)] = impossible[..] else { panic!("{impossible:?}") };
    assert!(
        why.starts_with("utilization: ") && why.contains("remain after over-provisioning"),
        "{why}"
    );
    let table = Table::of(driven.entries.values());
    assert_eq!(table.column("outcome").unwrap().cells.text(3), "impossible");
    assert_eq!(table.column("why").unwrap().cells.text(3), why);
    assert_eq!(table.column("waf_total").unwrap().cells.number(3), None);
    // A value that is wrong in every point is still an error.
    let text = text.replace("[12, 40]", "[12,\n91]");
    let is = parse(&text).unwrap_err().to_string();
    assert!(is.contains("znsage.over-provisioning: 91 is not from 0 to 90"), "{is}");
}

#[test]
fn results_do_not_depend_on_interruptions_threads_or_shards() {
    let sweep = parse(SMALL).unwrap();
    let dirs: Vec<_> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
    let dir = |i: usize| dirs[i].path();
    let at_once = plan(dir(0), "1/1", 2);
    let want = tables(dir(0), &whole(&sweep, &at_once));

    // Stopped after every third run, and once with a truncated line.
    let parts = plan(dir(1), "1/1", 1);
    let mut rounds = 0;
    loop {
        let ran = std::cell::Cell::new(0);
        let show = |p: Progress| ran.set(if p.stage == Stage::Running { p.done } else { 0 });
        let driven = drive(&sweep, &parts, || ran.get() >= 3, show).unwrap();
        rounds += 1;
        if driven.complete() {
            break;
        }
        assert!(driven.stopped);
        if rounds == 2 {
            let store = dir(1).join("runs.jsonl");
            let mut text = fs::read(&store).unwrap();
            text.extend(&b"{\"index\":11,\"point\":{\"sys"[..]);
            fs::write(&store, text).unwrap();
        }
        assert!(rounds < 20);
    }
    assert!(rounds > 2, "it was interrupted");
    assert_eq!(tables(dir(1), &whole(&sweep, &parts)), want, "interruptions");

    for shard in ["1/3", "2/3", "3/3"] {
        assert_eq!(whole(&sweep, &plan(dir(2), shard, 1)).points, 4);
    }
    let mut merged = Merged::read(&[dir(2).into()]).unwrap();
    assert_eq!((merged.missing(), merged.files.len()), (vec![], 3));
    merged.write(dir(3)).unwrap();
    let joined = whole(&sweep, &plan(dir(3), "1/1", 1));
    assert_eq!(joined.before, 12, "nothing is left to run");
    assert_eq!(tables(dir(3), &joined), want, "shards");
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let sweep = parse(SMALL).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    whole(&sweep, &plan(&path("a"), "1/2", 1));
    let merged = Merged::read(&[path("a")]).unwrap();
    assert_eq!(merged.missing(), [1, 3, 5, 7, 9, 11]);
    assert_eq!(merged.missing_shards(), ["2/2".parse::<Shard>().unwrap()]);

    // Another sweep, in the same place and beside it.
    let other = parse(&SMALL.replace("\"8M\"", "\"9M\"")).unwrap();
    let e = drive(&other, &plan(&path("a"), "1/2", 1), || false, |_| {}).unwrap_err();
    assert!(e.to_string().contains("holds results of another sweep"), "{e}");
    assert!(e.hint().unwrap().contains("--out"));
    let few = parse(&SMALL.replace("[1, 2, 3]", "[1]")).unwrap();
    whole(&few, &plan(&path("b"), "1/1", 1));
    let e = Merged::read(&[path("a"), path("b")]).unwrap_err();
    assert!(e.to_string().contains("another sweep, of 4 points"), "{e}");

    // The same point with two results.
    let store = path("a").join("runs-1-of-2.jsonl");
    let text = fs::read_to_string(&store).unwrap();
    let changed = text.replacen("\"stalls\":", "\"stalls\":9", 1);
    fs::write(path("c.jsonl"), changed).unwrap();
    let e = Merged::read(&[store.clone(), path("c.jsonl")]).unwrap_err();
    assert!(e.to_string().ends_with("point 0 differs from another part's"), "{e}");
    assert!(Merged::read(&[store.clone(), store.clone()]).is_ok(), "the same twice is fine");

    // A damaged line, and a missing one.
    fs::write(path("d.jsonl"), text.replacen("\"index\":2", "\"index\":x", 1)).unwrap();
    let e = Store::read(&path("d.jsonl")).unwrap_err();
    assert!(e.to_string().contains("d.jsonl: line 3: expected value"), "{e}");
    fs::create_dir(path("empty")).unwrap();
    let e = Merged::read(&[path("empty")]).unwrap_err();
    assert!(e.to_string().contains("there is no store of a sweep in it"), "{e}");
}

#[test]
fn one_process_at_a_time_writes_a_store() {
    let sweep = parse(SMALL).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("runs.jsonl"), &sweep.header()).unwrap();
    let e = drive(&sweep, &plan(dir.path(), "1/1", 1), || false, |_| {}).unwrap_err();
    assert!(matches!(e, SweepError::Busy(_)), "{e}");
    drop(store);
    assert!(Store::open(&dir.path().join("runs.jsonl"), &sweep.header()).is_ok());
}

#[test]
fn bars_if_only_names_vary() {
    let text = SMALL.replace("utilization = [40, 70]", "").replace("[1, 2, 3]", "[1, 2]");
    let sweep = parse(&text).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let driven = whole(&sweep, &plan(dir.path(), "1/1", 1));
    let html = report::page(&Table::of(driven.entries.values())).render();
    assert!(html.contains("What varies: system, seed."), "{html}");
    let bars: Vec<_> = html.match_indices("by system").collect();
    assert_eq!(bars.len(), 4, "one chart a result");
    assert!(html.contains("means over the seeds"));
}

#[test]
fn another_trace_or_device_is_another_sweep() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (trace, device) = (path("a.trace"), path("a.toml"));
    let sweep = || {
        let text = format!(
            "workload = 'trace'\nload.trace = '{trace}'\n[sweep]\ndevice = ['{device}', 'zn540']"
        );
        parse(&text).unwrap()
    };
    fs::write(&trace, "one").unwrap();
    fs::write(&device, "base = 'hynix'\nname = 'mine'").unwrap();
    let first = sweep();
    assert_eq!(first.header(), sweep().header());
    // Utilization is what the trace makes it.
    let label: Vec<String> = first.label(&first.points[0]).into_iter().map(|(k, _)| k).collect();
    assert_eq!(label, ["system", "device", "workload", "seed"]);
    fs::write(&trace, "two").unwrap();
    let second = sweep();
    assert_ne!(first.header(), second.header());
    fs::write(&device, "base = 'hynix'\nname = 'mine'\n[zoned]\nzones = 9").unwrap();
    assert_ne!(second.header(), sweep().header());
}

/// The example documents the format. Its tables are read back, by another
/// implementation where there is one.
#[test]
fn the_example_runs_and_its_tables_can_be_read() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sweep.toml");
    let sweep = Sweep::parse("sweep.toml", &fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(sweep.points.len(), 8 + 12 + 8);
    let dir = tempfile::tempdir().unwrap();
    let driven = whole(&sweep, &plan(dir.path(), "1/1", 2));
    let of = |wanted: fn(&Outcome) -> bool| {
        driven.entries.values().filter(|e| wanted(&e.outcome)).count()
    };
    assert_eq!(of(|o| matches!(o, Outcome::Stuck(_))), 0);
    assert_eq!(of(|o| matches!(o, Outcome::Impossible(_))), 2, "80 and 25 %");
    output::write(dir.path(), &driven.entries).unwrap();
    let table = Table::of(driven.entries.values());
    same_as_csv(&table, &dir.path().join(output::CSV));
    same_as_parquet(&table, dir.path().join(output::PARQUET));
    let html = fs::read_to_string(dir.path().join(output::REPORT)).unwrap();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let page = roxmltree::Document::parse_with_options(&html, options).unwrap();
    let count = |name: &str| page.descendants().filter(|n| n.has_tag_name(name)).count();
    // Utilization, chunk and over-provisioning are numbers; a superblock and a capacity
    // are text.
    assert_eq!(count("svg"), 3 * 4);
    assert_eq!(count("tr"), 1 + table.rows);
}

fn same_as_csv(table: &Table, path: &Path) {
    let mut csv = csv::Reader::from_path(path).unwrap();
    let names: Vec<String> = csv.headers().unwrap().iter().map(String::from).collect();
    assert_eq!(names, table.columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>());
    let unique: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len(), "no two columns have one name");
    let mut rows = 0;
    for (row, record) in csv.records().map(Result::unwrap).enumerate() {
        rows += 1;
        for (column, text) in table.columns.iter().zip(&record) {
            assert_eq!(text, column.cells.text(row), "{} of {row}", column.name);
            if let Some(number) = column.cells.number(row) {
                assert_eq!(text.parse::<f64>().unwrap(), number, "to the last bit");
            }
        }
    }
    assert_eq!(rows, table.rows);
}

fn same_as_parquet(table: &Table, path: PathBuf) {
    let file = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), table.rows);
    for (i, row) in rows.iter().enumerate() {
        let mut fields = row.get_column_iter();
        for column in &table.columns {
            let (name, field) = fields.next().unwrap();
            assert_eq!(*name, column.name);
            let same = match (&column.cells, field) {
                (Cells::Bool(all), Field::Bool(is)) => all[i] == Some(*is),
                (Cells::Int(all), Field::ULong(is)) => all[i] == Some(*is),
                (Cells::Float(all), Field::Double(is)) => all[i] == Some(*is),
                (Cells::Text(all), Field::Str(is)) => all[i].as_deref() == Some(is),
                (cells, Field::Null) => cells.text(i).is_empty(),
                _ => false,
            };
            assert!(same, "{name} of row {i} is {field:?}");
        }
        assert!(fields.next().is_none());
    }
}
