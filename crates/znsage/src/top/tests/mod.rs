// SPDX-License-Identifier: GPL-2.0-only
//! From files to a screen: a busy machine, sampled once a second.

use std::time::Duration;

mod terminal;

use nix::time::{clock_gettime, ClockId};
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use ratatui::Terminal;

use super::keys::Key;
use super::sample::Eye;
use super::state::State;
use super::view::{self, Look};
use super::*;
use crate::setup_tests::compare_text;
use crate::sys::fake::Fake;
use crate::sys::Sys;

const ZONES: u64 = 1024;
const COLORS: Look = Look { color: true, ascii: false };

/// Sets znsage0 and znsage1 to their state at second `t`.
fn machine(fake: &Fake, t: u64) {
    fake.put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    for (n, name) in ["znsage0", "znsage1"].into_iter().enumerate() {
        device(fake, name, &format!("nvme{}n1", n + 1), t);
    }
    for (n, group) in
        ["web.slice/memcached.service", "batch.slice/sort.service", "cron"].into_iter().enumerate()
    {
        let n = n as u64;
        let path = format!("/sys/fs/cgroup/{group}");
        fake.put(&format!("{path}/memory.swap.current"), &format!("{}\n", (3 - n) << 28));
        let (read, written) = (t * n * (5 << 20), t * (9 << 20) / (n + 1));
        fake.put(
            &format!("{path}/io.stat"),
            &format!("251:0 rbytes={read} wbytes={written} rios=1\n"),
        );
        fake.put(
            &format!("{path}/memory.pressure"),
            &format!("some avg10={n}.50 avg60=0.00 total=5\n"),
        );
    }
    for outer in ["web.slice", "batch.slice"] {
        fake.put(&format!("/sys/fs/cgroup/{outer}/memory.swap.current"), "1\n");
    }
}

/// A counter that grows by about `rate` per second.
fn grown(t: u64, rate: u64) -> u64 {
    (0..t).map(|i| rate * (1 + i % 5) / 3).sum()
}

fn device(fake: &Fake, name: &str, backing: &str, t: u64) {
    let directory = format!("/sys/block/{name}");
    let put =
        |file: &str, text: String| fake.put(&format!("{directory}/znsage/{file}"), &(text + "\n"));
    fake.put(&format!("{directory}/dev"), "251:0\n");
    let host = 1_000_000 + grown(t, 30_000);
    for (file, number) in [
        ("size_bytes", 8 << 30),
        ("chunk_bytes", 128 << 10),
        ("write_unit_bytes", 4096),
        ("zone_bytes", 8 << 20),
        ("blocks_total", ZONES * 2048),
        ("streams", 4),
        ("stripe", 1),
        ("gc_stripe", 1),
        ("gc_shared", 0),
        ("write_window", 64),
        ("slots_used", 1_300_000),
        ("live_blocks", 1_300_000),
        ("zones_total", ZONES),
        ("zones_empty", 132),
        ("zones_open", 6),
        ("zones_full", ZONES - 138),
        ("zones_retired", 0),
        ("zones_unused", 0),
        ("host_blocks", host),
        ("gc_blocks", 310_000 + grown(t, 8000)),
        ("padding_blocks", 0),
        ("gc_read_blocks", 310_000 + grown(t, 8200)),
        ("read_blocks", 700_000 + grown(t, 13_000)),
        ("gc_zones", 400 + grown(t, 12)),
        ("host_pages", 3 * host),
        ("refused_pages", 120),
        ("chunks", host / 32),
        ("zone_resets", 500 + grown(t, 12)),
        ("slots_freed", 3616),
        ("read_errors", 0),
        ("write_errors", 0),
        ("stalls", 70 + t),
        ("map_bytes", 16 << 20),
        ("gc_low", 8),
        ("gc_high", 12),
        ("pace", 50),
        ("deadline_us", 5000),
    ] {
        put(file, number.to_string());
    }
    for (file, text) in [
        ("backing", backing),
        ("config", backing),
        ("policy", "process"),
        ("victim", "cost-benefit"),
        ("compress", "lz4"),
        ("encrypt", "aes-xts"),
    ] {
        put(file, text.to_string());
    }
    let debug = format!("/sys/kernel/debug/znsage/{name}");
    fake.put(&format!("{debug}/latency"), &latency(t));
    fake.put(&format!("{debug}/stream_table"), &streams(t));
    let zones_file = format!("{debug}/zones");
    if !fake.exists(&zones_file) {
        fake.put(&zones_file, &zones());
    }
}

/// The module's histograms; most values are in one bucket, in odd seconds higher.
fn latency(t: u64) -> String {
    let end = |b: u64| if b < 4 { b + 1 } else { (4 + b % 4 + 1) << (b / 4 - 1) };
    let count = |bucket: u64, usual: u64| match bucket {
        b if b == usual => 1000 * t,
        b if b == usual + 6 => 30 * t,
        b if b == usual + 10 => 40 * (t / 2) * (t / 2) % 700 + 40 * t,
        _ => 0,
    };
    let mut text = "below_us swap_out swap_in gc\n".to_string();
    for bucket in 0..92 {
        text += &format!("{} {} {} 0\n", end(bucket), count(bucket, 40), count(bucket, 24));
    }
    text + "inf 0 0 0\ntotal_ns 1 1 0\n"
}

fn streams(t: u64) -> String {
    let mut text =
        "stream host_blocks gc_blocks padding_blocks read_blocks stalls stall_ns zones keys key\n"
            .to_string();
    for stream in 0..12 {
        let host = 90_000 / (stream + 1);
        let (host, gc) = (host + grown(t, host / 7), host / 3 + grown(t, stream * 200));
        let wait = t * stream * 100_000;
        text +=
            &format!("{stream} {host} {gc} 0 {gc} {t} {wait} 1 {stream} 0x{:016x}\n", stream << 20);
    }
    text
}

fn zones() -> String {
    let mut text =
        "index zone state capacity written live failed stream moves age reads key mixed\n"
            .to_string();
    for zone in 0..ZONES {
        let live = (zone * zone / 37 + zone * 13) % 2049;
        let (state, live, failed) = match zone {
            z if z % 8 == 3 && z < 900 => ("empty", 0, 0),
            z if z % 200 == 17 => ("open", live, 0),
            612 => ("victim", 301, 0),
            613 => ("resetting", 0, 0),
            777 => ("full", 900, 1),
            _ => ("full", live, 0),
        };
        text += &format!("{zone} {zone} {state} 2048 2048 {live} {failed} 1 0 55 3 0x0 0\n");
    }
    text
}

/// The state after sampling for `seconds`.
fn watched(fake: &Fake, seconds: u64) -> State {
    let mut eye = Eye::new(fake);
    let mut state = State::new(4096, Duration::from_secs(1), "znsage0".to_string());
    for t in 0..=seconds {
        machine(fake, t);
        let at = Duration::from_secs(t);
        state.take(eye.look("znsage0", at), at);
    }
    state
}

fn screen(state: &State, look: Look, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(state, look, frame.area(), frame.buffer_mut())).unwrap();
    terminal.backend().clone()
}

fn text(state: &State) -> String {
    screen(state, COLORS, 80, 24).to_string()
}

#[test]
fn screens_of_many_sizes() {
    let fake = Fake::new();
    let mut state = watched(&fake, 30);
    for (width, height) in [(80, 24), (120, 40), (40, 15), (40, 10), (160, 30), (200, 50)] {
        let name = format!("top-{width}x{height}");
        compare_text(&screen(&state, COLORS, width, height).to_string(), &name);
    }
    state.press(Key::Char('t'));
    machine(&fake, 31);
    for group in ["web.slice/memcached.service", "batch.slice/sort.service", "cron"] {
        fake.remove(&format!("/sys/fs/cgroup/{group}/io.stat"));
    }
    let at = Duration::from_secs(31);
    state.take(Eye::new(&fake).look("znsage0", at), at);
    compare_text(&screen(&state, COLORS, 80, 24).to_string(), "top-cgroups");
    let ascii = screen(&state, Look { color: false, ascii: true }, 80, 24);
    assert!(ascii.to_string().is_ascii());
    compare_text(&ascii.to_string(), "top-ascii");
    state.press(Key::Char('?'));
    compare_text(&screen(&state, COLORS, 80, 24).to_string(), "top-help");
}

/// The smallest usual terminals show how full the device is.
#[test]
fn use_and_free_zones_are_always_shown() {
    let state = watched(&Fake::new(), 3);
    for (width, height) in [(24, 8), (40, 10), (76, 8), (80, 10), (80, 24), (200, 50)] {
        let text = screen(&state, COLORS, width, height).to_string();
        assert!(text.contains("5 GiB of 8 GiB"), "{text}");
        assert!(text.contains("132 of 1024"), "{text}");
    }
}

#[test]
fn every_size_is_drawn() {
    let mut state = watched(&Fake::new(), 3);
    for help in [false, true] {
        state.help = help;
        for width in (1..=60).chain([79, 139, 140, 300]) {
            (1..=40).for_each(|height| drop(screen(&state, COLORS, width, height)));
        }
    }
    let nothing = State::new(4096, Duration::from_secs(1), "znsage0".to_string());
    assert!(text(&nothing).contains("no znsage device is on"));
}

#[test]
fn only_sixteen_colours_are_used() {
    let state = watched(&Fake::new(), 3);
    let colors = |color| {
        let screen = screen(&state, Look { color, ascii: false }, 120, 40);
        let cells = screen.buffer().content();
        let both = cells.iter().flat_map(|cell| [cell.fg, cell.bg]);
        both.filter(|color| *color != Color::Reset).collect::<Vec<_>>()
    };
    assert!(colors(false).is_empty());
    assert!(colors(true).len() > 1000);
    assert!(colors(true).iter().all(|c| !matches!(c, Color::Rgb(..) | Color::Indexed(_))));
}

#[test]
fn errors_are_shown() {
    let fake = Fake::new();
    let mut state = watched(&fake, 2);
    state.press(Key::Char('p'));
    assert!(text(&state).contains(" paused "));
    let mut eye = Eye::new(&fake);
    let mut look = |state: &mut State, t| {
        let at = Duration::from_secs(t);
        state.take(eye.look("znsage0", at), at);
        text(state)
    };
    fake.put("/sys/block/znsage0/znsage/write_errors", "3\n");
    assert!(look(&mut state, 3).contains("write errors: 3"));
    fake.put("/sys/block/znsage0/znsage/stalls", "many\n");
    assert!(look(&mut state, 4).contains("stalls holds `many`"));
    fake.remove("/sys/block/znsage0");
    let gone = look(&mut state, 5);
    assert!(gone.contains("[znsage0 is gone]") && gone.contains("until it is back"), "{gone}");
    machine(&fake, 9);
    fake.remove("/sys/kernel/debug/znsage/znsage0");
    let back = look(&mut state, 9999);
    assert!(back.contains("[znsage0] ") && back.contains("sorted: "), "{back}");
}

#[test]
fn start_requires_a_device() {
    let fake = Fake::new();
    let begin = |device: Option<&str>| {
        let args = TopArgs { device: device.map(str::to_string), interval: 1.0, ascii: false };
        once(&fake, &args, 4096)
    };
    let e = begin(None).unwrap_err();
    assert_eq!((e.kind, e.message.as_str()), (Kind::Device, "no znsage device is on"));
    machine(&fake, 0);
    assert!(begin(None).unwrap().contains("[znsage0] znsage1 "));
    assert!(begin(Some("nvme2n1")).unwrap().contains(" znsage0 [znsage1]"));
    assert_eq!(begin(Some("znsage9")).unwrap_err().kind, Kind::Device);
    let args = TopArgs { device: None, interval: 1.0, ascii: false };
    assert_eq!(run(&fake, &args, 4096, true).unwrap_err().kind, Kind::Usage);
}

/// At one sample per second, top must take less than 1 % of a core, not counting the
/// kernel's work for the files.
#[test]
fn samples_take_little_time() {
    const LOOKS: u32 = 50;
    let fake = Fake::new();
    let mut state = watched(&fake, 2);
    let mut eye = Eye::new(&fake);
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let cpu = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let mut look = |i: u32| {
        let begun = cpu();
        // Far apart, so that the zones are read every time.
        let at = Duration::from_secs(u64::from(1000 * (i + 1)));
        state.take(eye.look("znsage0", at), at);
        terminal.draw(|f| view::draw(&state, COLORS, f.area(), f.buffer_mut())).unwrap();
        cpu() - begun
    };
    // Other load makes some of them longer, none shorter.
    let each = (0..LOOKS).map(&mut look).min().unwrap();
    println!("{each:?} of CPU time per sample");
    // Unoptimized code takes several times as long.
    let most = Duration::from_millis(if cfg!(debug_assertions) { 40 } else { 10 });
    assert!(each < most, "{each:?} of CPU time per sample");
}
