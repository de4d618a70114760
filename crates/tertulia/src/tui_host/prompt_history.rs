//! Input history of all sessions: a private file with one JSON line per prompt.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tertulia_core::redact::redact;

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::private_file;
use crate::settings::Settings;

/// File name in the data directory.
const FILE: &str = "history.jsonl";
/// Lock held while writing: the history file itself is replaced when it gets too large.
const LOCK: &str = ".history.lock";
/// Size above which the older half is dropped.
const MOST_BYTES: u64 = 2_000_000;
/// Longer prompts are not recorded: they are no use in a history browsed with arrow keys.
const LONGEST: usize = 200_000;

/// The history file.
pub struct PromptHistory {
    folder: PathBuf,
    redacts: bool,
    keeps: bool,
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    text: String,
}

impl PromptHistory {
    pub fn new(settings: &Settings, keeps: bool) -> PromptHistory {
        PromptHistory {
            folder: settings.data.clone(),
            redacts: settings.redact,
            keeps,
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Reads the prompts, oldest first. Unreadable lines are skipped.
    pub fn prompts(&self) -> Vec<String> {
        let bytes = read_end(&self.file()).unwrap_or_default();
        lines(&bytes).filter_map(read_line).collect()
    }

    /// Appends a prompt, with its secrets redacted.
    pub fn add(&self, words: &str) -> CommandResult<()> {
        if !self.keeps || words.trim().is_empty() || words.len() > LONGEST {
            return Ok(());
        }
        let text = match self.redacts {
            true => redact(words).text.into_owned(),
            false => words.to_owned(),
        };
        private_file::make_folder(&self.folder)?;
        let _held = private_file::lock(&self.folder.join(LOCK))?;
        let file = self.file();
        self.append(&file, &Line { text }).map_err(|error| {
            let words = format!("{} cannot be written", file.display());
            CommandError::new(ErrorKind::Failed, words).because(error)
        })
    }

    fn append(&self, path: &Path, line: &Line) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        let mut bytes = Vec::new();
        if !ends_with_a_line(&mut file)? {
            // A process was killed while writing: start a new line after the broken one.
            bytes.push(b'\n');
        }
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
        file.write_all(&bytes)?;
        if file.metadata()?.len() > MOST_BYTES {
            self.shorten(path)?;
        }
        Ok(())
    }

    /// Keeps the newest half. Replaces the file atomically for concurrent readers.
    fn shorten(&self, path: &Path) -> io::Result<()> {
        let bytes = read_end(path)?;
        let half = usize::try_from(MOST_BYTES / 2).unwrap_or(usize::MAX);
        let from = bytes.len().saturating_sub(half);
        let kept = &bytes[from..];
        let first = kept.iter().position(|byte| *byte == b'\n');
        let kept = &kept[first.map_or(0, |feed| feed + 1)..];
        let temporary = self.folder.join(format!(".{FILE}.new"));
        // Leftover of a process that was killed while writing.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        made.write_all(kept)?;
        made.sync_all()?;
        fs::rename(&temporary, path)
    }
}

fn ends_with_a_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}

/// Reads the end of the file: its maximum size, and some more.
fn read_end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let most = 2 * MOST_BYTES;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}

fn read_line(line: &[u8]) -> Option<String> {
    serde_json::from_slice(line)
        .ok()
        .map(|line: Line| line.text)
}
