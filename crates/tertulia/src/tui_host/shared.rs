//! What all sessions of a run in the full-screen frontend share: flags, the terms of the session that is
//! shown, and held-back output. Prepares each session in the same way as the command line does.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tertulia_agents::approval::{Approval, Permissions};
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_core::session::SessionMeta;
use tertulia_engine::event::Tone;
use tertulia_engine::pair::text::lasting;
use tertulia_engine::setup::{ChatAgent, Target};
use tertulia_engine::spec::{AgentSpec, ParticipantSpec, SessionSpec};
use tertulia_store::LockHolder;
use tertulia_tui::effect::{IfOpen, Next};
use tertulia_tui::host;
use tertulia_tui::source::Source;

use super::TuiHost;
use crate::args::{ApproveMode, GlobalArgs};
use crate::commands::team;
use crate::error::CommandResult;
use crate::open::Workspace;
use crate::participants::{self, Existing};
use crate::talk::opening::{Opening, Prepared};
use crate::talk::{self, LeftSession, Sort, TalkArgs, target};
use crate::ui::{Told, Ui};

/// Terms of the session that is shown: the next one has no looser policy, and a new one works in the same
/// folder.
#[derive(Clone)]
struct ShownTerms {
    id: Option<SessionId>,
    permissions: Permissions,
    folder: Option<PathBuf>,
}

/// What all sessions of a run share.
pub struct Shared {
    global: GlobalArgs,
    /// Terms of the session that is shown.
    terms: Mutex<ShownTerms>,
    /// Tool policy, if a flag of the program says one.
    flag: Option<ApproveMode>,
    no_project_instructions: bool,
    ephemeral: bool,
    /// Whether new sessions are sealed, as the first one.
    sealed: bool,
    /// Holds output back, since the frontend owns the terminal.
    ui: Mutex<Ui>,
}

impl Shared {
    /// Takes over the flags of the first session.
    pub fn new(args: &TalkArgs, global: &GlobalArgs, ui: &Ui) -> Arc<Shared> {
        let mut held = Ui::new(global);
        held.invocation = ui.invocation.clone();
        held.hold();
        Arc::new(Shared {
            global: global.clone(),
            terms: Mutex::new(ShownTerms {
                id: None,
                permissions: match args.approve {
                    Some(mode) => Permissions::said(mode.into()),
                    None => Permissions::new(Approval::Ask),
                },
                folder: None,
            }),
            flag: args.approve,
            no_project_instructions: args.no_project_instructions,
            ephemeral: args.ephemeral,
            sealed: args.sealed,
            ui: Mutex::new(held),
        })
    }

    pub fn ui(&self) -> MutexGuard<'_, Ui> {
        self.ui.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn terms(&self) -> MutexGuard<'_, ShownTerms> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a prepared session over, with the messages of its preparation.
    fn ready(self: &Arc<Shared>, prepared: Prepared, told: Vec<Told>) -> host::Prepared {
        let Prepared { opening, words } = prepared;
        let options = &opening.setup.options;
        *self.terms() = ShownTerms {
            id: Some(opening.setup.target.id()),
            permissions: options.rules.clone(),
            folder: Some(options.folder.path.clone()),
        };
        // Prompts of a session that is not saved, or encrypted, are in no history.
        let is_private = opening.args.ephemeral || opening.is_sealed();
        host::Prepared {
            ephemeral: opening.args.ephemeral,
            picks: opening.args.opens_picker(),
            prompt: words.map(|words| words.text),
            last: last_session(&opening),
            notices: told.into_iter().map(notice).collect(),
            setup: opening.setup,
            earlier: opening.earlier,
            host: Arc::new(TuiHost::new(opening.workspace, self.clone(), is_private)),
        }
    }

    /// Returns the first session. One that another program has open is shown first, unless a flag says
    /// what to do.
    pub fn first(self: &Arc<Shared>, prepared: Prepared, told: Vec<Told>) -> CommandResult<Source> {
        let Prepared { opening, words } = prepared;
        match &opening.setup.target {
            Target::Resume(row, _) if row.open && opening.args.asks_about_holder() => {
                let row = row.as_ref().clone();
                let followed = self.followed(row, opening.workspace, true, told)?;
                Ok(Source::Followed(Box::new(host::Followed {
                    prompt: words.map(|words| words.text),
                    ..followed
                })))
            }
            _ => {
                let prepared = self.ready(Prepared { opening, words }, told);
                Ok(Source::Local(Box::new(prepared)))
            }
        }
    }

    /// Describes a session that is only read, with the program that has it open.
    pub fn followed(
        self: &Arc<Shared>,
        row: Row,
        workspace: Workspace,
        asks: bool,
        told: Vec<Told>,
    ) -> CommandResult<host::Followed> {
        let row = workspace.unlocked(row)?;
        let holder = workspace.wait(workspace.sessions.store().holder(row.meta.id))?;
        let now = workspace.sessions.clock().now();
        let mut notices: Vec<(Tone, String)> = told.into_iter().map(notice).collect();
        if let Some(holder) = holder.as_ref().filter(|_| !asks) {
            let words = format!("The session is open in {holder} and only read here.");
            notices.push((Tone::Note, words));
        }
        let is_private = row.meta.seal.is_some();
        Ok(host::Followed {
            holder: holder.map(|holder| holder_words(&holder, now)),
            row,
            asks,
            prompt: None,
            notices,
            host: Arc::new(TuiHost::new(workspace, self.clone(), is_private)),
        })
    }

    /// Prepares an agent for a chat that is open.
    pub fn chat_agent(&self, spec: AgentSpec, workspace: &Workspace) -> CommandResult<ChatAgent> {
        let spec = SessionSpec {
            participants: ParticipantSpec::Chat(spec),
            no_project_instructions: self.no_project_instructions,
            ..SessionSpec::default()
        };
        participants::chat_agent(&spec, None, workspace, &mut self.ui())
    }

    /// Prepares a session in the same way as the command line does.
    pub fn prepare(self: &Arc<Shared>, next: &Next) -> CommandResult<Source> {
        talk::enough_files()?;
        let (resume, if_open) = match next {
            Next::Resume { id, if_open, .. } => (Some(*id), *if_open),
            Next::New { .. } | Next::Team { .. } | Next::Pair => (None, IfOpen::Ask),
        };
        let args = TalkArgs {
            no_project_instructions: self.no_project_instructions,
            ephemeral: self.ephemeral,
            sealed: self.sealed && resume.is_none(),
            take_over: if_open == IfOpen::TakeOver,
            resume: resume.map(|id| Some(id.to_string())),
            ..TalkArgs::default()
        };
        let ui = &mut *self.ui();
        let workspace = talk::workspace(&args, &self.global, ui)?;
        let row = match resume {
            Some(id) => Some(workspace.wait(workspace.sessions.row(id))?),
            None => None,
        };
        let row = match row {
            Some(row) if row.open && matches!(if_open, IfOpen::Ask | IfOpen::Read) => {
                let asks = if_open == IfOpen::Ask;
                let followed = self.followed(row, workspace, asks, ui.take_held())?;
                return Ok(Source::Followed(Box::new(followed)));
            }
            row => row,
        };
        let terms = self.terms().clone();
        let left = LeftSession {
            id: terms.id,
            permissions: &terms.permissions,
            flag: self.flag,
        };
        let policy = left.next_policy(row.as_ref());
        let folder = terms.folder.as_deref();
        let args = TalkArgs {
            approve: policy.approve,
            default_policy: policy.default_policy,
            folder: folder.and_then(|folder| participants::known_folder(folder, &workspace)),
            ..args
        };
        let earlier = match next {
            Next::Team { config, fresh } => team::named(config, &args, *fresh, &workspace, ui)?,
            _ => None,
        };
        let existing = Existing { row, mirror: None };
        let mut opening = Opening::prepare(next.participants(), existing, args, workspace, ui)?;
        opening.earlier = earlier;
        let prepared = Prepared {
            opening,
            words: None,
        };
        let prepared = self.ready(prepared, ui.take_held());
        Ok(Source::Local(Box::new(prepared)))
    }
}

/// Returns the last session of the project, for a new one.
fn last_session(opening: &Opening) -> Option<Box<SessionMeta>> {
    let (Target::New(_), false) = (&opening.setup.target, opening.args.ephemeral) else {
        return None;
    };
    let sort = match opening.setup.participants.kind() {
        // The team command asks about an earlier session itself.
        Kind::Team => return None,
        kind => Sort::of(kind, None),
    };
    // A list that cannot be read must not keep a new session from starting.
    let row = target::newest(sort, &opening.workspace).ok()??;
    Some(Box::new(row.meta))
}

/// Converts a message of the command line for the transcript.
fn notice(told: Told) -> (Tone, String) {
    match told {
        Told::Note(text) | Told::Data(text) => (Tone::Note, text),
        Told::Warning(text) => (Tone::Warning, text),
        Told::Error { message, hints, .. } => {
            let mut text = message;
            for hint in hints {
                text.push_str("; ");
                text.push_str(&hint);
            }
            (Tone::Error, text)
        }
    }
}

/// Names the program that has a session open, for the user.
fn holder_words(holder: &LockHolder, now: Timestamp) -> String {
    let mut words = "another terminal".to_owned();
    if let Some(host) = &holder.host {
        words.push_str(&format!(" on {host}"));
    }
    if let Some(since) = holder.since {
        words.push_str(&format!(" for {}", lasting(now.duration_since(since))));
    }
    words.push_str(&format!(" (process {})", holder.pid));
    words
}
