//! Test fixture: the program on a pseudo-terminal.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::home::{Home, until};

/// A terminal that supports only line mode: its output can be read as it comes.
pub const DUMB: (&str, &str) = ("TERM", "dumb");
/// A terminal that supports the TUI.
pub const CAPABLE: (&str, &str) = ("TERM", "xterm-256color");

/// The program on a pseudo-terminal.
pub struct Terminal {
    pub child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts the program on a dumb terminal, unless a variable says otherwise.
    pub fn open(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Terminal {
        Terminal::open_wide(home, args, variables, 80)
    }

    /// Starts the program on a terminal with this many columns.
    pub fn open_wide(
        home: &Home,
        args: &[&str],
        variables: &[(&str, &str)],
        cols: u16,
    ) -> Terminal {
        let size = PtySize {
            rows: 24,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_tertulia"));
        command.args(args);
        command.cwd(home.project());
        command.env_clear();
        command.env("HOME", home.path());
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env(DUMB.0, DUMB.1);
        command.env("TZ", "UTC");
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let seen = screen.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                seen.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        let keyboard = pair.master.take_writer().unwrap();
        Terminal {
            child,
            keyboard,
            screen,
            reader,
            _master: pair.master,
        }
    }

    /// Returns everything shown so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    /// Waits until a text has been shown `times` times.
    pub fn sees(&mut self, words: &str, times: usize) {
        until(&format!("{words:?} is on the screen"), || {
            let over = self.child.try_wait().unwrap().is_some();
            let shown = self.shown();
            let seen = shown.matches(words).count() >= times;
            assert!(seen || !over, "it ended without {words:?}: {shown:?}");
            seen.then_some(())
        });
    }

    pub fn types(&mut self, keys: impl AsRef<[u8]>) {
        self.keyboard.write_all(keys.as_ref()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Waits for the program to exit. Returns the exit code and everything shown.
    pub fn ends(mut self) -> (u32, String) {
        let status = until("the talk ends", || self.child.try_wait().unwrap());
        // The terminal is at its end once no process has it open, and all output has arrived.
        until("the terminal is closed", || {
            self.reader.is_finished().then_some(())
        });
        (status.exit_code(), self.shown())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

pub const CTRL_C: &str = "\u{3}";
pub const CTRL_D: &str = "\u{4}";
