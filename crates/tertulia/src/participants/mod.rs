//! Resolves a [`SessionSpec`] to agents and prepares the session, for the command line, the TUI and
//! the server alike. `chat`, `team` and `pair` find the agents of each kind; `folder` is where the session
//! works, `environment` and `instructions` are what API agents are told about it, `inherited` is the own session
//! of an agent's program that was imported.

mod chat;
mod environment;
mod folder;
mod inherited;
mod instructions;
mod pair;
mod team;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::DumpableBehavior;
use tertulia_agents::approval::{Approval, Permissions};
use tertulia_agents::tool::{ToolLimits, Toolbox};
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_core::team::{MemberKind, TeamFile};
use tertulia_engine::log_writer::{OnConflict, SessionMirror};
use tertulia_engine::setup::{Participants, RunOptions, Setup, WorkFolder};
use tertulia_engine::spec::{AgentSpec, PairSpec, ParticipantSpec, SessionSpec, TeamSpec};
use tertulia_engine::team::policy::TeamRoster;
use tertulia_engine::team::resume::{self, MemberMap, ResumeError, ResumePlan};

use crate::agents;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::guard;
use crate::open::Workspace;
use crate::settings::StoreUrl;
use crate::talk::args::Sort;
use crate::talk::leaving::Leaving;
use crate::talk::target;
use crate::teams;
use crate::ui::Ui;
use folder::Place;
use instructions::Instructions;

pub use chat::chat_agent;
pub use folder::{is_known, known_folder};
pub use team::check_speaker;

/// Options for opening a session, besides its participants.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Whether the user can be asked about tools.
    pub can_ask: bool,
    /// Whether nothing is saved.
    pub ephemeral: bool,
    /// What to do if another program writes to the session.
    pub on_conflict: OnConflict,
    /// Title of the session.
    pub title: Option<String>,
    /// Id of a new session.
    pub id: Option<SessionId>,
    /// Whether to continue in a fork.
    pub fork: bool,
    /// Whether to seal a new session.
    pub sealed: bool,
    /// Whether a resumed session moves to the current folder.
    pub here: bool,
    /// Tool policy without a word of the user, if it is not that of the frontend.
    pub default_policy: Option<Approval>,
}

/// An existing session, and the file that mirrors it.
#[derive(Default)]
pub struct Existing {
    pub row: Option<Row>,
    pub mirror: Option<Arc<dyn SessionMirror>>,
}

/// A session that is ready to be opened.
pub struct PreparedSession {
    pub setup: Setup,
    /// The workspace in the session's folder.
    pub workspace: Workspace,
    /// Whether the agent was picked automatically.
    pub unasked: bool,
}

/// Prepares a session with the participants of `spec`.
pub fn prepare(
    spec: &SessionSpec,
    existing: Existing,
    options: &OpenOptions,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<PreparedSession> {
    let row = existing.row.map(|row| workspace.unlocked(row));
    let existing = Existing {
        row: row.transpose()?,
        ..existing
    };
    let recorded = existing.row.as_ref().map(|row| row.meta.kind);
    let place = folder::find(spec, existing.row.as_ref(), options, workspace, ui)?;
    let preparing = Preparing {
        spec,
        existing,
        options,
        from: workspace,
        workspace: &place.workspace.clone(),
        place,
    };
    match (&spec.participants, recorded) {
        (ParticipantSpec::Recorded, None | Some(Kind::Chat)) => {
            preparing.chat(&AgentSpec::default(), ui)
        }
        (ParticipantSpec::Recorded, Some(Kind::Team)) => preparing.team(&TeamSpec::default(), ui),
        (ParticipantSpec::Recorded, Some(Kind::Pair)) => preparing.pair(&PairSpec::default(), ui),
        (ParticipantSpec::Chat(agent), _) => preparing.chat(agent, ui),
        (ParticipantSpec::Team(team), _) => preparing.team(team, ui),
        (ParticipantSpec::Pair(pair), _) => preparing.pair(pair, ui),
    }
}

/// Reads a team file: the one that `spec` names, or the one of the session.
pub fn team_file(
    spec: &TeamSpec,
    row: Option<&Row>,
    workspace: &Workspace,
) -> CommandResult<(PathBuf, TeamFile)> {
    match (&spec.config, row) {
        (Some(config), _) => teams::read(&workspace.settings.cwd, config),
        (None, Some(row)) => teams::of_session(&workspace.settings, &row.meta),
        (None, None) => Err(CommandError::new(ErrorKind::Usage, "which team?")),
    }
}

struct Preparing<'a> {
    spec: &'a SessionSpec,
    existing: Existing,
    options: &'a OpenOptions,
    /// The workspace of the program: files that the user names are there.
    from: &'a Workspace,
    /// The workspace in the session's folder.
    workspace: &'a Workspace,
    place: Place,
}

impl Preparing<'_> {
    fn chat(self, spec: &AgentSpec, ui: &mut Ui) -> CommandResult<PreparedSession> {
        self.check_kind(Kind::Chat)?;
        let row = self.existing.row.as_ref();
        let (chosen, unasked) = chat::chosen_agent(spec, self.spec, row, self.workspace, ui)?;
        let inherited = match row {
            Some(row) => {
                let is_fork = self.options.fork;
                inherited::find(row, is_fork, &*chosen.agent, self.workspace, ui)?
            }
            None => None,
        };
        let options = RunOptions {
            compact_at: chosen.compact_at,
            environment: chosen.environment,
            inherited,
            ..self.run_options(self.workspace, ui)
        };
        let sort = Sort::of(Kind::Chat, None);
        let participants = Participants::Chat(chosen.agent);
        self.finish(
            sort,
            participants,
            options,
            chosen.introduction,
            unasked,
            ui,
        )
    }

    fn team(self, spec: &TeamSpec, ui: &mut Ui) -> CommandResult<PreparedSession> {
        let heirs = heirs(&spec.map)?;
        let row = self.existing.row.as_ref();
        let (file, team) = team_file(spec, row, self.from)?;
        let settings = &self.workspace.settings;
        let found = self.instructions(&settings.cwd, None);
        let roster = team::roster(settings, &file, &team, &found.paths, ui)?;
        let plan = match row {
            None if !heirs.is_empty() => {
                return Err(
                    CommandError::new(ErrorKind::Usage, "--map needs a session to resume")
                        .hint("add -c, --resume REF or --session REF"),
                );
            }
            None => ResumePlan::default(),
            Some(row) => resume_plan(row, &roster, &heirs, spec.strict)?,
        };
        let mut options = self.run_options(self.workspace, ui);
        let mut agents = roster
            .agents
            .values()
            .filter_map(|of| of.agent.as_ref().ok());
        let (id, mut introduction) = (team.id().to_owned(), team_introduction(&team));
        if agents.any(|agent| agent.system_texts().is_some()) {
            self.name_instructions(&found, &mut introduction, ui);
            options.environment = Some(environment::describe(&settings.cwd, found, ui));
        }
        let participants = Participants::Team {
            team: Box::new(team),
            roster: Box::new(roster),
            plan,
            seat: spec.seat.clone(),
        };
        let sort = Sort::of(Kind::Team, Some(&id));
        self.finish(sort, participants, options, introduction, false, ui)
    }

    fn pair(self, spec: &PairSpec, ui: &mut Ui) -> CommandResult<PreparedSession> {
        self.check_kind(Kind::Pair)?;
        let row = self.existing.row.as_ref();
        let known = row.and_then(|row| row.meta.pair.as_deref());
        let settings = &self.workspace.settings;
        let mut options = self.run_options(self.workspace, ui);
        let mut seated = pair::roster(settings, spec, known, &options)?;
        let both = [&seated.roster.instructor, &seated.roster.worker];
        let told = both
            .into_iter()
            .filter(|of| of.agent.system_texts().is_some());
        let smallest = told.map(|of| of.compact_at.unwrap_or(u64::MAX)).min();
        if smallest.is_some() {
            let folder = &settings.cwd;
            let found = self.instructions(folder, smallest);
            self.name_instructions(&found, &mut seated.introduction, ui);
            options.environment = Some(environment::describe(folder, found, ui));
        }
        let participants = Participants::Pair {
            roster: Box::new(seated.roster),
            notify: spec.notify,
        };
        let (introduction, unasked) = (seated.introduction, seated.unasked);
        let sort = Sort::of(Kind::Pair, None);
        self.finish(sort, participants, options, introduction, unasked, ui)
    }

    fn instructions(&self, folder: &Path, compact_at: Option<u64>) -> Instructions {
        read_instructions(self.spec, self.workspace, folder, compact_at)
    }

    fn name_instructions(&self, found: &Instructions, introduction: &mut String, ui: &mut Ui) {
        name_instructions(found, introduction, ui);
    }

    fn check_kind(&self, wanted: Kind) -> CommandResult<()> {
        match &self.existing.row {
            Some(row) if row.meta.kind != wanted => Err(target::other_kind(row, wanted)),
            _ => Ok(()),
        }
    }

    fn run_options(&self, workspace: &Workspace, ui: &mut Ui) -> RunOptions {
        let recorded = self.existing.row.as_ref().and_then(|row| row.meta.approve);
        let own = workspace.settings.approve;
        let rules = permissions((self.spec.approve, own), recorded, self.options, ui);
        RunOptions {
            folder: self.place.folder.clone(),
            ..run_options(rules, self.options, workspace, ui)
        }
    }

    fn finish(
        self,
        sort: Sort<'_>,
        participants: Participants,
        options: RunOptions,
        introduction: String,
        unasked: bool,
        ui: &mut Ui,
    ) -> CommandResult<PreparedSession> {
        if let Some(refusal) = self.place.refusal
            && !self.options.can_ask
            && participants.work_in_folder()
        {
            return Err(refusal);
        }
        close_to_others(ui);
        let row = self.existing.row.as_ref();
        let is_sealed = self.options.sealed || row.is_some_and(|row| row.meta.seal.is_some());
        // The user has named it, or works in it already.
        if self.place.folder.question.is_none() && !self.options.ephemeral && !is_sealed {
            self.workspace.remember_project();
        }
        // A pair belongs to the folder that it was started in, wherever its worker works.
        let filed = match participants.kind() {
            Kind::Pair if self.spec.cwd.is_none() => self.from,
            _ => self.workspace,
        };
        let target = target::open(self.options, sort, self.existing, filed, ui)?;
        let leaving = Leaving::new(self.options.ephemeral, self.workspace, ui);
        let setup = Setup {
            sessions: self.workspace.sessions.clone(),
            target,
            on_conflict: self.options.on_conflict,
            participants,
            options,
            introduction,
            notices: Vec::new(),
            closing: Arc::new(leaving),
        };
        Ok(PreparedSession {
            setup,
            workspace: self.place.workspace,
            unasked,
        })
    }
}

/// Reads the project's instructions for work in a folder, unless the user turned them off.
fn read_instructions(
    spec: &SessionSpec,
    workspace: &Workspace,
    folder: &Path,
    compact_at: Option<u64>,
) -> Instructions {
    let settings = &workspace.settings;
    if spec.no_project_instructions || !settings.project_instructions {
        return Instructions::default();
    }
    let limit = instructions::limit(compact_at);
    instructions::read(&settings.root_of(folder), folder, limit)
}

/// Tells the user which instructions of the project agents get: in the introduction where output is
/// held back, since a TUI would show a note every time that it opens a session.
fn name_instructions(found: &Instructions, introduction: &mut String, ui: &mut Ui) {
    match &found.note {
        Some(note) if ui.is_holding() => introduction.push_str(&format!(" {note}")),
        Some(note) => ui.note(note),
        None => {}
    }
}

/// Names the team and its members.
fn team_introduction(team: &TeamFile) -> String {
    let members: Vec<String> = team
        .members
        .iter()
        .map(|member| match (&member.kind, &member.agent_type) {
            (MemberKind::Ai, Some(agent)) => format!("{} ({agent})", member.display_name),
            _ => member.display_name.clone(),
        })
        .collect();
    format!("{}: {}.", team.shown_name(), members.join(", "))
}

/// Parses `--map OLD=NEW`: former members and the members that replace them.
fn heirs(map: &[String]) -> CommandResult<MemberMap> {
    let mut heirs = BTreeMap::new();
    for pair in map {
        let parts = pair
            .split_once('=')
            .map(|(old, new)| (old.trim(), new.trim()));
        match parts {
            Some((old, new)) if !old.is_empty() && !new.is_empty() => {
                heirs.insert(old.to_owned(), new.to_owned());
            }
            _ => {
                return Err(
                    CommandError::new(ErrorKind::Usage, format!("--map is '{pair}'"))
                        .hint("write the former and the present member: --map old=new"),
                );
            }
        }
    }
    Ok(heirs)
}

/// Whether the team can go on with the session, before anything is touched.
fn resume_plan(
    row: &Row,
    roster: &TeamRoster,
    heirs: &MemberMap,
    strict: bool,
) -> CommandResult<ResumePlan> {
    let plan = resume::resume_plan(&row.meta, roster, heirs).map_err(|misfit| {
        let error = CommandError::new(ErrorKind::Usage, misfit.to_string());
        match misfit {
            ResumeError::OtherTeam { session, .. } => error.hint(format!(
                "`tertulia --resume {session}` opens it with its own team"
            )),
            ResumeError::NoTeam { session, .. } => error.hint(format!(
                "`tertulia --resume {session}` opens it as what it is"
            )),
            ResumeError::NoSuchSpeaker(_)
            | ResumeError::NoSuchMember { .. }
            | ResumeError::StillHere(_)
            | ResumeError::OtherNature { .. } => error,
        }
    })?;
    if strict && !plan.missing.is_empty() {
        return Err(CommandError::new(
            ErrorKind::Invalid,
            format!("no longer in the team: {}", plan.missing.join(", ")),
        )
        .hint("reseat them with --map OLD=NEW; without --strict this is a warning"));
    }
    Ok(plan)
}

/// Returns the canonical path of a work folder.
pub fn existing_folder(folder: &Path, recorded: bool) -> CommandResult<PathBuf> {
    let wrong = |why: &str| {
        let words = format!("the work folder {} {why}", folder.display());
        let error = CommandError::new(ErrorKind::Usage, words);
        match recorded {
            true => error.hint("name the folder to continue in: --work-dir DIR"),
            false => error,
        }
    };
    match folder.canonicalize() {
        Ok(folder) if folder.is_dir() => Ok(folder),
        Ok(_) => Err(wrong("is no folder")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(wrong("does not exist")),
        Err(error) => Err(wrong("cannot be worked in").because(error)),
    }
}

/// Returns the permissions of a session: those that the user asks for now, else the tighter of the
/// default, which may be set in the settings, and what the user set in the session. A log may come from elsewhere, so nothing looser than the
/// default is taken from it.
fn permissions(
    (approve, own): (Option<Approval>, Option<Approval>),
    recorded: Option<Approval>,
    options: &OpenOptions,
    ui: &mut Ui,
) -> Permissions {
    let can_ask = options.can_ask;
    let default = match options.default_policy.or(own) {
        Some(Approval::Ask) | None if !can_ask => Approval::Low,
        default => default.unwrap_or(Approval::Ask),
    };
    match approve {
        Some(Approval::Ask) if !can_ask => {
            ui.warn("not interactive: tools that change anything are denied");
            Permissions::new(recorded.map_or(default, |recorded| recorded.min(default)))
        }
        Some(mode) => {
            if mode == Approval::Edits && !can_ask {
                ui.warn("not interactive: tools that do more than edit files are denied");
            }
            Permissions::said(mode)
        }
        None => {
            let tighter = recorded.filter(|recorded| *recorded < default);
            if let Some(mode) = tighter {
                ui.note(&format!(
                    "tool policy: {}, as set in this session; --approve or /approve changes it",
                    mode.name()
                ));
            }
            Permissions::new(tighter.unwrap_or(default))
        }
    }
}

/// Returns the tools and permissions of a session.
fn run_options(
    rules: Permissions,
    options: &OpenOptions,
    workspace: &Workspace,
    ui: &mut Ui,
) -> RunOptions {
    let tools = Toolbox::new(
        workspace.settings.cwd.clone(),
        ToolLimits {
            longest: workspace.settings.shell_timeout,
            ..ToolLimits::default()
        },
        agents::key_variables(&workspace.settings),
    );
    let tools = match tools {
        Ok(tools) => Some(tools),
        Err(error) => {
            ui.warn(&format!("tools are not available: {error}"));
            None
        }
    };
    RunOptions {
        rules,
        tools,
        ephemeral: options.ephemeral || workspace.settings.store == StoreUrl::Memory,
        compact_at: None,
        replay: None,
        environment: None,
        guard: Some(Arc::new(guard::guard())),
        inherited: None,
        folder: WorkFolder::default(),
    }
}

/// Makes the memory of this process, API keys included, unreadable to the commands that agents run.
fn close_to_others(ui: &mut Ui) {
    let closed = DumpableBehavior::NotDumpable;
    if let Err(error) = rustix::process::set_dumpable_behavior(closed) {
        ui.detail(&format!(
            "this process stays readable to others of yours: {error}"
        ));
    }
}
