//! The keyboard of a talk, read line by line.

use std::collections::VecDeque;
use std::io::BufRead;

use tokio::sync::mpsc;

/// Lines as they are typed. Nothing is read before the first line is asked for.
#[derive(Debug, Default)]
pub struct Keyboard {
    lines: Option<mpsc::Receiver<Vec<u8>>>,
    /// Typed before something else was asked.
    ahead: VecDeque<Vec<u8>>,
}

impl Keyboard {
    /// The next line with its end, or nothing when there are no more.
    pub async fn line(&mut self) -> Option<Vec<u8>> {
        match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.typed().recv().await,
        }
    }

    /// A line that is typed from now on: what was typed before was meant for something else, and
    /// waits.
    pub async fn fresh_line(&mut self) -> Option<Vec<u8>> {
        self.typed().recv().await
    }

    /// Puts aside what was typed so far.
    pub fn put_aside(&mut self) {
        while let Ok(line) = self.typed().try_recv() {
            self.ahead.push_back(line);
        }
    }

    fn typed(&mut self) -> &mut mpsc::Receiver<Vec<u8>> {
        self.lines.get_or_insert_with(listen)
    }
}

/// Reads on a thread of its own: nothing can take a read from a terminal back, so it must not hold up
/// the end of the program.
fn listen() -> mpsc::Receiver<Vec<u8>> {
    let (lines, typed) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match stdin.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) if lines.blocking_send(line).is_err() => break,
                Ok(_) => {}
            }
        }
    });
    typed
}
