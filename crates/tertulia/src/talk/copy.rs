//! Mirrors a session in a file: rewritten atomically after every turn, by one program at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tertulia_core::session::SessionMeta;
use tertulia_engine::log_writer::SessionMirror;
use tertulia_store::Sessions;

use crate::commands::export::{self, Form};
use crate::error::{CommandError, CommandResult, ErrorKind};

/// A session file that is written back.
#[derive(Debug)]
pub struct FileCopy {
    file: PathBuf,
    form: Form,
    /// Held while the session runs: two programs would overwrite each other's entries.
    _lock: File,
}

impl FileCopy {
    /// Locks the file for writing; `None` if its format is read-only.
    pub fn of(file: &Path, form: Option<Form>) -> CommandResult<Option<FileCopy>> {
        let Some(form) = form else { return Ok(None) };
        // Follows a link, so that its target is rewritten and the link stays.
        let file = &file.canonicalize().unwrap_or_else(|_| file.to_owned());
        // The file itself is replaced on every write, so a lock on it would not exclude other
        // programs.
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let failed = |error: std::io::Error| {
            let words = format!("{} cannot be written back", file.display());
            CommandError::new(ErrorKind::Failed, words).because(error)
        };
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(PathBuf::from(name))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let words = format!("another program is writing to {}", file.display());
                return Err(
                    CommandError::new(ErrorKind::Conflict, words).hint("wait for it, or end it")
                );
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(Some(FileCopy {
            file: file.to_owned(),
            form,
            _lock: lock,
        }))
    }
}

#[async_trait]
impl SessionMirror for FileCopy {
    async fn copy(&self, sessions: &Sessions, meta: &SessionMeta) -> Result<(), String> {
        let log = sessions
            .load(meta.id)
            .await
            .map_err(|error| error.to_string())?;
        let content = self
            .form
            .content(meta, &log)
            .map_err(|error| error.to_string())?;
        export::write(&self.file, content.as_bytes(), true).map_err(|error| error.words())
    }
}
