//! The terminal as the screen needs it, and as it was before, whatever happens.

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

/// Whether the terminal is ours at the moment.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, taken. Dropping it gives it back.
pub struct Screen {
    /// Never dropped: it would show the cursor, and complain on a terminal that is gone, of which it dies.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// Whether nothing of what the terminal shows is to be relied on.
    anew: bool,
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
            terminal: ManuallyDrop::new(Terminal::new(CrosstermBackend::new(io::stdout()))?),
            anew: false,
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

    /// Draws everything anew the next time. By resizing rather than by clearing, which asks the terminal where the
    /// cursor is: what it answers is read as keys by whoever listens to them.
    pub fn redraw(&mut self) {
        self.anew = true;
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
        self.redraw();
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
