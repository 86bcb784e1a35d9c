// SPDX-License-Identifier: GPL-2.0-only
//! The command as people use it: on a terminal, and with the lines of the documents.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use super::devices::MAIN;
use crate::device::Device;
use crate::document::Document;
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::load::Load;
use crate::outcome::{Context, Outcome};

crate::cases![command: top (full), documented_commands (full)];

/// A command in a terminal of 80 columns and 24 lines, both ended on drop.
struct Terminal;

impl Terminal {
    const TMUX: [&'static str; 5] = ["tmux", "-u", "-L", "vm-suite", "-f/dev/null"];

    fn tmux(arguments: &[&str]) -> Outcome<String> {
        guest::ok(&[&Terminal::TMUX, arguments].concat())
    }

    /// Runs a command. The terminal outlives it and shows its exit status.
    fn open(command: &str) -> Outcome<Terminal> {
        let line = format!("{command}; echo status $?; sleep 1000");
        Terminal::tmux(&["new-session", "-d", "-x", "80", "-y", "24", &line])?;
        Ok(Terminal)
    }

    fn text(&self) -> Outcome<String> {
        Terminal::tmux(&["capture-pane", "-p"])
    }

    fn press(&self, keys: &str) -> Outcome {
        Terminal::tmux(&["send-keys", keys]).map(drop)
    }

    /// Waits until the terminal shows all of the words.
    fn shows(&self, words: &[&str]) -> Outcome<String> {
        let mut text = String::new();
        let so = guest::eventually(20.0, || {
            text = self.text().unwrap_or_default();
            words.iter().all(|word| text.contains(word))
        });
        ensure!(so, "the terminal does not show {words:?}, but:\n{text}");
        Ok(text)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Terminal::tmux(&["kill-server"]);
    }
}

/// Finds a process by its command line.
fn process_of(words: &str) -> Outcome<String> {
    let pids = guest::list("/proc").into_iter().filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let wanted = format!("{}\0", words.replace(' ', "\0"));
    let is_it = |pid: &String| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == wanted)
    };
    pids.into_iter().find(is_it).ok_or(format!("`{words}` does not run"))
}

/// The CPU time of a process in ticks of 10 ms.
fn ticks(pid: &str) -> Outcome<u64> {
    let stat = guest::read(&format!("/proc/{pid}/stat"))?;
    let after = stat.rsplit(')').next().unwrap_or("");
    let words: Vec<&str> = after.split_whitespace().collect();
    let number = |i: usize| words.get(i).and_then(|w| w.parse::<u64>().ok());
    number(11).zip(number(12)).map(|(user, system)| user + system).ok_or("no times".to_string())
}

fn top(_: &mut Log) -> Outcome {
    const WATCHED: u64 = 10;
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let load = Load::start(1, 32 << 20, 8 << 20)?;
    let terminal = Terminal::open("znsage top")?;
    let text = terminal.shows(&[&device.name, "every 1 s", "swap-out", "MiB/s", "1024 zones"])?;
    ensure!(text.lines().count() <= 24, "it has {} lines", text.lines().count());
    let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    ensure!(longest <= 80, "a line has {longest} columns");
    let pid = process_of("znsage top")?;
    let before = ticks(&pid)?;
    sleep(Duration::from_secs(WATCHED));
    print!("{} ms of a processor a second ... ", (ticks(&pid)? - before) * 10 / WATCHED);
    terminal.press("t")?;
    terminal.press("p")?;
    terminal.shows(&["paused"])?;
    terminal.press("?")?;
    terminal.shows(&["written to the device / swapped out"])?;
    terminal.press("q")?;
    terminal.shows(&["status 0"])?;
    drop(terminal);
    let tally = load.stop()?;
    ensure!(tally.lost == 0 && tally.failed == 0, "{tally:?}");
    device.finish_sound()
}

/// Is it a command of `znsage` on devices?
fn is_on_devices(line: &str) -> bool {
    const OURS: [&str; 8] = ["on", "off", "list", "status", "check", "set", "doctor", "bench"];
    let mut words = line.split_whitespace();
    words.next() == Some("znsage") && words.next().is_some_and(|w| OURS.contains(&w))
}

/// Runs the commands of a document on devices, in order, with the guest's device.
fn run_all(name: &str) -> Outcome<usize> {
    const THEIRS: &str = "/dev/nvme1n1";
    let backing = guest::device(MAIN)?;
    let document = Document::open(name)?;
    let lines = document.commands().into_iter().map(|l| l.trim_start_matches("target/release/"));
    let commands: Vec<&str> = lines.filter(|line| is_on_devices(line)).collect();
    let is_on = || !guest::swaps().is_empty();
    for line in &commands {
        let turns_on = line.starts_with("znsage on");
        match (is_on(), turns_on) {
            (true, true) => guest::ok(&["znsage", "off"]).map(drop)?,
            (false, false) => Device::on(&backing, &[]).map(drop)?,
            _ => {}
        }
        guest::ok(&["sh", "-c", &line.replace(THEIRS, &backing)])
            .context(format!("{name}: {line}"))?;
        ensure!(is_on() != line.starts_with("znsage off"), "{name}: {line}: swap is wrong");
    }
    if is_on() {
        guest::ok(&["znsage", "off"])?;
    }
    Ok(commands.len())
}

fn documented_commands(_: &mut Log) -> Outcome {
    let mut n = 0;
    for document in ["README.md", "docs/install.md", "docs/dev/privacy.md", "docs/monitor.md"] {
        n += run_all(document)?;
    }
    print!("{n} commands ... ");
    ensure!(n >= 7, "only {n} commands were found");
    Ok(())
}
