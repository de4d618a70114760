//! Calls the user in line mode: runs the program of `[notify] command`.

use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_engine::live::LiveSession;
use tertulia_engine::notification::Occasion;

use crate::settings::Caller;

/// Whom to call, and who calls.
#[derive(Clone, Debug)]
pub struct SessionCaller {
    caller: Caller,
    session: SessionId,
    who: String,
    kind: Kind,
}

impl SessionCaller {
    /// Returns the caller for a session.
    pub fn of(caller: Caller, session: &LiveSession) -> SessionCaller {
        let agent = session.conversation().agent_name();
        SessionCaller {
            caller,
            session: session.state().id,
            who: agent.unwrap_or("the agent").to_owned(),
            kind: session.kind(),
        }
    }

    /// An agent asks for permission to do what `preview` shows.
    pub fn asked(&self, preview: &str) {
        self.call(Occasion::Permission, preview);
    }

    /// A turn has ended.
    pub fn ended(&self) {
        let occasion = match self.kind {
            Kind::Chat => Occasion::Ended,
            Kind::Team | Kind::Pair => Occasion::Person,
        };
        self.call(occasion, "");
    }

    fn call(&self, occasion: Occasion, text: &str) {
        self.caller.call(self.session, occasion, &self.who, text);
    }
}
