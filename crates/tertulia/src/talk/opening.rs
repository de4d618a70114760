//! A prepared session: the engine's `Setup`, and what only this program's frontends need.

use tertulia_core::query::Row;
use tertulia_engine::prompt::Prompt;
use tertulia_engine::setup::{Setup, Target};
use tertulia_engine::spec::ParticipantSpec;

use super::args::TalkArgs;
use crate::error::CommandResult;
use crate::open::Workspace;
use crate::participants::{self, Existing};
use crate::ui::Ui;

/// A session that is ready to be opened.
pub struct Opening {
    pub setup: Setup,
    /// The workspace in the session's folder.
    pub workspace: Workspace,
    /// The workspace of the program, in the folder that the user stands in.
    pub from: Workspace,
    pub args: TalkArgs,
    /// Whether the agent was picked automatically.
    pub unasked: bool,
    /// An earlier session that could be resumed instead of starting a new one.
    pub earlier: Option<Box<Row>>,
}

impl Opening {
    /// Prepares a session according to the flags.
    pub fn prepare(
        participants: ParticipantSpec,
        existing: Existing,
        args: TalkArgs,
        workspace: Workspace,
        ui: &mut Ui,
    ) -> CommandResult<Opening> {
        let options = args.open_options(ui);
        let spec = args.spec(participants);
        let prepared = participants::prepare(&spec, existing, &options, &workspace, ui)?;
        Ok(Opening {
            setup: prepared.setup,
            unasked: prepared.unasked,
            workspace: prepared.workspace,
            from: workspace,
            args,
            earlier: None,
        })
    }
}

impl Opening {
    /// Returns true if the session is sealed.
    pub fn is_sealed(&self) -> bool {
        match &self.setup.target {
            Target::New(start) => self.workspace.sessions.is_to_be_sealed(start.id),
            Target::Resume(row, _) => row.meta.seal.is_some(),
        }
    }
}

/// A prepared session and its first message.
pub struct Prepared {
    pub opening: Opening,
    pub words: Option<Prompt>,
}
