//! Terminal setup, and restoring the terminal in every case.

use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

/// Whether the terminal is in TUI mode.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal in TUI mode. Dropping it restores the terminal.
pub struct Screen {
    /// Never dropped: `Terminal::drop` shows the cursor, and panics when it reports the error on a
    /// terminal that is gone.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// Whether the content of the terminal is unknown.
    anew: bool,
}

impl Screen {
    /// Switches to TUI mode. A panic restores the terminal before it is reported.
    pub fn take() -> io::Result<Screen> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        // Without a `Screen` nothing would restore a terminal that was switched half way.
        let terminal = take()
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())))
            .inspect_err(|_| give_back())?;
        Ok(Screen {
            terminal: ManuallyDrop::new(terminal),
            anew: false,
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
        if self.anew {
            let size = self.terminal.size()?;
            self.terminal.resize(Rect::from((Position::ORIGIN, size)))?;
            self.anew = false;
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
        self.anew = true;
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
        self.redraw();
        Ok(result)
    }

    /// Copies text to the clipboard of the terminal (OSC 52), also over ssh.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        let copied = crossterm::clipboard::CopyToClipboard::to_clipboard_from(text);
        execute!(io::stdout(), copied)
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

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableMouseCapture,
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
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}
