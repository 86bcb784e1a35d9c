// SPDX-License-Identifier: GPL-2.0-only
//! top restores the terminal however it ends. A terminal belongs to a whole process, so
//! `on_the_terminal` runs in its own.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::pty::{openpty, Winsize};
use nix::sys::signal::{kill, Signal};
use nix::sys::termios::{tcgetattr, LocalFlags, Termios};
use nix::unistd::Pid;

use super::super::screen::{look, Screen};
use super::*;

/// Tells `on_the_terminal` how to end: with an exit status or a panic.
const WAY: &str = "ZNSAGE_TEST_TOP";

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
const HIDE: &str = "\x1b[?25l";
const SHOW: &str = "\x1b[?25h";

/// Generous, for busy machines.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
#[ignore = "the tests below run it on a terminal"]
fn on_the_terminal() {
    let fake = Fake::new();
    machine(&fake, 0);
    let args = TopArgs { device: None, interval: 0.1, ascii: true };
    match std::env::var(WAY).as_deref() {
        Ok("0") => run(&fake, &args, 4096, false).unwrap(),
        Ok("130") => {
            let e = run(&fake, &args, 4096, false).unwrap_err();
            assert_eq!(e.kind, Kind::Interrupted);
        }
        _ => {
            let mut screen = Screen::open(look(&fake, true)).unwrap();
            screen.draw(&watched(&fake, 1)).unwrap();
            panic!("something is wrong");
        }
    }
}

struct Session {
    child: Child,
    terminal: std::fs::File,
    /// The other end, to read the terminal's settings.
    inside: std::os::fd::OwnedFd,
    before: Termios,
    shown: String,
}

impl Session {
    fn start(way: &str) -> Session {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).unwrap();
        let before = tcgetattr(&pair.slave).unwrap();
        let end = || Stdio::from(pair.slave.try_clone().unwrap());
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "top::tests::terminal::on_the_terminal"])
            .args(["--ignored", "--nocapture", "--test-threads=1"])
            .env(WAY, way)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let terminal = pair.master.into();
        Session { child, terminal, inside: pair.slave, before, shown: String::new() }
    }

    /// Reads until `text` appears.
    fn until(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.shown.contains(text) {
            assert!(begun.elapsed() < PATIENCE, "no {text:?} in {:?}", self.shown);
            let mut fds = [PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::from(100u8)).unwrap() > 0 {
                let mut bytes = [0; 4096];
                let n = self.terminal.read(&mut bytes).unwrap();
                // The output is ASCII, so no character is split.
                self.shown += &String::from_utf8_lossy(&bytes[..n]);
            }
        }
    }

    /// Waits for the screen.
    fn drawn(&mut self) {
        self.until("znsage0");
        self.until(HIDE);
        let flags = tcgetattr(&self.inside).unwrap().local_flags;
        assert!(!flags.intersects(LocalFlags::ICANON | LocalFlags::ECHO), "{flags:?}");
    }

    /// Waits for the end and checks that the terminal is restored. Returns the exit
    /// status of the test and the output after the screen.
    fn ended(mut self) -> (Option<i32>, String) {
        self.until("test result:");
        let status = self.child.wait().unwrap();
        assert_eq!(tcgetattr(&self.inside).unwrap(), self.before);
        let last = |what| self.shown.rfind(what).expect(what);
        assert!(last(ENTER) < last(LEAVE), "{:?}", self.shown);
        assert!(last(HIDE) < last(SHOW), "{:?}", self.shown);
        let after = self.shown[last(LEAVE)..].to_string();
        (status.code(), after)
    }
}

#[test]
fn quitting_restores_the_terminal() {
    for key in ["q", "\x03"] {
        let mut session = Session::start("0");
        session.drawn();
        nix::unistd::write(&session.terminal, key.as_bytes()).unwrap();
        let (status, after) = session.ended();
        assert_eq!(status, Some(0), "{key:?}: {after}");
    }
}

#[test]
fn signals_restore_the_terminal() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let mut session = Session::start("130");
        session.drawn();
        kill(Pid::from_raw(session.child.id() as i32), signal).unwrap();
        let (status, after) = session.ended();
        assert_eq!(status, Some(0), "{signal}: {after}");
    }
}

/// The message must not vanish with the screen.
#[test]
fn panic_restores_the_terminal_before_its_message() {
    let session = Session::start("panic");
    let (status, after) = session.ended();
    assert_eq!(status, Some(101));
    assert!(after.contains("something is wrong"), "{after:?}");
}
