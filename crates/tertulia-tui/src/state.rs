//! State of the TUI: the view is a function of [`State`].

use std::time::Duration;

use jiff::Timestamp;
use ratatui::layout::Size;
use tertulia_agents::approval::{Approval as ApprovalMode, PermissionState};
use tertulia_core::entry::Speaker;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;
use tertulia_engine::event::{ContextUse, SessionEnd};
use tertulia_engine::pair::Progress;
use tertulia_engine::text::hint::Invocation;

use super::activity::{Activity, Doing};
use super::bill::Bill;
use super::chooser::Chooser;
use super::dialog::failure::Failure;
use super::dialog::question::Question;
use super::dialog::subject::Subject;
use super::effect::{Next, Now};
use super::help::Help;
use super::history::History;
use super::input::Input;
use super::keymap::Keys;
use super::notify::Notify;
use super::overlay::Overlay;
use super::picker::Picker;
use super::queue::Queue;
use super::rewind::Rewind;
use super::search::Search;
use super::session_info::SessionInfo;
use super::sheet::Sheet;
use super::stats::Stats;
use super::theme::Theme;
use super::toast::Toasts;
use super::todos::Todos;
use super::transcript::Transcript;
use super::tree::Tree;
use super::type_ahead::TypeAhead;
use crate::error::TuiError;

/// Complete state of the screen for one open session.
#[derive(Debug)]
pub struct State {
    /// Terminal size.
    pub size: Size,
    /// Colours.
    pub theme: Theme,
    /// Version of the program.
    pub version: String,
    /// Whether the terminal supports hyperlinks.
    pub links: bool,
    /// Whether the terminal draws flags.
    pub has_flags: bool,
    /// How the user is told that the session needs them.
    pub notify: Notify,
    /// Whether the terminal has the focus; `None` if it does not say.
    pub has_focus: Option<bool>,
    /// Program name and flags of this run, repeated in the commands that hints suggest.
    pub invocation: Invocation,
    /// Facts about the session known before it was opened.
    pub info: SessionInfo,
    /// Id of the open session.
    pub id: SessionId,
    /// Session metadata; `None` until the first entry is saved.
    pub meta: Option<SessionMeta>,
    /// Messages, tool calls and notices.
    pub transcript: Transcript,
    /// Input field.
    pub input: Input,
    /// Keys that act differently when pressed twice.
    pub keys: Keys,
    /// Open overlays and dialogs; the last one is in front and gets the keys.
    pub overlays: Vec<Layer>,
    /// Number of overlays opened so far.
    pub opened: u64,
    /// Toast messages.
    pub toasts: Toasts,
    /// Whether keys go to the transcript (reading mode) instead of the input.
    pub reading: bool,
    /// Lifecycle phase of the session on this screen.
    pub phase: Phase,
    /// Current turn; `None` while no agent answers.
    pub running: Option<Running>,
    /// Messages typed during a turn; each is sent when the current turn ends.
    pub ahead: TypeAhead,
    /// Whether another agent or model was asked for and does not answer yet; no message is sent
    /// before that.
    pub is_switching: bool,
    /// Whether the [`Subject::Restore`] question is unanswered; no message is sent before that.
    pub is_undecided: bool,
    /// Activity line above the input.
    pub activity: Activity,
    /// Members of the team waiting to speak.
    pub queue: Queue,
    /// Todo list of the agent.
    pub todos: Todos,
    /// Progress of a pair, and when it was reported.
    pub progress: Option<(Progress, Timestamp)>,
    /// Whether it is another folder than that of the program.
    pub is_elsewhere: bool,
    /// Whether the session has told what was not sent before.
    pub has_seen_drafts: bool,
    /// What the session has been told of the input.
    pub kept_draft: String,
    /// Folder that the session works in; empty if it is not known.
    pub folder: String,
    /// How full the agent's context is, if known.
    pub context: Option<ContextUse>,
    /// Cost of the session.
    pub bill: Bill,
    /// The tool permissions in force.
    pub permissions: PermissionState,
    /// Number of messages held in memory because they could not be saved.
    pub held: usize,
    /// Whether the last turn failed.
    pub failed: bool,
    /// Ids of the tool calls of the newest message that has any.
    pub calls: Vec<String>,
    /// Whether the agent of the resumed session is not available.
    pub is_unavailable: bool,
    /// Session to open after this one.
    pub next: Option<Next>,
    /// Signal that ends the program.
    pub signal: Option<u8>,
    /// Action for the next store service answer that names a session.
    pub wish: Option<Wish>,
    /// Error that prevented opening the session.
    pub broken: Option<TuiError>,
    /// Whether the session was opened.
    pub has_begun: bool,
    /// Whether the program was started to choose a session.
    pub picks: bool,
    /// Whether another session was shown on this screen before.
    pub was_open: bool,
    /// Session that was shown on this screen before this one.
    pub before: Option<Next>,
    /// Messages and exit status for the shell after the screen closes.
    pub farewell: SessionEnd,
}

/// Lifecycle phase of a session on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The session is being opened.
    Opening,
    /// The session is open.
    Open,
    /// The user is leaving the session.
    Leaving,
    /// The session has ended.
    Gone,
}

/// The current turn.
#[derive(Clone, Debug)]
pub struct Running {
    /// Start of the turn, or of the current agent's turn among several agents.
    pub since: Timestamp,
    /// Start of the turn.
    pub began: Timestamp,
    /// Agent that answers.
    pub who: Speaker,
    /// Current activity of the agent.
    pub doing: Doing,
    /// Tool that needs approval.
    pub tool: String,
    /// Activity to show once the tool is approved.
    pub then: Doing,
    /// Length of the answer so far in bytes; an estimate of its tokens until they are reported.
    pub letters: usize,
    /// Whether the user has cancelled the turn.
    pub stopped: bool,
    /// The prompt, until it is confirmed as saved.
    pub unheard: Option<String>,
    /// Whether an error came before that: the prompt was refused.
    pub refused: bool,
}

/// Action for a session that the store service finds or creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Resumes the session, scrolled to an entry if one is given.
    Resume(Option<Seq>),
    /// Resumes the session with this text in the input.
    Rewrite(String),
}

/// An open overlay or dialog.
#[derive(Debug)]
pub enum Layer {
    /// Keys and commands.
    Help(Box<Help>),
    /// Session list.
    Picker(Box<Picker>),
    /// Full-text search.
    Search(Box<Search>),
    /// Fork tree of the session.
    Tree(Box<Tree>),
    /// Statistics.
    Stats(Box<Stats>),
    /// List of messages to rewind to.
    Rewind(Box<Rewind>),
    /// List of agents or models.
    Chooser(Box<Chooser>),
    /// Read-only text.
    Sheet(Box<Sheet>),
    /// Question to the user, above the input.
    Question(Box<Question>),
    /// Error message.
    Failure(Box<Failure>),
}

impl Layer {
    /// Returns true for overlays that cover the whole screen, false for dialogs.
    pub fn is_whole(&self) -> bool {
        !matches!(self, Layer::Question(_) | Layer::Failure(_))
    }

    /// Returns true for overlays that leave nothing of the session on the screen. A sheet stands in
    /// front of it.
    pub fn hides_session(&self) -> bool {
        self.is_whole() && !matches!(self, Layer::Sheet(_))
    }

    /// Returns the question, if it is one.
    pub fn question(&self) -> Option<&Question> {
        match self {
            Layer::Question(question) => Some(question),
            _ => None,
        }
    }

    /// Returns the overlay.
    pub fn get(&self) -> &dyn Overlay {
        match self {
            Layer::Help(help) => help.as_ref(),
            Layer::Picker(picker) => picker.as_ref(),
            Layer::Search(search) => search.as_ref(),
            Layer::Tree(tree) => tree.as_ref(),
            Layer::Stats(stats) => stats.as_ref(),
            Layer::Rewind(rewind) => rewind.as_ref(),
            Layer::Chooser(chooser) => chooser.as_ref(),
            Layer::Sheet(sheet) => sheet.as_ref(),
            Layer::Question(question) => question.as_ref(),
            Layer::Failure(failure) => failure.as_ref(),
        }
    }

    /// Returns the overlay, to be changed.
    pub fn get_mut(&mut self) -> &mut dyn Overlay {
        match self {
            Layer::Help(help) => help.as_mut(),
            Layer::Picker(picker) => picker.as_mut(),
            Layer::Search(search) => search.as_mut(),
            Layer::Tree(tree) => tree.as_mut(),
            Layer::Stats(stats) => stats.as_mut(),
            Layer::Rewind(rewind) => rewind.as_mut(),
            Layer::Chooser(chooser) => chooser.as_mut(),
            Layer::Sheet(sheet) => sheet.as_mut(),
            Layer::Question(question) => question.as_mut(),
            Layer::Failure(failure) => failure.as_mut(),
        }
    }
}

impl State {
    /// Creates the state of a session that is being opened.
    pub fn new(info: SessionInfo, history: History, size: Size, theme: Theme) -> State {
        let total = info.restored.as_ref().map_or(0, |meta| meta.head.seq.0);
        let mut transcript = Transcript::new(total);
        transcript.speakers(info.colours());
        let mut input = Input::new(history);
        input.set_members(info.candidates());
        input.set_people(info.people());
        State {
            size,
            theme,
            version: String::new(),
            links: false,
            has_flags: true,
            notify: Notify::silent(),
            has_focus: None,
            invocation: Invocation::default(),
            id: info.id,
            meta: info.restored.as_deref().cloned(),
            transcript,
            input,
            keys: Keys::default(),
            overlays: Vec::new(),
            opened: 0,
            toasts: Toasts::default(),
            reading: false,
            phase: Phase::Opening,
            running: None,
            ahead: TypeAhead::default(),
            is_switching: false,
            is_undecided: false,
            activity: Activity::default(),
            queue: Queue::default(),
            todos: Todos::default(),
            progress: None,
            is_elsewhere: false,
            has_seen_drafts: false,
            kept_draft: String::new(),
            folder: String::new(),
            context: None,
            bill: match info.restored.as_ref().map(|meta| meta.tokens) {
                Some(tokens) if !tokens.is_empty() => Bill::unread(),
                _ => Bill::default(),
            },
            permissions: State::asking(),
            held: 0,
            failed: false,
            calls: Vec::new(),
            is_unavailable: false,
            next: None,
            signal: None,
            wish: None,
            broken: None,
            has_begun: false,
            picks: false,
            was_open: false,
            before: None,
            farewell: SessionEnd::default(),
            info,
        }
    }

    /// Tool permissions before the session reports any.
    pub fn asking() -> PermissionState {
        PermissionState {
            mode: ApprovalMode::Ask,
            always: Vec::new(),
        }
    }

    /// Returns the question that is answered next, if one is open.
    pub fn question(&self) -> Option<&Question> {
        let mut layers = self.overlays.iter().rev();
        layers.find_map(Layer::question)
    }

    /// Closes the questions about these subjects, and returns whether there were any.
    pub fn drop_questions(&mut self, is_meant: impl Fn(&Subject) -> bool) -> bool {
        let before = self.overlays.len();
        self.overlays.retain(|layer| {
            !layer
                .question()
                .is_some_and(|question| is_meant(question.subject()))
        });
        self.overlays.len() < before
    }

    /// Returns true once the session has ended and the event loop can stop.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Gone
    }

    /// Returns true if the session is being left or has ended.
    pub fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Leaving | Phase::Gone)
    }

    /// Time until the view changes without an event, such as an expiring toast.
    pub fn due(&self, now: Now) -> Option<Duration> {
        let overlays = self.overlays.iter();
        let overlays = overlays.filter_map(|layer| layer.get().due(now.at));
        let others = [self.toasts.due(now.at), self.activity.due(now.at)];
        let first = overlays.chain(others.into_iter().flatten()).min()?;
        let left = first.duration_since(now.at);
        // At least a millisecond, so that an overdue item does not make the loop spin.
        let left = Duration::try_from(left).unwrap_or_default();
        Some(left.max(Duration::from_millis(1)))
    }

    /// Returns true if the end of the transcript is on the screen, where new items appear.
    pub fn shows_end(&self) -> bool {
        self.transcript.follows() && !self.overlays.iter().any(Layer::is_whole)
    }

    /// Returns true while the session has nothing to show but its introduction and notices.
    pub fn is_blank(&self) -> bool {
        let has_messages = self.meta.as_ref().is_some_and(|meta| meta.messages > 0);
        !has_messages && self.transcript.has_only_notices()
    }

    /// Returns the session that Enter in the empty input resumes instead of this new one.
    pub fn offered(&self) -> Option<&SessionMeta> {
        let is_new = self.is_blank() && self.ahead.is_empty() && !self.is_running();
        self.info.last.as_deref().filter(|_| is_new)
    }

    /// Returns true if a message can be sent now, and does not have to wait for something else.
    pub fn is_free(&self) -> bool {
        !self.is_running() && !self.is_undecided && !self.is_switching
    }

    /// Returns true while an agent answers.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }
}
