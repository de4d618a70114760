//! [`SessionSpec`]: what to open, as plain data. The command line, the TUI and the server build it;
//! the program around the engine resolves its names to agents.

use std::path::PathBuf;

use tertulia_agents::approval::Approval;

/// What to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSpec {
    /// The participants.
    pub participants: ParticipantSpec,
    /// The tool policy; without it, the default of the frontend.
    pub approve: Option<Approval>,
    /// Whether agents get no instructions of the project.
    pub no_project_instructions: bool,
    /// Folder of a new session; without it, that of the program.
    pub cwd: Option<PathBuf>,
}

/// The participants of a session, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParticipantSpec {
    /// Those that the session had; in a new session, the default agent.
    #[default]
    Recorded,
    /// One agent.
    Chat(AgentSpec),
    /// A team.
    Team(TeamSpec),
    /// An instructor and a worker.
    Pair(PairSpec),
}

/// One agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSpec {
    /// Its name; without it, the one that the session had, or the first that is ready.
    pub agent: Option<String>,
    /// Its model; without it, the agent's default.
    pub model: Option<String>,
}

/// A team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamSpec {
    /// Its file, by path or name; without it, the one that the session had.
    pub config: Option<String>,
    /// The member as whom the user speaks, if there are several people.
    pub seat: Option<String>,
    /// Former members and the members who take over their messages, as `old=new`.
    pub map: Vec<String>,
    /// Whether to fail if a former member has messages in the session.
    pub strict: bool,
}

/// An instructor and a worker. What is missing is as the session had it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairSpec {
    /// Agent of the instructor.
    pub instructor: Option<String>,
    /// Agent of the worker.
    pub worker: Option<String>,
    /// Model of the instructor.
    pub instructor_model: Option<String>,
    /// Model of the worker.
    pub worker_model: Option<String>,
    /// Maximum number of worker calls.
    pub max_rounds: Option<u64>,
    /// Folder to work in.
    pub work_dir: Option<PathBuf>,
    /// Whether the instructor's thinking is turned off.
    pub no_thinking: bool,
    /// Whether to ring the bell when a person is needed.
    pub notify: bool,
}
