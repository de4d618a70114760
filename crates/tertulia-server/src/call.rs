//! Client side of the protocol, for programs that call a running server.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::protocol::{Answer, Ask, ErrorBody, ErrorKind, Id, Reply, Request};

/// Why a call to a server failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No server listens there.
    #[error("no server is running")]
    NotRunning,
    /// The server closed the connection.
    #[error("the server has hung up")]
    HungUp,
    /// The server's reply cannot be parsed.
    #[error("the server says something that this program does not know")]
    Unknown(#[source] serde_json::Error),
    /// Any other failure.
    #[error("the server cannot be reached")]
    Failed(#[source] std::io::Error),
}

impl From<CallError> for ErrorBody {
    fn from(error: CallError) -> ErrorBody {
        let message = error.to_string();
        match error {
            CallError::NotRunning => ErrorBody::new(ErrorKind::NotFound, message)
                .hint("`tertulia serve --detach` starts one"),
            CallError::HungUp => ErrorBody::new(ErrorKind::Failed, message),
            CallError::Unknown(source) => {
                ErrorBody::new(ErrorKind::Invalid, format!("{message}: {source}"))
                    .hint("the server may be of another version: `tertulia ps` shows which")
            }
            CallError::Failed(source) => {
                ErrorBody::new(ErrorKind::Failed, format!("{message}: {source}"))
            }
        }
    }
}

/// Converts an answer to something else than was asked.
pub fn unexpected(answer: Answer) -> ErrorBody {
    match answer {
        Answer::Error(error) => error,
        Answer::Goodbye { reason } => ErrorBody::new(ErrorKind::Failed, reason),
        other => ErrorBody::new(
            ErrorKind::Invalid,
            format!("the server answered something else: {other:?}"),
        ),
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Call {
    /// The sending half.
    pub writer: RequestWriter,
    /// The receiving half.
    pub reader: ReplyReader,
    asked: i64,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct RequestWriter(UnixStream);

/// The receiving half of a connection.
#[derive(Debug)]
pub struct ReplyReader(BufReader<UnixStream>);

impl Call {
    /// Connects to the socket at `path`.
    pub fn connect(path: &Path) -> Result<Call, CallError> {
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                CallError::NotRunning
            }
            _ => CallError::Failed(error),
        })?;
        let other = stream.try_clone().map_err(CallError::Failed)?;
        Ok(Call {
            writer: RequestWriter(stream),
            reader: ReplyReader(BufReader::new(other)),
            asked: 0,
        })
    }

    /// Sends a request and waits for the first reply to it.
    pub fn ask(&mut self, ask: Ask) -> Result<Answer, CallError> {
        self.asked += 1;
        let id = Id::Number(self.asked);
        self.writer.send(Some(id.clone()), ask)?;
        loop {
            match self.reader.read()? {
                Reply {
                    id: Some(answers),
                    answer,
                } if answers == id => return Ok(answer),
                Reply {
                    id: None,
                    answer: answer @ (Answer::Error(_) | Answer::Goodbye { .. }),
                } => return Ok(answer),
                _ => {}
            }
        }
    }
}

impl RequestWriter {
    /// Sends a request as one line.
    pub fn send(&mut self, id: Option<Id>, ask: Ask) -> Result<(), CallError> {
        let mut line = serde_json::to_vec(&Request { id, ask }).map_err(CallError::Unknown)?;
        line.push(b'\n');
        self.0.write_all(&line).map_err(|_| CallError::HungUp)
    }

    /// Closes the connection in both directions.
    pub fn close(&self) {
        // The connection may be closed already.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

impl ReplyReader {
    /// Reads the next reply.
    pub fn read(&mut self) -> Result<Reply, CallError> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => Err(CallError::HungUp),
            Ok(_) => serde_json::from_str(&line).map_err(CallError::Unknown),
            Err(error) => Err(CallError::Failed(error)),
        }
    }
}
