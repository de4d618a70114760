//! [`Setup`]: a session with its participants, ready to be opened by any frontend.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::event::UserMessage;
use crate::live::Closing;
use crate::log_writer::{OnConflict, SessionMirror};
use crate::pair::roster::PairRoster;
use crate::replay::Replay;
use crate::team::policy::TeamRoster;
use crate::team::resume::ResumePlan;
use tertulia_agents::approval::Permissions;
use tertulia_agents::process::guard::Guard;
use tertulia_agents::system_prompt::WorkEnvironment;
use tertulia_agents::tool::Toolbox;
use tertulia_agents::{Agent, AgentError, FailureKind, Readiness, ToolSide};
use tertulia_core::entry::{Body, Kind, Terms};
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_core::team::TeamFile;
use tertulia_store::{Sessions, Start};

/// Options of a conversation.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Tool permissions.
    pub rules: Permissions,
    /// Tools for agents that bring none of their own; `None` for no tools.
    pub tools: Option<Toolbox>,
    /// Whether nothing is saved, by agents neither.
    pub ephemeral: bool,
    /// Number of tokens above which a context is compacted.
    pub compact_at: Option<u64>,
    /// The earlier session that this one plays again; then no tool runs.
    pub replay: Option<Replay>,
    /// Where the session works, for the system prompt of agents that bring none.
    pub environment: Option<Arc<WorkEnvironment>>,
    /// Ends the session's processes if this program is killed.
    pub guard: Option<Arc<Guard>>,
    /// The program's own session that holds all messages of an imported one.
    pub inherited: Option<InheritedSession>,
    /// Where the session works.
    pub folder: WorkFolder,
}

/// The folder that a session works in. It belongs to the session, not to the program that opens it.
#[derive(Clone, Debug, Default)]
pub struct WorkFolder {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is another one than that of the program.
    pub is_elsewhere: bool,
    /// Terms to record with the next prompt, if the session moves to this folder.
    pub moved: Option<Terms>,
    /// Question to the user before the first agent works in it.
    pub question: Option<FolderQuestion>,
}

/// Returns true if an agent may read or change files, or runs as a program.
pub(crate) fn works_in_folder(agent: &dyn Agent) -> bool {
    agent.tools() != ToolSide::None || agent.work_dir().is_some()
}

/// A question about a folder that the user has not worked in on this machine.
#[derive(Clone)]
pub struct FolderQuestion {
    /// The question, for the user.
    pub text: String,
    /// Called when the user has agreed.
    pub agreed: Arc<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for FolderQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FolderQuestion").field(&self.text).finish()
    }
}

/// A session of an agent's program that was imported and has not changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InheritedSession {
    /// Name of the agent that can continue it.
    pub agent: String,
    /// Name under which its answers were imported.
    pub speaker: String,
    /// Id that the program gave the session.
    pub id: String,
    /// Working directory of the session.
    pub cwd: Option<PathBuf>,
}

/// Tool access of an agent.
#[derive(Clone, Debug, Default)]
pub struct ToolAccess {
    /// Tools for an agent that brings none of its own.
    pub tools: Option<Toolbox>,
    /// Tool permissions.
    pub rules: Permissions,
}

/// A session and its participants.
pub struct Setup {
    /// The store.
    pub sessions: Sessions,
    /// The session.
    pub target: Target,
    /// What happens if another program writes to the session.
    pub on_conflict: OnConflict,
    /// The participants.
    pub participants: Participants,
    /// Tools, permissions and limits.
    pub options: RunOptions,
    /// Description of the participants for the user.
    pub introduction: String,
    /// Messages for the user from the preparation.
    pub notices: Vec<UserMessage>,
    /// What ends with the session.
    pub closing: Arc<dyn Closing>,
}

/// The session of a conversation.
pub enum Target {
    /// A new session.
    New(Start),
    /// An existing session, and the file that mirrors it.
    Resume(Box<Row>, Option<Arc<dyn SessionMirror>>),
}

impl Target {
    /// Returns the session id.
    pub fn id(&self) -> SessionId {
        match self {
            Target::New(start) => start.id,
            Target::Resume(row, _) => row.meta.id,
        }
    }
}

/// An agent for a chat, and what depends on it.
#[derive(Clone, Debug)]
pub struct ChatAgent {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// Whether the user named its model.
    pub is_pinned: bool,
    /// Number of tokens above which its context is compacted.
    pub compact_at: Option<u64>,
    /// Where the session works, for the system prompt of an agent that brings none.
    pub environment: Option<Arc<WorkEnvironment>>,
    /// Description of the agent for the user.
    pub introduction: String,
    /// Messages for the user.
    pub notices: Vec<UserMessage>,
}

/// The participants of a conversation besides the user.
pub enum Participants {
    /// One agent.
    Chat(Arc<dyn Agent>),
    /// A team.
    Team {
        /// Its file.
        team: Box<TeamFile>,
        /// Its members and their agents.
        roster: Box<TeamRoster>,
        /// How they fit to a resumed session.
        plan: ResumePlan,
        /// The member as whom the user speaks, if chosen.
        seat: Option<String>,
    },
    /// An instructor and a worker.
    Pair {
        /// The two.
        roster: Box<PairRoster>,
        /// Whether to ring the bell when a person is needed.
        notify: bool,
    },
}

impl Participants {
    /// Returns the kind of conversation.
    pub fn kind(&self) -> Kind {
        match self {
            Participants::Chat(_) => Kind::Chat,
            Participants::Team { .. } => Kind::Team,
            Participants::Pair { .. } => Kind::Pair,
        }
    }

    /// Returns the member as whom the user speaks, if chosen.
    pub fn seat(&self) -> Option<String> {
        match self {
            Participants::Team { seat, .. } => seat.clone(),
            Participants::Chat(_) | Participants::Pair { .. } => None,
        }
    }

    /// Returns the entries that a new session begins with, besides messages.
    pub fn opening(&self) -> Vec<Body> {
        match self {
            Participants::Chat(_) => Vec::new(),
            Participants::Team { roster, .. } => vec![Body::Seated(roster.opening())],
            Participants::Pair { roster, .. } => roster.opening(),
        }
    }

    /// Returns why the conversation cannot work: the agent of a chat, one of a pair, or all of a team are
    /// not ready.
    pub async fn unready(&self) -> Option<AgentError> {
        let agents: Vec<&Arc<dyn Agent>> = match self {
            Participants::Chat(agent) => vec![agent],
            Participants::Pair { roster, .. } => {
                vec![&roster.instructor.agent, &roster.worker.agent]
            }
            Participants::Team { roster, .. } => {
                let agents = roster.agents.values();
                agents
                    .filter_map(|agent| agent.agent.as_ref().ok())
                    .collect()
            }
        };
        let count = agents.len();
        let mut unready = Vec::new();
        for agent in agents {
            if let Readiness::NotReady(why) = agent.readiness().await {
                let words = format!("the agent {} is not ready: {why}", agent.name());
                unready.push(AgentError::new(FailureKind::Unavailable, words));
            }
        }
        match self {
            // The others of a team answer.
            Participants::Team { .. } if unready.len() < count => None,
            _ => unready.into_iter().next(),
        }
    }

    /// Returns true if an agent may read or change files, or runs as a program.
    pub fn work_in_folder(&self) -> bool {
        let uses = |agent: &Arc<dyn Agent>| works_in_folder(&**agent);
        match self {
            Participants::Chat(agent) => uses(agent),
            Participants::Pair { roster, .. } => {
                uses(&roster.instructor.agent) || uses(&roster.worker.agent)
            }
            Participants::Team { roster, .. } => {
                let mut agents = roster
                    .agents
                    .values()
                    .filter_map(|of| of.agent.as_ref().ok());
                agents.any(uses)
            }
        }
    }

    /// Returns true if the bell rings when a person is needed.
    pub fn rings(&self) -> bool {
        matches!(self, Participants::Pair { notify: true, .. })
    }
}
