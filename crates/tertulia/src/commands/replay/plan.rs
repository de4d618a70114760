//! Which agent a session is replayed with, and the new session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tertulia_agents::approval::Approval;
use tertulia_agents::{Agent, ToolSide};
use tertulia_core::entry::{Kind, Origin, Replayed};
use tertulia_core::pair::Budget;
use tertulia_core::team::MemberKind;
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::replay::Replay;
use tertulia_engine::setup::{Participants, Setup, Target};
use tertulia_engine::spec::{AgentSpec, PairSpec, ParticipantSpec, SessionSpec, TeamSpec};

use super::ReplayArgs;
use super::originals::Original;
use crate::agents::{self, Asked};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::participants::{self, Existing, OpenOptions};
use crate::teams;
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
    participants: ParticipantSpec,
    /// Agents of the members of a team, in place of those of its file.
    members: BTreeMap<String, Arc<dyn Agent>>,
    /// Agent or model as the user named it, for the title.
    with: String,
}

/// Chooses the agents of each session. Fails if one of them is not known, before anything is sent.
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
    let cast = match original.meta.kind {
        Kind::Chat => chat(args, &original, workspace)?,
        Kind::Pair => pair(args, &original, workspace)?,
        Kind::Team => team(args, &original, workspace)?,
    };
    let mut names: Vec<&str> = cast.agents.iter().map(|agent| agent.name()).collect();
    let mut models: Vec<&str> = cast
        .agents
        .iter()
        .filter_map(|agent| agent.model())
        .collect();
    names.dedup();
    models.dedup();
    let model = (!models.is_empty()).then(|| models.join(", "));
    // One side for all: agents with tools of their own run without any.
    let sides = || cast.agents.iter().map(|agent| agent.tools());
    let tools = sides().find(|side| *side == ToolSide::Its);
    let tools = tools.or_else(|| sides().find(|side| *side == ToolSide::Ours));
    Ok(Plan {
        agent: names.join(", "),
        model: model.or_else(|| args.with_model.clone()),
        tools: tools.unwrap_or(ToolSide::None),
        participants: cast.participants,
        members: cast.members,
        with: match (&args.with_agent, &args.with_model) {
            (Some(agent), Some(model)) => format!("{agent}/{model}"),
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => String::new(),
        },
        original,
    })
}

/// The participants of a replay.
struct Cast {
    participants: ParticipantSpec,
    members: BTreeMap<String, Arc<dyn Agent>>,
    agents: Vec<Arc<dyn Agent>>,
}

/// Builds the agent of a replay: the one that the user named, or the recorded one, with the model that
/// the user named.
fn agent(
    args: &ReplayArgs,
    recorded: Option<&str>,
    original: &Original,
    workspace: &Workspace,
) -> CommandResult<(String, Arc<dyn Agent>)> {
    let recorded = recorded.filter(|name| !name.is_empty());
    let name = args.with_agent.as_deref().or(recorded).ok_or_else(|| {
        let words = format!(
            "session {} does not say which agent answered",
            original.label()
        );
        CommandError::new(ErrorKind::Usage, words).hint(ANOTHER_AGENT)
    })?;
    let asked = Asked {
        name: Some(name),
        model: args.with_model.as_deref(),
    };
    let chosen = agents::choose(&workspace.settings, &asked, None);
    let chosen = chosen.map_err(|error| match args.with_agent {
        Some(_) => error,
        None => error.hint(ANOTHER_AGENT),
    })?;
    Ok((name.to_owned(), chosen.agent))
}

fn chat(args: &ReplayArgs, original: &Original, workspace: &Workspace) -> CommandResult<Cast> {
    let (name, agent) = agent(args, original.meta.last_agent(), original, workspace)?;
    let spec = AgentSpec {
        agent: Some(name),
        model: args.with_model.clone(),
    };
    Ok(Cast {
        participants: ParticipantSpec::Chat(spec),
        members: BTreeMap::new(),
        agents: vec![agent],
    })
}

/// A pair gets as many worker calls as the original was given.
fn pair(args: &ReplayArgs, original: &Original, workspace: &Workspace) -> CommandResult<Cast> {
    let known = original.meta.pair.as_deref().cloned().unwrap_or_default();
    let recorded = [&known.instructor.agent, &known.worker.agent];
    let [instructor, worker] = recorded.map(|name| agent(args, Some(name), original, workspace));
    let ((instructor, first), (worker, second)) = (instructor?, worker?);
    let folder = PathBuf::from(&known.work_dir);
    let spec = PairSpec {
        instructor: Some(instructor),
        worker: Some(worker),
        instructor_model: args.with_model.clone().or(known.instructor.model),
        worker_model: args.with_model.clone().or(known.worker.model),
        max_rounds: match known.remaining {
            Budget::Calls(left) => Some(left.saturating_add(known.worker_calls)),
            Budget::Unlimited => None,
        },
        work_dir: Some(folder).filter(|folder| folder.is_dir()),
        no_thinking: !known.thinking,
        notify: false,
    };
    Ok(Cast {
        participants: ParticipantSpec::Pair(spec),
        members: BTreeMap::new(),
        agents: vec![first, second],
    })
}

/// A team has the members of its file; each that is an agent is played by the agent or model of the
/// replay.
fn team(args: &ReplayArgs, original: &Original, workspace: &Workspace) -> CommandResult<Cast> {
    let (file, team) = teams::of_session(&workspace.settings, &original.meta)?;
    let mut members = BTreeMap::new();
    for member in team
        .members
        .iter()
        .filter(|member| member.kind == MemberKind::Ai)
    {
        let (_, agent) = agent(args, member.agent_type.as_deref(), original, workspace)?;
        members.insert(member.name.clone(), agent);
    }
    let spec = TeamSpec {
        config: Some(file.display().to_string()),
        ..TeamSpec::default()
    };
    Ok(Cast {
        participants: ParticipantSpec::Team(spec),
        agents: members.values().cloned().collect(),
        members,
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
            participants: self.participants.clone(),
            // Agents that use tertulia's tools are offered them, and get recorded results.
            approve: Some(match self.tools {
                ToolSide::Ours => Approval::Low,
                ToolSide::Its | ToolSide::None => Approval::None,
            }),
            no_project_instructions: false,
            cwd: None,
        };
        let options = OpenOptions {
            can_ask: false,
            ephemeral: false,
            on_conflict: OnConflict::Fork,
            title: Some(self.title()),
            id: None,
            fork: false,
            sealed: self.original.meta.seal.is_some(),
            here: false,
            default_policy: None,
        };
        let existing = Existing::default();
        let mut setup = participants::prepare(&spec, existing, &options, workspace, ui)?.setup;
        if let Participants::Team { roster, .. } = &mut setup.participants {
            for (member, agent) in &self.members {
                if let Some(of) = roster.agents.get_mut(member) {
                    of.agent = Ok(agent.clone());
                }
            }
        }
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
