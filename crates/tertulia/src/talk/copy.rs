//! A session in a file, written back when a turn ends: whole, in one step, and by one program at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tertulia_core::session::SessionMeta;
use tertulia_engine::log_writer::SessionMirror;
use tertulia_store::Sessions;

use crate::commands::export::{self, Form};
use crate::error::{CommandError, CommandResult, ErrorKind};

/// The file.
#[derive(Debug)]
pub struct FileCopy {
    file: PathBuf,
    form: Form,
    /// Held as long as the talk lasts: of two programs each would write over what the other has.
    _lock: File,
}

impl FileCopy {
    /// A copy in this form, if it is one that is written.
    pub fn of(file: &Path, form: Option<Form>) -> CommandResult<Option<FileCopy>> {
        let Some(form) = form else { return Ok(None) };
        // A link is followed: what it leads to is written, and stays what it leads to.
        let file = &file.canonicalize().unwrap_or_else(|_| file.to_owned());
        // The file itself is replaced each time, so that a lock on it would hold nobody off.
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
