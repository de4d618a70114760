//! The other end: for programs that ask a running server.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::protocol::{Answer, Ask, Id, Reply, Request};

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No server listens there.
    #[error("no server is running")]
    NotRunning,
    /// It hung up.
    #[error("the server has hung up")]
    HungUp,
    /// It said something that is not understood.
    #[error("the server says something that this program does not know")]
    Unknown(#[source] serde_json::Error),
    /// Anything else.
    #[error("the server cannot be reached")]
    Failed(#[source] std::io::Error),
}

/// A connection to a server.
#[derive(Debug)]
pub struct Call {
    /// What is said.
    pub mouth: Mouth,
    /// What is heard.
    pub ear: Ear,
    asked: i64,
}

/// The half that speaks.
#[derive(Debug)]
pub struct Mouth(UnixStream);

/// The half that hears.
#[derive(Debug)]
pub struct Ear(BufReader<UnixStream>);

impl Call {
    /// Connects.
    pub fn connect(path: &Path) -> Result<Call, CallError> {
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                CallError::NotRunning
            }
            _ => CallError::Failed(error),
        })?;
        let other = stream.try_clone().map_err(CallError::Failed)?;
        Ok(Call {
            mouth: Mouth(stream),
            ear: Ear(BufReader::new(other)),
            asked: 0,
        })
    }

    /// Asks, and waits for the first answer to it.
    pub fn ask(&mut self, ask: Ask) -> Result<Answer, CallError> {
        self.asked += 1;
        let id = Id::Number(self.asked);
        self.mouth.say(Some(id.clone()), ask)?;
        loop {
            match self.ear.hear()? {
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

impl Mouth {
    /// Says a line.
    pub fn say(&mut self, id: Option<Id>, ask: Ask) -> Result<(), CallError> {
        let mut line = serde_json::to_vec(&Request { id, ask }).map_err(CallError::Unknown)?;
        line.push(b'\n');
        self.0.write_all(&line).map_err(|_| CallError::HungUp)
    }

    /// Hangs up, whoever still listens.
    pub fn hang_up(&self) {
        // It may be gone already.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

impl Ear {
    /// The next line.
    pub fn hear(&mut self) -> Result<Reply, CallError> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => Err(CallError::HungUp),
            Ok(_) => serde_json::from_str(&line).map_err(CallError::Unknown),
            Err(error) => Err(CallError::Failed(error)),
        }
    }
}
