//! Calls the user in line mode: runs the program of `[notify] command`.

use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_engine::live::LiveSession;
use tertulia_engine::notification::{self, Occasion};

/// Whom and how to call.
#[derive(Clone, Debug)]
pub struct Caller {
    command: Vec<String>,
    session: SessionId,
    who: String,
    kind: Kind,
}

impl Caller {
    /// Returns the caller for a session; it does nothing without a program.
    pub fn of(command: &[String], session: &LiveSession) -> Caller {
        let agent = session.conversation().agent_name();
        Caller {
            command: command.to_owned(),
            session: session.state().id,
            who: agent.unwrap_or("the agent").to_owned(),
            kind: session.kind(),
        }
    }

    /// An agent asks for permission.
    pub fn asked(&self) {
        self.call(Occasion::Permission);
    }

    /// A turn has ended.
    pub fn ended(&self) {
        self.call(match self.kind {
            Kind::Chat => Occasion::Ended,
            Kind::Team | Kind::Pair => Occasion::Person,
        });
    }

    fn call(&self, occasion: Occasion) {
        if !self.command.is_empty() {
            let line = occasion.line(&self.who);
            let message = notification::message(self.session, occasion, &line);
            notification::run(&self.command, message);
        }
    }
}
