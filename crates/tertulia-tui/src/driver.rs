//! The running session behind the TUI: in this process or on a server.

use tertulia_agents::approval::{PermissionChange, Verdict};

use super::local::LocalSession;
use super::mailbox::Mailbox;
use super::news::{News, Order, Ticket};
use super::remote::Remote;

/// The running session.
#[derive(Debug)]
pub enum Driver {
    /// In this process, on a thread beside the TUI.
    Here(LocalSession),
    /// On a server: the session continues without the TUI.
    There(Remote),
}

impl Driver {
    /// Returns the mailbox of events.
    pub fn news(&self) -> &Mailbox<News> {
        match self {
            Driver::Here(session) => session.news(),
            Driver::There(remote) => remote.news(),
        }
    }

    /// Sends a command.
    pub fn order(&self, order: Order) {
        match self {
            Driver::Here(session) => session.order(order),
            Driver::There(remote) => remote.order(order),
        }
    }

    /// Cancels the running answer.
    pub fn cancel(&self) {
        match self {
            Driver::Here(session) => session.cancel(),
            Driver::There(remote) => remote.cancel(),
        }
    }

    /// Ends the session or detaches from it without waiting.
    pub fn insist(&self) {
        match self {
            Driver::Here(session) => session.insist(),
            Driver::There(remote) => remote.order(Order::Leave),
        }
    }

    /// Answers a permission question, if it is still the open one.
    pub fn answer(&self, ticket: Ticket, verdict: Verdict) {
        match self {
            Driver::Here(session) => session.answer(ticket, verdict),
            Driver::There(remote) => remote.answer(ticket, verdict),
        }
    }

    /// Changes the tool permissions, also while an agent answers.
    pub fn permit(&self, change: PermissionChange) {
        match self {
            Driver::Here(session) => session.permit(&change),
            Driver::There(remote) => remote.permit(change),
        }
    }

    /// Waits until its threads in this process have ended.
    pub fn join(self) {
        match self {
            Driver::Here(session) => session.join(),
            Driver::There(remote) => remote.join(),
        }
    }
}
