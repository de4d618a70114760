//! Converts errors to and from their form in the protocol.

use tertulia_server::call::CallError;
use tertulia_server::protocol::{ErrorBody, ErrorKind as Wire};
use tertulia_server::socket::SocketError;

use crate::error::{CommandError, ErrorKind};

/// Converts an error for the protocol; the only mapping between the two sets of kinds.
pub fn trouble(error: &CommandError) -> ErrorBody {
    let kind = match error.kind() {
        ErrorKind::Failed => Wire::Failed,
        ErrorKind::NoSpace => Wire::NoSpace,
        ErrorKind::Usage => Wire::Usage,
        ErrorKind::NotFound => Wire::NotFound,
        ErrorKind::Ambiguous => Wire::Ambiguous,
        ErrorKind::Conflict => Wire::Conflict,
        ErrorKind::Invalid => Wire::Invalid,
        ErrorKind::Agent => Wire::Agent,
        ErrorKind::Interrupted(_) => Wire::Interrupted,
    };
    let hints = error.hints();
    ErrorBody {
        kind,
        message: error.words(),
        hint: (!hints.is_empty()).then(|| hints.join("; ")),
    }
}

impl From<SocketError> for CommandError {
    fn from(error: SocketError) -> CommandError {
        let words = error.to_string();
        match error {
            SocketError::Live(_) => CommandError::new(ErrorKind::Conflict, words)
                .hint("`tertulia ps` lists its sessions, `tertulia stop --all` ends it"),
            SocketError::Occupied { .. } => CommandError::new(ErrorKind::Conflict, words)
                .hint("choose another place with --socket PATH"),
            SocketError::TooLong(_) => CommandError::new(ErrorKind::Usage, words)
                .hint("choose a shorter one with --socket PATH"),
            SocketError::Failed { source, .. } => {
                CommandError::new(ErrorKind::Failed, words).because(source)
            }
        }
    }
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> CommandError {
        ErrorBody::from(error).into()
    }
}
