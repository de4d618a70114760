//! Which agent a session is replayed with, and the new session.

use tertulia_agents::ToolSide;
use tertulia_agents::approval::Approval;
use tertulia_core::entry::{Origin, Replayed};
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::replay::Replay;
use tertulia_engine::setup::{Setup, Target};
use tertulia_engine::spec::{AgentSpec, ParticipantSpec, SessionSpec};

use super::ReplayArgs;
use super::originals::Original;
use crate::agents::{self, Asked};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::participants::{self, Existing, OpenOptions};
use crate::ui::Ui;

/// Maximum length of a title in characters.
const LONGEST_TITLE: usize = 200;

/// How to choose another agent.
pub const ANOTHER_AGENT: &str =
    "choose an agent with --with-agent NAME; `tertulia agents` lists those that are ready";

/// A session and the agent to replay it with.
pub struct Plan {
    pub original: Original,
    /// Name of the agent.
    pub agent: String,
    /// Model of the agent, if it is known.
    pub model: Option<String>,
    /// Which side runs the agent's tools.
    pub tools: ToolSide,
    spec: AgentSpec,
    /// Agent or model as the user named it, for the title.
    with: String,
}

/// Chooses the agent of each session. Fails if one of them is not known, before anything is sent.
pub fn plans(
    args: &ReplayArgs,
    originals: Vec<Original>,
    workspace: &Workspace,
) -> CommandResult<Vec<Plan>> {
    let plans = originals.into_iter();
    plans
        .map(|original| plan(args, original, workspace))
        .collect()
}

fn plan(args: &ReplayArgs, original: Original, workspace: &Workspace) -> CommandResult<Plan> {
    let recorded = original.meta.last_agent().map(str::to_owned);
    let name = args.with_agent.clone().or(recorded).ok_or_else(|| {
        let words = format!(
            "session {} does not say which agent answered",
            original.label()
        );
        CommandError::new(ErrorKind::Usage, words).hint(ANOTHER_AGENT)
    })?;
    let asked = Asked {
        name: Some(&name),
        model: args.with_model.as_deref(),
    };
    let chosen = agents::choose(&workspace.settings, &asked, None);
    let chosen = chosen.map_err(|error| match args.with_agent {
        Some(_) => error,
        None => error.hint(ANOTHER_AGENT),
    })?;
    let model = chosen.agent.model().map(str::to_owned);
    Ok(Plan {
        original,
        agent: chosen.agent.name().to_owned(),
        model: model.or_else(|| args.with_model.clone()),
        tools: chosen.agent.tools(),
        spec: AgentSpec {
            agent: Some(name),
            model: args.with_model.clone(),
        },
        with: match (&args.with_agent, &args.with_model) {
            (Some(agent), Some(model)) => format!("{agent}/{model}"),
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => String::new(),
        },
    })
}

impl Plan {
    /// Names the agent, with its model.
    pub fn agent_and_model(&self) -> String {
        match &self.model {
            Some(model) => format!("{} ({model})", self.agent),
            None => self.agent.clone(),
        }
    }

    /// Prepares the new session.
    pub fn setup(&self, workspace: &Workspace, ui: &mut Ui) -> CommandResult<Setup> {
        let spec = SessionSpec {
            participants: ParticipantSpec::Chat(self.spec.clone()),
            // Agents that use tertulia's tools are offered them, and get recorded results.
            approve: Some(match self.tools {
                ToolSide::Ours => Approval::Low,
                ToolSide::Its | ToolSide::None => Approval::None,
            }),
            no_project_instructions: false,
        };
        let options = OpenOptions {
            can_ask: false,
            ephemeral: false,
            on_conflict: OnConflict::Fork,
            title: Some(self.title()),
            id: None,
            fork: false,
            sealed: self.original.meta.seal.is_some(),
        };
        let existing = Existing::default();
        let mut setup = participants::prepare(&spec, existing, &options, workspace, ui)?.setup;
        let meta = &self.original.meta;
        if let (Target::New(start), Some(project)) = (&mut setup.target, &meta.project) {
            start.project = Some(project.clone());
            start.project_ids.clone_from(&meta.project_ids);
        }
        let link = Replayed {
            of: Origin {
                id: meta.id,
                seq: meta.head.seq,
                hash: meta.head.hash,
            },
            agent: self.agent.clone(),
            model: self.model.clone(),
        };
        setup.options.replay = Some(Replay::new(link, &self.original.recording));
        Ok(setup)
    }

    /// Returns the title of the new session, shortened to what a title may have.
    fn title(&self) -> String {
        let plain = |text: &str, most: usize| -> String {
            let plain = text.chars().filter(|c| !c.is_control());
            plain.take(most).collect()
        };
        let with = plain(&self.with, LONGEST_TITLE / 2);
        let end = format!(" (replay with {})", with.trim());
        let room = LONGEST_TITLE - end.chars().count();
        format!(
            "{}{end}",
            plain(self.original.meta.title_or_untitled(), room)
        )
    }
}
