//! Errors of the TUI, with hints for the user.

use std::error::Error;

use tertulia_engine::error::{ErrorBody, ErrorKind};
use tertulia_server::call::CallError;
use tertulia_store::StoreError;

/// An error: its kind, what failed, and hints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TuiError {
    /// Kind of error.
    pub kind: ErrorKind,
    /// What failed and why.
    pub message: String,
    /// What the user can do about it.
    pub hints: Vec<String>,
}

/// Result of an operation of the TUI.
pub type TuiResult<T> = Result<T, TuiError>;

impl TuiError {
    /// Creates an error without hints.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> TuiError {
        TuiError {
            kind,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Creates an error of no particular kind with its cause.
    pub fn failed(message: &str, cause: &dyn Error) -> TuiError {
        TuiError::new(ErrorKind::Failed, format!("{message}: {cause}"))
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> TuiError {
        self.hints.push(hint.into());
        self
    }

    /// Returns the message and the hints on one line.
    pub fn sentence(&self) -> String {
        let parts = std::iter::once(&self.message).chain(&self.hints);
        parts.map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

impl From<ErrorBody> for TuiError {
    fn from(body: ErrorBody) -> TuiError {
        TuiError {
            kind: body.kind,
            message: body.message,
            hints: body.hint.into_iter().collect(),
        }
    }
}

impl From<StoreError> for TuiError {
    fn from(error: StoreError) -> TuiError {
        ErrorBody::from(&error).into()
    }
}

impl From<CallError> for TuiError {
    fn from(error: CallError) -> TuiError {
        ErrorBody::from(error).into()
    }
}
