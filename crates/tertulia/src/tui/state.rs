//! Everything that the screen shows follows from this.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use ratatui::layout::Size;
use tertulia_agents::approval::{Approval as ApprovalMode, PermissionState};
use tertulia_core::entry::Speaker;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;
use tertulia_engine::pair::Progress;

use super::activity::{Activity, Doing};
use super::dialog::approval::Approval;
use super::dialog::confirm::Confirm;
use super::dialog::failure::Failure;
use super::dialog::restore::Restore;
use super::effect::{Next, Now};
use super::help::Help;
use super::history::History;
use super::input::Input;
use super::keymap::Keys;
use super::news::{Farewell, Ticket};
use super::picker::Picker;
use super::queue::Queue;
use super::rewind::Rewind;
use super::scene::Scene;
use super::search::Search;
use super::sheet::Sheet;
use super::stats::Stats;
use super::theme::Theme;
use super::toast::Toasts;
use super::todos::Todos;
use super::transcript::Transcript;
use super::tree::Tree;
use crate::error::CommandError;
use crate::hint::Invocation;

/// Everything that the screen shows follows from this.
#[derive(Debug)]
pub struct State {
    /// How large the terminal is.
    pub size: Size,
    /// The colours.
    pub theme: Theme,
    /// Whether the terminal knows links.
    pub links: bool,
    /// What commands in hints repeat of how this run was started.
    pub invocation: Invocation,
    /// What was known of the talk before it was opened.
    pub scene: Scene,
    /// The session that the talk is in.
    pub id: SessionId,
    /// The session as it is, once something was said.
    pub meta: Option<SessionMeta>,
    /// What was said.
    pub transcript: Transcript,
    /// Where the person writes.
    pub input: Input,
    /// Keys that mean more when they are pressed twice.
    pub keys: Keys,
    /// What stands before the talk, the foremost last.
    pub overlays: Vec<Overlay>,
    /// Short messages.
    pub toasts: Toasts,
    /// Whether the keys are for reading the transcript.
    pub reading: bool,
    /// How far the talk is.
    pub phase: Phase,
    /// Somebody who answers.
    pub running: Option<Running>,
    /// What was written while somebody answered: it is said when they are done.
    pub ahead: VecDeque<String>,
    /// Whether it was asked, and not yet told, if an earlier talk is gone on with: nothing is said before that.
    pub is_undecided: bool,
    /// What they are at, for the line above the input.
    pub activity: Activity,
    /// Who waits to speak.
    pub queue: Queue,
    /// What the agent means to do.
    pub todos: Todos,
    /// How far a pair is.
    pub progress: Option<Progress>,
    /// The tool permissions in force.
    pub permissions: PermissionState,
    /// How many messages are held in memory.
    pub held: usize,
    /// Whether the last turn failed.
    pub failed: bool,
    /// Which talk comes after this one.
    pub next: Option<Next>,
    /// The signal that ends the program.
    pub signal: Option<u8>,
    /// What to do with the next answer of the librarian that names a session.
    pub wish: Option<Wish>,
    /// Why it could not be opened.
    pub broken: Option<CommandError>,
    /// Whether it was opened.
    pub has_begun: bool,
    /// Whether there was a talk before it on this screen.
    pub was_open: bool,
    /// The talk from which it was come to, on this screen.
    pub before: Option<Next>,
    /// What is left to say when it is over.
    pub farewell: Farewell,
}

/// How far the talk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is being opened.
    Opening,
    /// It is open.
    Open,
    /// It is being left.
    Leaving,
    /// It is over.
    Gone,
}

/// Somebody who answers.
#[derive(Clone, Debug)]
pub struct Running {
    /// Since when.
    pub since: Timestamp,
    /// Who.
    pub who: Speaker,
    /// What they are at.
    pub doing: Doing,
    /// The tool that they ask for.
    pub tool: String,
    /// What they are at once they may.
    pub then: Doing,
    /// How many letters they have said: a measure of what they say before its tokens are known.
    pub letters: usize,
    /// Whether somebody has stopped them.
    pub stopped: bool,
    /// Whether what they are told is not yet known to be saved.
    pub unheard: bool,
}

/// What is to be done with a session once it is found or made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To go on with it, looking at a place in it.
    Resume(Option<Seq>),
    /// To go on with it, with this in the input.
    Rewrite(String),
}

/// What stands before the talk.
#[derive(Debug)]
pub enum Overlay {
    /// Keys and commands.
    Help(Box<Help>),
    /// The list of sessions.
    Picker(Box<Picker>),
    /// The search.
    Search(Box<Search>),
    /// The family.
    Tree(Box<Tree>),
    /// The figures.
    Stats(Box<Stats>),
    /// What can be gone back to.
    Rewind(Box<Rewind>),
    /// A text.
    Sheet(Box<Sheet>),
    /// Whether a tool may be used, and which question of the talk this is.
    Approval(Ticket, Box<Approval>),
    /// Whether an earlier talk is gone on with.
    Restore(Box<Restore>),
    /// Whether a pair goes on with what was left undone.
    GoOn(Confirm),
    /// Something went wrong.
    Failure(Box<Failure>),
}

impl Overlay {
    /// Whether it covers everything.
    pub fn is_whole(&self) -> bool {
        !matches!(
            self,
            Overlay::Approval(..) | Overlay::Restore(_) | Overlay::GoOn(_) | Overlay::Failure(_)
        )
    }
}

impl State {
    /// A talk that is being opened.
    pub fn new(scene: Scene, history: History, size: Size, theme: Theme) -> State {
        let total = scene.restored.as_ref().map_or(0, |meta| meta.head.seq.0);
        let mut transcript = Transcript::new(total);
        transcript.speakers(scene.colours());
        let mut input = Input::new(history);
        input.set_members(scene.candidates());
        input.set_people(scene.people());
        State {
            size,
            theme,
            links: false,
            invocation: Invocation::default(),
            id: scene.id,
            meta: scene.restored.as_deref().cloned(),
            transcript,
            input,
            keys: Keys::default(),
            overlays: Vec::new(),
            toasts: Toasts::default(),
            reading: false,
            phase: Phase::Opening,
            running: None,
            ahead: VecDeque::new(),
            is_undecided: false,
            activity: Activity::default(),
            queue: Queue::default(),
            todos: Todos::default(),
            progress: None,
            permissions: State::asking(),
            held: 0,
            failed: false,
            next: None,
            signal: None,
            wish: None,
            broken: None,
            has_begun: false,
            was_open: false,
            before: None,
            farewell: Farewell::default(),
            scene,
        }
    }

    /// The tool permissions as long as nothing else is known.
    pub fn asking() -> PermissionState {
        PermissionState {
            mode: ApprovalMode::Ask,
            always: Vec::new(),
        }
    }

    /// Whether the loop is done with this talk.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Gone
    }

    /// Whether it is being left.
    pub fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Leaving | Phase::Gone)
    }

    /// When something will look different though nothing happens.
    pub fn due(&self, now: Now) -> Option<Duration> {
        let overlays = self.overlays.iter().filter_map(|overlay| match overlay {
            Overlay::Picker(picker) => picker.due(),
            Overlay::Search(search) => search.due(),
            Overlay::Approval(_, approval) => Some(approval.due()).filter(|due| *due > now.at),
            Overlay::Restore(restore) => Some(restore.quiet.until()).filter(|due| *due > now.at),
            Overlay::GoOn(confirm) => Some(confirm.quiet.until()).filter(|due| *due > now.at),
            _ => None,
        });
        let others = [self.toasts.due(now.at), self.activity.due(now.at)];
        let first = overlays.chain(others.into_iter().flatten()).min()?;
        let left = first.duration_since(now.at);
        // What is due already is not asked about again and again.
        let left = Duration::try_from(left).unwrap_or_default();
        Some(left.max(Duration::from_millis(1)))
    }

    /// Whether somebody answers now.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }
}
