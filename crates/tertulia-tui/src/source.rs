//! The session that is shown next: prepared in this process, or followed on a server.

use std::sync::Arc;

use tertulia_engine::event::Tone;

use super::attach::{Attachment, Server};
use super::driver::Driver;
use super::effect::Next;
use super::error::TuiResult;
use super::event_queue::EventQueue;
use super::follower::Follower;
use super::host::{Followed, Host, Prepared};
use super::local::LocalSession;
use super::remote::Remote;
use super::session_info::SessionInfo;
use super::state::State;
use super::store_service::StoreService;

/// A session that is about to be shown.
pub enum Source {
    /// Runs in this process.
    Local(Box<Prepared>),
    /// Runs on a server.
    Remote(Box<Attachment>),
    /// Runs in another program, and is only read.
    Followed(Box<Followed>),
}

/// Prepares the sessions that follow the first one.
#[derive(Clone)]
pub struct Preparation {
    host: Arc<dyn Host>,
    /// The server that runs the sessions, if attached to one.
    server: Option<Server>,
}

impl Preparation {
    /// Prepares a session.
    pub async fn prepare(&self, next: &Next) -> TuiResult<Source> {
        Ok(match &self.server {
            Some(server) => Source::Remote(Box::new(server.prepare(next).await?)),
            None => self.host.prepare(next).await?,
        })
    }
}

impl Source {
    /// Returns what prepares the next session.
    pub fn preparation(&self) -> Preparation {
        match self {
            Source::Local(prepared) => Preparation {
                host: prepared.host.clone(),
                server: None,
            },
            Source::Remote(attachment) => Preparation {
                host: attachment.server.host.clone(),
                server: Some(attachment.server.clone()),
            },
            Source::Followed(followed) => Preparation {
                host: followed.host.clone(),
                server: None,
            },
        }
    }

    /// Returns what is known of the session before it is opened.
    pub fn info(&self) -> SessionInfo {
        match self {
            Source::Local(prepared) => SessionInfo::of(prepared),
            Source::Remote(attachment) => SessionInfo::attached(attachment),
            Source::Followed(followed) => SessionInfo::followed(followed),
        }
    }

    /// Takes its first message.
    pub fn take_prompt(&mut self) -> Option<String> {
        match self {
            Source::Local(prepared) => prepared.prompt.take(),
            Source::Followed(followed) => followed.prompt.take(),
            Source::Remote(_) => None,
        }
    }

    /// Takes the messages of its preparation.
    pub fn take_notices(&mut self) -> Vec<(Tone, String)> {
        match self {
            Source::Local(prepared) => std::mem::take(&mut prepared.notices),
            Source::Remote(_) => Vec::new(),
            Source::Followed(followed) => std::mem::take(&mut followed.notices),
        }
    }

    /// Returns true if the user picks a session first.
    pub fn picks(&self) -> bool {
        match self {
            Source::Local(prepared) => prepared.picks,
            Source::Remote(_) | Source::Followed(_) => false,
        }
    }

    /// Creates the store service.
    pub fn store_service(&self) -> StoreService {
        match self {
            Source::Local(prepared) => StoreService::new(prepared.host.clone()),
            Source::Remote(attachment) => StoreService::new(attachment.server.host.clone()),
            Source::Followed(followed) => StoreService::new(followed.host.clone()),
        }
    }

    /// Starts the session, or follows it on its server.
    pub fn drive(self) -> TuiResult<Driver> {
        let events = EventQueue::default();
        Ok(match self {
            Source::Local(prepared) => {
                Driver::Local(LocalSession::start(prepared.setup, prepared.host, events))
            }
            Source::Remote(attachment) => {
                let remote = Remote::follow(attachment.call, attachment.id, events)?;
                Driver::Remote(remote)
            }
            Source::Followed(followed) => {
                let sessions = followed.host.workspace().sessions.clone();
                Driver::Follower(Follower::start(sessions, followed.row.meta, events))
            }
        })
    }
}

/// Returns how to get back to a session that was left.
pub fn back(state: &State) -> Next {
    match &state.meta {
        Some(_) => Next::resume_with(state.id, state.info.team_file.clone()),
        None => state.info.start_over(),
    }
}

/// Combines the given draft with the text that was left in the input of the last session.
pub fn draft(given: Option<String>, written: String) -> Option<String> {
    let pieces = given.into_iter().chain([written]);
    let pieces: Vec<String> = pieces.filter(|piece| !piece.trim().is_empty()).collect();
    (!pieces.is_empty()).then(|| pieces.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_goes_along_to_the_next_talk() {
        let check = |given: Option<&str>, written: &str, expected: Option<&str>| {
            let draft = draft(given.map(str::to_owned), written.to_owned());
            assert_eq!(draft.as_deref(), expected);
        };
        check(None, "", None);
        check(None, "half a sen", Some("half a sen"));
        check(Some("said before"), " ", Some("said before"));
        check(Some("said before"), "half", Some("said before\nhalf"));
    }
}
