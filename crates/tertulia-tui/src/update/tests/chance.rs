//! Random events in any order: nothing breaks, and no typed text is lost.

use proptest::prelude::*;
use tertulia_agents::approval::Verdict;
use tertulia_core::query::Listing;

use tertulia_engine::error::ErrorKind;
use tertulia_engine::event::UnfinishedWork;

use super::*;
use crate::dialog::question::Question;
use crate::error::TuiError;
use crate::item::Tone;
use crate::rewind::Moment;
use crate::store_service::Listed;
use crate::test_support::{any_key, any_size, said, session};

/// A random event.
#[derive(Clone, Debug)]
enum Step {
    Key(crossterm::event::KeyEvent),
    Command(&'static str),
    Paste(String),
    Wheel(bool),
    Size((u16, u16)),
    Wait(i64),
    Opened(bool),
    Text(String),
    Thought(String),
    Human(String),
    Agent(String),
    Held(String),
    Tool,
    MayI,
    Notice,
    Asked,
    Over(bool),
    /// The store service answers all requests, with success or failure.
    Answers(bool),
    Signal,
    Unplugged,
}

const COMMANDS: &[&str] = &[
    "/help",
    "/sessions",
    "/search a",
    "/tree",
    "/stats",
    "/info",
    "/rewind",
    "/rewind 1",
    "/fork",
    "/resume x",
    "/new",
    "/model x",
    "/as ben",
    "/go",
    "/compact",
    "/queue",
    "/nonsense",
    "/export",
    "/compare x",
    "/agents",
    "/team list",
    "/exit",
];

fn step() -> impl Strategy<Value = Step> {
    let words = || "[ a-z漢👩\u{301}\n`*|#-]{0,30}";
    prop_oneof![
        8 => any_key().prop_map(Step::Key),
        2 => proptest::sample::select(COMMANDS).prop_map(Step::Command),
        1 => words().prop_map(Step::Paste),
        1 => any::<bool>().prop_map(Step::Wheel),
        2 => any_size().prop_map(Step::Size),
        2 => (0..900_i64).prop_map(Step::Wait),
        1 => any::<bool>().prop_map(Step::Opened),
        2 => words().prop_map(Step::Text),
        1 => words().prop_map(Step::Thought),
        1 => words().prop_map(Step::Human),
        1 => words().prop_map(Step::Agent),
        1 => words().prop_map(Step::Held),
        1 => Just(Step::Tool),
        1 => Just(Step::MayI),
        1 => Just(Step::Notice),
        1 => Just(Step::Asked),
        2 => any::<bool>().prop_map(Step::Over),
        2 => any::<bool>().prop_map(Step::Answers),
        1 => Just(Step::Signal),
        1 => Just(Step::Unplugged),
    ]
}

/// Answer of the store service to a request.
fn answer(request: Request, refuses: bool) -> Option<Answer> {
    let refusal = || TuiError::new(ErrorKind::Failed, "the disk is gone".to_owned());
    let row = || match refuses {
        true => Err(refusal()),
        false => Ok(Box::new(session(5, "Another", 9))),
    };
    Some(match request {
        Request::Transcript {
            session, wanted, ..
        } => Answer::Transcript {
            session,
            wanted,
            loaded: match refuses {
                true => Err(refusal()),
                false => Ok(Loaded {
                    wanted,
                    items: vec![said(1, "You", SpeakerKind::Human, 91, "Why is it slow?")],
                    more_before: false,
                    more_after: false,
                }),
            },
        },
        Request::Picker(ticket, _) if refuses => Answer::Picker(ticket, Err(refusal())),
        Request::Picker(ticket, picker::Wanted::Page { .. }) => {
            let listing = Listing {
                rows: vec![session(1, "This", 1), session(5, "Another", 9)],
                ..Listing::default()
            };
            Answer::Picker(ticket, Ok(Listed::Page(listing)))
        }
        Request::Rewind(id, ticket, _) => {
            let moment = Moment::new(Seq(1), before(9), "hello");
            Answer::Rewind(id, ticket, Ok((vec![moment], false)))
        }
        Request::Words(id, seq) => Answer::Words(id, seq, Ok("hello".to_owned())),
        Request::Find(text) => Answer::Found(text, row()),
        Request::Fork(..) => Answer::Forked(row().map(|row| {
            Box::new(crate::host::Forked {
                row: *row,
                recovered: false,
            })
        })),
        Request::Trash(id) => Answer::Trashed(id, row()),
        Request::Agents(only) => Answer::Agents(only, Ok(Vec::new())),
        Request::CheckAgent(name) => Answer::AgentChecked(name, Ok(Vec::new())),
        _ => return None,
    })
}

/// The TUI under test and its unanswered requests.
struct Chance {
    play: Play,
    asked: Vec<Request>,
    said: Vec<String>,
}

impl Chance {
    fn happens(&mut self, event: Event) {
        let effects = self.play.effects(event);
        let changes = effects
            .iter()
            .filter(|effect| self.play.session_hears(effect));
        if changes.count() > 0 {
            self.play.tell_unsent();
        }
        let began = self.play.session_goes_on();
        let began = began
            .iter()
            .filter_map(|wanted| wanted.strip_prefix("say "));
        self.said.extend(began.map(str::to_owned));
        for effect in effects {
            match effect {
                Effect::Ask(request) => self.asked.push(*request),
                Effect::Command(LiveCommand::Say(words)) => self.said.push(words),
                Effect::Verdict(_, Verdict::Yes | Verdict::Always) => {
                    assert!(!self.play.state.is_leaving());
                }
                _ => {}
            }
        }
    }

    fn live(&mut self, event: LiveEvent) {
        self.happens(Event::Live(event));
    }

    fn floor(&self, failed: bool) -> SessionState {
        SessionState {
            failed,
            unfinished: failed.then(|| UnfinishedWork {
                question: "Repeat it?".to_owned(),
                text: "half".to_owned(),
                is_spent: false,
            }),
            ..self.play.floor()
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Key(key) => self.happens(Event::Key(key)),
            Step::Command(command) => {
                for letter in command.chars() {
                    self.happens(Event::Key(key(&letter.to_string())));
                }
                self.happens(Event::Key(key("enter")));
            }
            Step::Paste(text) => self.happens(Event::Paste(text)),
            Step::Wheel(up) => {
                let kind = match up {
                    true => crossterm::event::MouseEventKind::ScrollUp,
                    false => crossterm::event::MouseEventKind::ScrollDown,
                };
                self.happens(Event::Mouse(crossterm::event::MouseEvent {
                    kind,
                    column: 0,
                    row: 0,
                    modifiers: crossterm::event::KeyModifiers::NONE,
                }));
            }
            Step::Size((columns, lines)) => self.happens(Event::Resize(Size::new(columns, lines))),
            Step::Wait(milliseconds) => {
                self.play.milliseconds += milliseconds;
                self.happens(Event::Tick);
            }
            Step::Opened(undone) => {
                if self.play.state.phase == Phase::Opening {
                    let floor = self.floor(undone);
                    self.live(LiveEvent::Session(SessionEvent::Opened {
                        floor: Box::new(floor),
                    }));
                }
            }
            Step::Text(text) => self.live(LiveEvent::Session(SessionEvent::Text { text })),
            Step::Thought(text) => self.live(LiveEvent::Session(SessionEvent::Thought { text })),
            Step::Human(text) => self.play.durable(message(person(), &text)),
            Step::Agent(text) => self.play.durable(message(agent("demo"), &text)),
            Step::Held(text) => self.live(LiveEvent::Session(SessionEvent::Held {
                message: Box::new(message(agent("demo"), &text)),
            })),
            Step::Tool => {
                let used = call(3, "shell", json!({ "command": "ls" }));
                self.live(LiveEvent::Session(SessionEvent::Heard {
                    event: AgentEvent::ToolStarted(used.clone()),
                }));
                self.play.durable(Message {
                    tool_calls: vec![used],
                    ..message(agent("demo"), "")
                });
            }
            Step::MayI => self.live(LiveEvent::Permission(1, Box::new(request()))),
            Step::Notice => self.live(LiveEvent::Session(SessionEvent::notice(
                Tone::Warning,
                "careful".to_owned(),
            ))),
            Step::Asked => self.live(LiveEvent::Session(SessionEvent::Asked {
                speaker: agent("Ben"),
            })),
            Step::Over(failed) => {
                if self.play.state.phase != Phase::Opening {
                    let floor = self.floor(failed);
                    self.live(LiveEvent::Session(SessionEvent::Over {
                        floor: Box::new(floor),
                    }));
                }
            }
            Step::Answers(refuses) => {
                for request in std::mem::take(&mut self.asked) {
                    if let Some(answer) = answer(request, refuses) {
                        self.happens(Event::Answer(Box::new(answer)));
                    }
                }
            }
            Step::Signal => self.happens(Event::Signal(15)),
            Step::Unplugged => self.happens(Event::Unplugged),
        }
    }

    /// All text typed so far: sent, queued, or in the input.
    fn kept(&self) -> String {
        let state = &self.play.state;
        let mut kept = self.said.join("\n");
        for words in state.ahead.waiting() {
            kept.push_str(words);
        }
        kept.push_str(&state.input.text());
        kept
    }
}

fn chance(kind: Kind, earlier: bool) -> Chance {
    let info = SessionInfo {
        earlier: earlier.then(|| Box::new(session(4, "Earlier", 130))),
        restored: (!earlier).then(|| Box::new(meta(1, 1))),
        ..info(kind)
    };
    Chance {
        play: Play::new(info),
        asked: Vec::new(),
        said: Vec::new(),
    }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(&[Kind::Chat, Kind::Team, Kind::Pair][..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn nothing_breaks(
        kind in any_kind(), earlier in any::<bool>(), steps in proptest::collection::vec(step(), 0..60),
        other in any_size(),
    ) {
        let mut chance = chance(kind, earlier);
        for step in steps {
            chance.take(step);
            let state = &chance.play.state;
            prop_assert_eq!(state.is_running(), state.activity.height() == 1);
            prop_assert!(state.is_leaving() || state.next.is_none());
            chance.play.seen();
            // A terminal may have changed its size before it reports that.
            screen(other, |_, buffer| view::screen::draw(state, chance.play.now().at, buffer));
        }
    }

    /// Typed letters that are not deleted are in the input, queued, or sent, each once and in
    /// order.
    #[test]
    fn what_is_typed_is_never_lost(
        kind in any_kind(), earlier in any::<bool>(),
        steps in proptest::collection::vec((step(), "[0-9]{0,3}", any::<bool>()), 0..40),
    ) {
        let mut chance = chance(kind, earlier);
        let mut typed = String::new();
        for (step, digits, sends) in steps {
            let keeps = match &step {
                // Leave out steps that can delete or move text or take letters for themselves.
                Step::Key(_) | Step::Command(_) | Step::Paste(_) => false,
                _ => true,
            };
            if keeps {
                chance.take(step);
            }
            // Close all overlays, so that letters go to the input.
            for _ in 0..9 {
                if chance.play.state.overlays.is_empty() {
                    break;
                }
                chance.play.milliseconds += 400;
                let state = &chance.play.state;
                let is_writing = state.question().is_some_and(Question::is_writing);
                let keys = match (state.is_undecided, is_writing) {
                    (true, true) => &["tab", "n", "enter"][..],
                    (true, false) => &["n", "enter"],
                    (false, _) => &["esc"],
                };
                for name in keys {
                    chance.happens(Event::Key(key(name)));
                }
            }
            for digit in digits.chars() {
                chance.happens(Event::Key(key(&digit.to_string())));
            }
            typed.push_str(&digits);
            if sends {
                chance.happens(Event::Key(key("enter")));
            }
            let kept: String = chance.kept().chars().filter(char::is_ascii_digit).collect();
            prop_assert_eq!(&kept, &typed);
        }
    }
}

#[test]
fn a_screen_of_one_cell_and_back() {
    for mut play in [Play::chat(), Play::talked(), Play::asked()] {
        play.keys("half");
        let before = play.seen();
        for size in [(1, 1), (0, 0), (2, 1), (1, 30), (300, 1), (80, 24)] {
            play.at(size);
        }
        assert_eq!(play.seen(), before);
    }
}
