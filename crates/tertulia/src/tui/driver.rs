//! Who leads the talk that the screen shows: this program, or a server.

use tertulia_agents::approval::{PermissionChange, Verdict};

use super::local::LocalSession;
use super::mailbox::Mailbox;
use super::news::{News, Order, Ticket};
use super::remote::Remote;

/// Who leads the talk.
#[derive(Debug)]
pub enum Driver {
    /// This program, on a thread beside the screen.
    Here(LocalSession),
    /// A server: the talk goes on without the screen.
    There(Remote),
}

impl Driver {
    /// What happened.
    pub fn news(&self) -> &Mailbox<News> {
        match self {
            Driver::Here(session) => session.news(),
            Driver::There(remote) => remote.news(),
        }
    }

    /// Gives an order.
    pub fn order(&self, order: Order) {
        match self {
            Driver::Here(session) => session.order(order),
            Driver::There(remote) => remote.order(order),
        }
    }

    /// Stops whoever is answering.
    pub fn cancel(&self) {
        match self {
            Driver::Here(session) => session.cancel(),
            Driver::There(remote) => remote.cancel(),
        }
    }

    /// Leaves at once.
    pub fn insist(&self) {
        match self {
            Driver::Here(session) => session.insist(),
            Driver::There(remote) => remote.order(Order::Leave),
        }
    }

    /// Answers a question, if it is still the last one.
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

    /// Waits until nothing of it runs here any more.
    pub fn join(self) {
        match self {
            Driver::Here(session) => session.join(),
            Driver::There(remote) => remote.join(),
        }
    }
}
