//! The terminal as the screen needs it, and as it was before, whatever happens.

use std::io::{self, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Size};

/// Whether the terminal is ours at the moment.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, taken. Dropping it gives it back.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal. A panic gives it back before it says anything.
    pub fn take() -> io::Result<Screen> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        take()?;
        Ok(Screen {
            terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?,
        })
    }

    /// How large it is.
    pub fn size(&self) -> io::Result<Size> {
        self.terminal.size()
    }

    /// Draws a picture. What draws it says where the cursor is. Nothing is drawn on a terminal that is not
    /// ours any more.
    pub fn draw(&mut self, view: impl FnOnce(&mut Buffer) -> Option<Position>) -> io::Result<()> {
        if !TAKEN.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        queue!(io::stdout(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| {
            if let Some(cursor) = view(frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        execute!(io::stdout(), EndSynchronizedUpdate)
    }

    /// Draws everything anew the next time. A new picture is begun rather than the old one cleared: that asks the
    /// terminal where the cursor is, and what it answers is read as keys by whoever listens to them.
    pub fn redraw(&mut self) -> io::Result<()> {
        execute!(io::stdout(), Clear(ClearType::All))?;
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }

    /// Gives the terminal to the shell until it gives it back.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.lend(|| {
            let stop = rustix::process::Signal::TSTP;
            rustix::process::kill_process(rustix::process::getpid(), stop)
        })??;
        Ok(())
    }

    /// Gives the terminal to another program while it runs, an editor for example.
    pub fn lend<T>(&mut self, program: impl FnOnce() -> T) -> io::Result<T> {
        give_back();
        let result = program();
        take()?;
        self.redraw()?;
        Ok(result)
    }

    /// Puts a text into the clipboard of whoever sits at the terminal, over ssh too.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        let copied = crossterm::clipboard::CopyToClipboard::to_clipboard_from(text);
        execute!(io::stdout(), copied)
    }

    /// Rings.
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

/// Gives the terminal back, once.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // A terminal that is gone needs nothing any more.
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
