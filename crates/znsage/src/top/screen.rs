// SPDX-License-Identifier: GPL-2.0-only
//! The terminal: draws to it, reads keys, and restores it however the command ends.

use std::io::{self, stdin, stdout, IsTerminal, Stdout};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{raise, Signal};
use ratatui::backend::CrosstermBackend;
use ratatui::Terminal;

use super::keys::{self, Key};
use super::state::State;
use super::view::{self, Look};
use crate::error::{reason, Error, Kind, Result};
use crate::sys::Sys;

pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    look: Look,
    /// Bytes of an incomplete escape sequence.
    typed: Vec<u8>,
}

#[derive(Debug, PartialEq)]
pub enum Event {
    Keys(Vec<Key>),
    /// A signal, possibly a change of the window size.
    Signal,
    Time,
}

/// Refuses to run without a terminal.
pub fn check() -> Result<()> {
    match stdin().is_terminal() && stdout().is_terminal() {
        true => Ok(()),
        false => Err(Error::new(Kind::Environment, "`znsage top` needs a terminal")
            .hint("`znsage status` and `znsage status --json` work without one")),
    }
}

/// What the terminal can show, by environment variables.
pub fn look(sys: &dyn Sys, ascii: bool) -> Look {
    let terminal = sys.env("TERM").unwrap_or_default();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| sys.env(name));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    let unicode = locale.contains("utf-8") || locale.contains("utf8");
    Look {
        color: sys.env("NO_COLOR").is_none() && !terminal.starts_with("vt"),
        // The Linux console lacks most characters for bars.
        ascii: ascii || !unicode || terminal == "linux",
    }
}

fn cannot(what: &str) -> impl Fn(io::Error) -> Error + '_ {
    move |e| Error::new(Kind::Environment, format!("cannot {what} the terminal: {}", reason(&e)))
}

impl Screen {
    /// Takes the terminal over. Dropping restores it, and so does a panic before it
    /// prints its message.
    pub fn open(look: Look) -> Result<Screen> {
        let terminal = ratatui::try_init().map_err(|e| {
            let _ = ratatui::try_restore();
            cannot("use")(e)
        })?;
        Ok(Screen { terminal, look, typed: Vec::new() })
    }

    pub fn draw(&mut self, state: &State) -> Result<()> {
        let look = self.look;
        let drawn =
            self.terminal.draw(|frame| view::draw(state, look, frame.area(), frame.buffer_mut()));
        drawn.map(drop).map_err(cannot("draw on"))
    }

    /// Makes the next `draw` redraw everything.
    pub fn forget(&mut self) -> Result<()> {
        let size = self.terminal.size().map_err(cannot("measure"))?;
        self.terminal.resize(size.into()).map_err(cannot("clear"))
    }

    /// Restores the terminal, stops until `fg`, and takes it over again.
    pub fn suspend(&mut self) -> Result<()> {
        let _ = ratatui::try_restore();
        let _ = self.terminal.show_cursor();
        raise(Signal::SIGTSTP).map_err(|e| cannot("leave")(e.into()))?;
        self.terminal = ratatui::try_init().map_err(cannot("use"))?;
        self.forget()
    }

    /// Waits for keys, no longer than `time`.
    pub fn wait(&mut self, time: Duration) -> Result<Event> {
        let stdin = stdin();
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        // Round up, or the wait may end slightly too early, repeatedly.
        let ms = time.as_micros().div_ceil(1000).min(60_000) as u16;
        match poll(&mut fds, PollTimeout::from(ms)) {
            Ok(0) => return Ok(Event::Time),
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Event::Signal),
            Err(e) => return Err(cannot("read from")(e.into())),
        }
        let mut bytes = [0; 256];
        match nix::unistd::read(&stdin, &mut bytes) {
            Ok(0) | Err(Errno::EIO) => Err(Error::new(Kind::Interrupted, "the terminal is gone")),
            Ok(n) => {
                self.typed.extend(&bytes[..n]);
                Ok(Event::Keys(keys::take(&mut self.typed)))
            }
            Err(Errno::EINTR | Errno::EAGAIN) => Ok(Event::Signal),
            Err(e) => Err(cannot("read from")(e.into())),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        // A panic restored it and printed its message; restoring it again would move
        // the cursor over the message on some terminals.
        if !std::thread::panicking() {
            let _ = ratatui::try_restore();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    fn looks(list: &[(&str, &str)]) -> (bool, bool) {
        let fake = Fake::new();
        fake.env.borrow_mut().extend(list.iter().map(|(k, v)| (k.to_string(), v.to_string())));
        let look = look(&fake, false);
        (look.color, look.ascii)
    }

    #[test]
    fn environment_determines_colours_and_characters() {
        let utf8 = ("LANG", "de_DE.UTF-8");
        assert_eq!(looks(&[utf8, ("TERM", "xterm-256color")]), (true, false));
        assert_eq!(looks(&[("LC_ALL", "C"), utf8, ("TERM", "xterm")]), (true, true));
        assert_eq!(looks(&[("LC_CTYPE", "C.utf8"), ("TERM", "screen")]), (true, false));
        assert_eq!(looks(&[utf8, ("TERM", "linux")]), (true, true));
        assert_eq!(looks(&[utf8, ("TERM", "vt100")]), (false, false));
        assert_eq!(looks(&[utf8, ("NO_COLOR", "1")]), (false, false));
        assert!(super::look(&Fake::new(), true).ascii);
    }
}
