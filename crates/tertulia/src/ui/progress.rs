//! Shows the progress of long operations: a bar on a terminal, a line elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tertulia_store::Progress;

use super::{Ui, grouped};

/// Operations that take longer than this get a progress bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Number of entries whose indexing takes noticeably long, so that a search reports it at once.
const MUCH_TO_INDEX: u64 = 2000;

impl Ui {
    /// Creates a progress bar that appears after a second, and only on a terminal.
    pub fn progress(&self) -> Progress {
        if self.quiet || !io::stderr().is_terminal() {
            return Progress::unseen();
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        let started = Instant::now();
        Progress::new(move |what, done, total| {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(what);
            if done >= total {
                bar.finish_and_clear();
            } else if bar.is_hidden() && started.elapsed() > PATIENCE {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        })
    }

    /// Creates the progress of a search that may have to wait for its index. Outside a terminal it
    /// prints one line, as soon as there is much to index or it takes long.
    pub fn index_progress(&self) -> Progress {
        if self.quiet || io::stderr().is_terminal() {
            return self.progress();
        }
        let started = Instant::now();
        let said = AtomicBool::new(false);
        Progress::new(move |what, done, total| {
            let is_long = total >= MUCH_TO_INDEX || started.elapsed() > PATIENCE / 2;
            if done < total && is_long && !said.swap(true, Ordering::Relaxed) {
                let _ = writeln!(io::stderr(), "{what} {} messages…", grouped(total - done));
            }
        })
    }
}
