//! Mirrors a session in a file, which one program writes at a time: replaced in one step after every
//! turn, or continued with lines if its program keeps more in it than a session has.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tertulia_core::id::Seq;
use tertulia_core::session::SessionMeta;
use tertulia_engine::log_writer::SessionMirror;
use tertulia_store::Sessions;

use crate::commands::export::{Continued, Form, Written, replace};
use crate::error::{CommandError, CommandResult, ErrorKind};

/// A session file that is written back.
#[derive(Debug)]
pub struct FileCopy {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The file, locked: two programs would overwrite each other's entries.
    file: File,
    /// Content as it was read or written last.
    content: Vec<u8>,
    /// Its format, and the last entry of the session that it has, once the session is known.
    form: Option<(Form, Seq)>,
}

impl FileCopy {
    /// Locks a file and reads it.
    pub fn lock(path: &Path) -> CommandResult<FileCopy> {
        // Follows a link, so that its target is rewritten and the link stays.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let failed = |error: std::io::Error| {
            let kind = match error.kind() {
                std::io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::Failed,
            };
            let words = format!("{} cannot be read", path.display());
            CommandError::new(kind, words).because(error)
        };
        let file = loop {
            let file = OpenOptions::new().read(true).open(&path).map_err(failed)?;
            match file.try_lock() {
                // Another program may have put another file in its place meanwhile.
                Ok(()) if !is_at(&file, &path).map_err(failed)? => {}
                Ok(()) => break file,
                Err(TryLockError::WouldBlock) => {
                    let words = format!("another program is writing to {}", path.display());
                    return Err(CommandError::new(ErrorKind::Conflict, words)
                        .hint("wait for it, or end it"));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        };
        let content = std::fs::read(&path).map_err(failed)?;
        let state = Mutex::new(State {
            file,
            content,
            form: None,
        });
        Ok(FileCopy { path, state })
    }

    /// Sets the format of the file, and the last entry of the session that it has.
    pub fn begin(&self, form: Form, upto: Seq) {
        self.state().form = Some((form, upto));
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, state: &mut State, lines: &str) -> Result<(), String> {
        let changed = || {
            let path = self.path.display();
            format!("{path} was changed meanwhile; `tertulia import {path}` takes in what is new")
        };
        let now = std::fs::read(&self.path).map_err(|error| error.to_string())?;
        if now != state.content {
            return Err(changed());
        }
        if lines.is_empty() {
            return Ok(());
        }
        let mut more = lines.as_bytes().to_vec();
        if now.last().is_some_and(|last| *last != b'\n') {
            more.insert(0, b'\n');
        }
        let mut file = OpenOptions::new()
            .append(true)
            .open(&self.path)
            .map_err(|error| error.to_string())?;
        let written = file.write_all(&more).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // A part of a line would damage the file; the error of the write is the one to report.
            let _ = file.set_len(now.len() as u64);
            return Err(error.to_string());
        }
        state.content.extend(more);
        Ok(())
    }
}

/// Returns true if a path leads to an open file.
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    let (open, there) = (file.metadata()?, std::fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

#[async_trait]
impl SessionMirror for FileCopy {
    async fn copy(&self, sessions: &Sessions, meta: &SessionMeta) -> Result<(), String> {
        let log = sessions
            .load(meta.id)
            .await
            .map_err(|error| error.to_string())?;
        let mut state = self.state();
        let Some((form, after)) = state.form else {
            return Ok(());
        };
        let content = String::from_utf8_lossy(&state.content).into_owned();
        let content = Continued {
            content: &content,
            after,
        };
        let written = form
            .written(meta, &log, &content)
            .map_err(|error| error.words())?;
        match written {
            Written::Whole(content) => {
                state.file = replace(&self.path, content.as_bytes()).map_err(|error| {
                    format!("{} cannot be written: {error}", self.path.display())
                })?;
            }
            Written::More(lines) => self.append(&mut state, &lines)?,
        }
        state.form = Some((form, log.entries.last().map_or(after, |entry| entry.seq)));
        Ok(())
    }
}
