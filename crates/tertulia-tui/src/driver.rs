//! The running session behind the TUI: in this process or on a server.

use tertulia_agents::approval::{PermissionChange, Verdict};

use super::event_queue::EventQueue;
use super::follower::Follower;
use super::live::{LiveCommand, LiveEvent, Ticket};
use super::local::LocalSession;
use super::remote::Remote;

/// The running session.
#[derive(Debug)]
pub enum Driver {
    /// In this process, on a thread beside the TUI.
    Local(LocalSession),
    /// On a server: the session continues without the TUI.
    Remote(Remote),
    /// In another program, which writes to the same store: it is only read here.
    Follower(Follower),
}

impl Driver {
    /// Returns the queue of events.
    pub fn events(&self) -> &EventQueue<LiveEvent> {
        match self {
            Driver::Local(session) => session.events(),
            Driver::Remote(remote) => remote.events(),
            Driver::Follower(follower) => follower.events(),
        }
    }

    /// Sends a command.
    pub fn command(&self, command: LiveCommand) {
        match self {
            Driver::Local(session) => session.command(command),
            Driver::Remote(remote) => remote.command(command),
            Driver::Follower(follower) => follower.command(&command),
        }
    }

    /// Cancels the running answer.
    pub fn cancel(&self) {
        match self {
            Driver::Local(session) => session.cancel(),
            Driver::Remote(remote) => remote.cancel(),
            Driver::Follower(_) => {}
        }
    }

    /// Ends the session or detaches from it without waiting.
    pub fn abort(&self) {
        match self {
            Driver::Local(session) => session.abort(),
            Driver::Remote(remote) => remote.command(LiveCommand::Leave),
            Driver::Follower(follower) => follower.command(&LiveCommand::Leave),
        }
    }

    /// Answers a permission question, if it is still the open one.
    pub fn answer(&self, ticket: Ticket, verdict: Verdict) {
        match self {
            Driver::Local(session) => session.answer(ticket, verdict),
            Driver::Remote(remote) => remote.answer(ticket, verdict),
            Driver::Follower(_) => {}
        }
    }

    /// Changes the tool permissions, also while an agent answers.
    pub fn permit(&self, change: PermissionChange) {
        match self {
            Driver::Local(session) => session.permit(&change),
            Driver::Remote(remote) => remote.permit(change),
            Driver::Follower(_) => {}
        }
    }

    /// Waits until its task or threads in this process have ended.
    pub async fn join(self) {
        match self {
            Driver::Local(session) => session.join().await,
            Driver::Remote(remote) => remote.join(),
            Driver::Follower(follower) => follower.join().await,
        }
    }
}
