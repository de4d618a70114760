//! Terminal setup, and restoring the terminal in every case.

use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste,
    EnableFocusChange, EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

use super::text::one_line;

/// Puts the title of the window on the terminal's stack, and takes it back from there.
const SAVE_TITLE: &str = "\x1b[22;2t";
const RESTORE_TITLE: &str = "\x1b[23;2t";

/// Whether the terminal is in TUI mode.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Panics of other threads, which are reported once the terminal is restored.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The terminal in TUI mode. Dropping it restores the terminal.
pub struct Screen {
    /// Never dropped: `Terminal::drop` shows the cursor, and panics when it reports the error on a
    /// terminal that is gone.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// Whether the content of the terminal is unknown.
    is_outdated: bool,
    /// Title of the window, once it is set.
    title: String,
}

/// Sets the buffer of tmux and the clipboard of its terminals, on a thread of its own. Without tmux
/// on the path, the terminal's own clipboard has to do.
fn load_buffer(text: String) {
    let mut tmux = Command::new("tmux");
    tmux.args(["load-buffer", "-w", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    std::thread::spawn(move || {
        let Ok(mut child) = tmux.spawn() else {
            return;
        };
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(text.as_bytes());
        }
        let _ = child.wait();
    });
}

impl Screen {
    /// Switches to TUI mode. A panic of this thread restores the terminal before it is reported.
    pub fn take() -> io::Result<Screen> {
        restore_on_panic();
        // Without a `Screen` nothing would restore a terminal that was switched half way.
        let terminal = take()
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())))
            .inspect_err(|_| give_back())?;
        Ok(Screen {
            terminal: ManuallyDrop::new(terminal),
            is_outdated: false,
            title: String::new(),
        })
    }

    /// Terminal size.
    pub fn size(&self) -> io::Result<Size> {
        self.terminal.size()
    }

    /// Draws a frame; `view` returns the cursor position. Fails if the terminal is no longer in TUI
    /// mode.
    pub fn draw(&mut self, view: impl FnOnce(&mut Buffer) -> Option<Position>) -> io::Result<()> {
        if !TAKEN.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        queue!(io::stdout(), BeginSynchronizedUpdate)?;
        if self.is_outdated {
            let size = self.terminal.size()?;
            self.terminal.resize(Rect::from((Position::ORIGIN, size)))?;
            self.is_outdated = false;
        }
        self.terminal.draw(|frame| {
            if let Some(cursor) = view(frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        execute!(io::stdout(), EndSynchronizedUpdate)
    }

    /// Redraws everything the next time. Resizes rather than clears: clearing queries the cursor
    /// position, and the terminal's response would be read as keys by the event stream.
    pub fn redraw(&mut self) {
        self.is_outdated = true;
    }

    /// Suspends the process until the shell resumes it.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.lend(|| {
            let stop = rustix::process::Signal::TSTP;
            rustix::process::kill_process(rustix::process::getpid(), stop)
        })??;
        Ok(())
    }

    /// Restores the terminal while another program, such as an editor, runs.
    pub fn lend<T>(&mut self, program: impl FnOnce() -> T) -> io::Result<T> {
        give_back();
        let result = program();
        take()?;
        self.title.clear();
        self.redraw();
        Ok(result)
    }

    /// Copies text to the clipboard of the terminal (OSC 52), also over ssh. tmux ignores that unless
    /// it is told otherwise, so that `in_tmux` also hands it the text.
    pub fn copy(&mut self, text: &str, in_tmux: bool) -> io::Result<()> {
        if in_tmux {
            load_buffer(text.to_owned());
        }
        let copied = crossterm::clipboard::CopyToClipboard::to_clipboard_from(text);
        execute!(io::stdout(), copied)
    }

    /// Shows a desktop notification, on terminals that can (OSC 9).
    pub fn announce(&mut self, text: &str) -> io::Result<()> {
        execute!(
            io::stdout(),
            Print(format!("\x1b]9;{}\x07", one_line(text)))
        )
    }

    /// Sets the title of the window, if it has changed (OSC 2).
    pub fn entitle(&mut self, title: &str) -> io::Result<()> {
        if self.title == title {
            return Ok(());
        }
        title.clone_into(&mut self.title);
        // Not crossterm's command, which sets the icon's name, too: that is not on the stack.
        execute!(
            io::stdout(),
            Print(format!("\x1b]2;{}\x07", one_line(title)))
        )
    }

    /// Rings the bell.
    pub fn ring(&mut self) -> io::Result<()> {
        let mut stdout = io::stdout();
        stdout.write_all(b"\x07")?;
        stdout.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal when this thread panics. A panic of another thread ends what runs there,
/// such as a session, but not the TUI, whose screen it must not write to.
fn restore_on_panic() {
    let (before, owner) = (std::panic::take_hook(), std::thread::current().id());
    std::panic::set_hook(Box::new(move |panic| {
        if TAKEN.load(Ordering::SeqCst) && std::thread::current().id() != owner {
            panics().push(panic.to_string());
            return;
        }
        give_back();
        before(panic);
    }));
}

fn panics() -> MutexGuard<'static, Vec<String>> {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableMouseCapture,
        EnableFocusChange,
        Print(SAVE_TITLE),
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
    )
}

/// Restores the terminal, once.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Errors on a terminal that is gone do not matter.
    let _ = execute!(
        io::stdout(),
        PopKeyboardEnhancementFlags,
        Print(RESTORE_TITLE),
        DisableFocusChange,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
    for panic in panics().drain(..) {
        let _ = writeln!(io::stderr(), "{panic}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_another_thread_leaves_the_screen_alone() {
        restore_on_panic();
        TAKEN.store(true, Ordering::SeqCst);
        let panicked = std::thread::spawn(|| panic!("the session crashed")).join();
        assert!(panicked.is_err());
        assert!(TAKEN.load(Ordering::SeqCst), "the screen is still in use");
        assert!(panics().concat().contains("the session crashed"));
        give_back();
        assert!(panics().is_empty() && !TAKEN.load(Ordering::SeqCst));
    }
}
