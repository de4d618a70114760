//! The loop: what reaches the screen goes into the state, what the state wants is done, and what it looks like
//! is drawn, sixty times a second at most.

use std::cell::RefCell;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, EventStream, MouseEventKind};
use futures::StreamExt;
use jiff::Timestamp;
use ratatui::layout::Size;
use tokio::sync::mpsc;

use super::again::{self, Course, Source};
use super::attach::{Attachment, Server};
use super::dialog::failure::Failure;
use super::driver::Driver;
use super::editor;
use super::effect::{Effect, Event, Next, Now};
use super::item::{Item, What};
use super::links;
use super::state::{Overlay, State};
use super::store_service::{Answer, StoreService};
use super::terminal::Screen;
use super::theme::Theme;
use super::update::{arrange, open, sessions, update};
use super::view::screen;
use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::signals::Signals;
use crate::talk::opening::Prepared;
use crate::talk::{self, LEAVE_WITHIN, retention};
use crate::ui::Ui;

/// How long a picture stands at least.
const FRAME: Duration = Duration::from_millis(16);
/// So much from the terminal is taken in before the next picture.
const MOST_AT_ONCE: usize = 1000;
/// No time at all, which crossterm would take for a reason not to look.
const A_GLANCE: Duration = Duration::from_micros(100);
/// How long nothing is looked at if nothing happens.
const REST: Duration = Duration::from_secs(60);
/// How long a screen that is left waits for typed words to be in the history file.
const WRITING: Duration = Duration::from_secs(2);

/// Leads talks on the whole screen, until the person leaves.
pub fn run(prepared: Prepared, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let runtime = talk::runtime()?;
    let keeper = (!prepared.opening.args.ephemeral).then(|| prepared.opening.workspace.clone());
    let course = Course::new(&prepared.opening.args, global);
    let result = run_loop(Source::Here(Box::new(prepared)), course, runtime, ui);
    if let Some(keeper) = keeper {
        retention::keep_workspace(&keeper, ui);
    }
    result
}

/// Follows talks that a server leads, until the person leaves.
pub fn follow(
    attachment: Attachment,
    server: Server,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let course = Course::on(server, global);
    let source = Source::There(Box::new(attachment));
    run_loop(source, course, talk::runtime()?, ui)
}

fn run_loop(
    first: Source,
    course: Course,
    runtime: tokio::runtime::Runtime,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let result = {
        let _inside = runtime.enter();
        Lead::new(course, ui).and_then(|mut lead| lead.through(first, &runtime, ui))
    };
    // Nobody waits for a slow disk.
    runtime.shutdown_timeout(LEAVE_WITHIN);
    result
}

/// What stays from one talk to the next.
struct Lead {
    screen: Screen,
    signals: Signals,
    events: Option<EventStream>,
    theme: Theme,
    course: Course,
}

impl Lead {
    fn new(course: Course, ui: &Ui) -> CommandResult<Lead> {
        let screen = Screen::take().map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the terminal cannot be taken")
                .because(error)
                .hint("--plain works line by line")
        })?;
        Ok(Lead {
            screen,
            signals: Signals::listen()?,
            events: Some(EventStream::new()),
            theme: super::theme::chosen(ui.has_colours(), crate::env::text),
            course,
        })
    }

    /// Goes from one talk to the next.
    fn through(
        &mut self,
        first: Source,
        runtime: &tokio::runtime::Runtime,
        ui: &mut Ui,
    ) -> CommandResult<ExitCode> {
        let mut source = first;
        let mut arrival = Arrival::default();
        loop {
            let store_service = source.store_service();
            let state = self.state(&source, &store_service, arrival, ui);
            let state = runtime.block_on(self.talk(source, state, store_service))?;
            let back = again::back(&state);
            let written = state.input.text();
            let next = match (state.broken, state.next) {
                // Nobody goes back to where there was nothing, or where it broke.
                (Some(error), _) if !state.was_open || state.has_begun => return Err(error),
                (Some(error), _) => Err(error),
                (None, Some(next)) => Ok(next),
                (None, None) => {
                    let farewell = state.farewell;
                    for told in farewell.told {
                        ui.tell(told);
                    }
                    return Ok(talk::exit_code(state.signal, farewell.unsaved));
                }
            };
            (source, arrival) = self.arrive(next, back, ui)?;
            arrival.draft = again::draft(arrival.draft, written);
        }
    }

    /// Prepares the next talk. One that cannot be had leads back to where the person was, and they are told.
    fn arrive(
        &mut self,
        next: Result<Next, CommandError>,
        back: Next,
        ui: &mut Ui,
    ) -> CommandResult<(Source, Arrival)> {
        let error = match next {
            Ok(next) => match self.course.prepare(&next, ui) {
                Ok(source) => return Ok((source, Arrival::at(&next, back))),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let source = self.course.prepare(&back, ui)?;
        let arrival = Arrival {
            failure: Some(error),
            ..Arrival::default()
        };
        Ok((source, arrival))
    }

    /// A talk that is about to be opened.
    fn state(
        &mut self,
        source: &Source,
        store_service: &StoreService,
        arrival: Arrival,
        ui: &mut Ui,
    ) -> State {
        let size = self.screen.size().unwrap_or(Size::new(80, 24));
        let history = store_service.history();
        let scene = source.scene();
        let picks = source.picks() && scene.restored.is_none() && arrival.is_first();
        let mut state = State::new(scene, history, size, self.theme);
        let zone = jiff::tz::TimeZone::system();
        let today = Timestamp::now().to_zoned(zone.clone()).date();
        state.transcript.clock(zone, today);
        state.ahead.extend(source.words());
        for told in ui.take_held() {
            let (tone, text) = again::toned(told);
            let what = What::Notice { tone, text };
            state.transcript.push(Item { seq: None, what });
        }
        if let Some(seq) = arrival.at {
            state.transcript.jump(seq);
        }
        if let Some(draft) = arrival.draft {
            state.input.set_text(&draft);
        }
        if picks {
            sessions(&mut state);
        }
        if let Some(error) = arrival.failure {
            let hints = error.hints().iter();
            let hints = hints.map(|hint| ui.invocation.complete(hint)).collect();
            let failure = Failure::new("That did not work", &error.words(), hints);
            open(&mut state, Overlay::Failure(Box::new(failure)));
        }
        state.was_open = !arrival.first;
        state.before = arrival.from;
        state.links = links::can(&crate::env::text);
        state.invocation = ui.invocation.clone();
        state
    }

    /// One talk, until it is left.
    async fn talk(
        &mut self,
        source: Source,
        mut state: State,
        store_service: StoreService,
    ) -> CommandResult<State> {
        let engine = source.drive()?;
        let (answered, mut answers) = mpsc::unbounded_channel::<Answer>();
        let desk = Desk {
            store_service,
            answered,
            writing: RefCell::default(),
        };
        let mut drawn: Option<Instant> = None;
        let mut picture = Picture::Urgent;
        while !state.is_over() {
            let now = Now::read();
            let is_due = match picture {
                Picture::Urgent => true,
                Picture::Stale => drawn.is_none_or(|drawn| now.tick - drawn >= FRAME),
                Picture::Fresh => false,
            };
            if is_due {
                self.draw(&mut state, &engine, &desk, now);
                drawn = Some(now.tick);
                picture = Picture::Fresh;
            }
            let due = match (picture, drawn) {
                (Picture::Stale, Some(drawn)) => drawn + FRAME,
                _ => state.due(now).map_or(now.tick + REST, |due| now.tick + due),
            };
            let happened = tokio::select! {
                biased;
                input = next_input(&mut self.events) => with_more(input),
                () = self.signals.next() => {
                    let number = self.signals.caught().unwrap_or_default();
                    vec![Event::Signal(number)]
                }
                news = engine.news().take() => news.into_iter().map(Event::News).collect(),
                answer = answers.recv() => {
                    answer.map(|answer| Event::Answer(Box::new(answer))).into_iter().collect()
                }
                () = tokio::time::sleep_until(due.into()) => vec![Event::Tick],
            };
            for event in happened {
                picture = picture.after(&event);
                let now = Now::read();
                let effects = update(&mut state, event, now);
                self.perform(effects, &mut state, &engine, &desk).await;
            }
        }
        engine.join();
        desk.finish_writing().await;
        Ok(state)
    }

    fn draw(&mut self, state: &mut State, engine: &Driver, desk: &Desk, now: Now) {
        // One that went away has no size, which drawing will tell.
        if let Ok(size) = self.screen.size()
            && size != state.size
        {
            update(state, Event::Resize(size), now);
        }
        let effects = arrange(state, now);
        self.perform_plain(effects, engine, desk);
        let drawn = self
            .screen
            .draw(|buffer| screen::draw(state, now.at, buffer));
        if drawn.is_err() {
            let effects = update(state, Event::Unplugged, now);
            self.perform_plain(effects, engine, desk);
        }
    }

    /// Does what can be done without the terminal.
    fn perform_plain(&mut self, effects: Vec<Effect>, engine: &Driver, desk: &Desk) {
        for effect in effects {
            match effect {
                Effect::Order(order) => engine.order(order),
                Effect::Cancel => engine.cancel(),
                Effect::Insist => engine.insist(),
                Effect::Verdict(ticket, verdict) => engine.answer(ticket, verdict),
                Effect::Permit(change) => engine.permit(change),
                Effect::Ask(request) => desk.ask(*request),
                _ => {}
            }
        }
    }

    async fn perform(
        &mut self,
        effects: Vec<Effect>,
        state: &mut State,
        engine: &Driver,
        desk: &Desk,
    ) {
        for effect in effects {
            let trouble = match effect {
                Effect::Copy(text) => self.screen.copy(&text),
                Effect::Ring => self.screen.ring(),
                Effect::Redraw => {
                    self.screen.redraw();
                    Ok(())
                }
                Effect::Suspend => self.lend(Screen::suspend),
                Effect::Edit(text) => {
                    let edited = self.lend(|screen| screen.lend(|| editor::edit(&text)));
                    let event = match edited {
                        Ok(edited) => Event::Edited(edited),
                        Err(error) => Event::Edited(Err(error.to_string())),
                    };
                    let more = update(state, event, Now::read());
                    self.perform_plain(more, engine, desk);
                    Ok(())
                }
                other => {
                    self.perform_plain(vec![other], engine, desk);
                    Ok(())
                }
            };
            if let Err(error) = trouble {
                let words = format!("the terminal did not take it: {error}");
                state
                    .toasts
                    .push(super::item::Tone::Warning, &words, Timestamp::now());
            }
        }
    }

    /// Lets somebody else read the keyboard meanwhile.
    fn lend<T>(&mut self, work: impl FnOnce(&mut Screen) -> T) -> T {
        self.events = None;
        let done = work(&mut self.screen);
        self.events = Some(EventStream::new());
        done
    }
}

/// Where the librarian is asked.
struct Desk {
    store_service: StoreService,
    answered: mpsc::UnboundedSender<Answer>,
    /// Requests that change a file and are not done yet.
    writing: RefCell<Vec<tokio::task::JoinHandle<()>>>,
}

impl Desk {
    fn ask(&self, request: super::store_service::Request) {
        let (store_service, answered) = (self.store_service.clone(), self.answered.clone());
        let writes = matches!(request, super::store_service::Request::Remember(_));
        let work = tokio::task::spawn_blocking(move || {
            // Who has left needs no answer.
            let _ = answered.send(store_service.answer(request));
        });
        if writes {
            let mut writing = self.writing.borrow_mut();
            writing.retain(|work| !work.is_finished());
            writing.push(work);
        }
    }

    /// Waits until typed words are in the history file: a runtime that ends drops work that has not begun.
    async fn finish_writing(&self) {
        for work in self.writing.take() {
            let _ = tokio::time::timeout(WRITING, work).await;
        }
    }
}

/// How a talk is come to.
#[derive(Debug)]
struct Arrival {
    first: bool,
    at: Option<tertulia_core::id::Seq>,
    draft: Option<String>,
    failure: Option<CommandError>,
    from: Option<Next>,
}

impl Default for Arrival {
    fn default() -> Arrival {
        Arrival {
            first: true,
            at: None,
            draft: None,
            failure: None,
            from: None,
        }
    }
}

impl Arrival {
    fn at(next: &Next, from: Next) -> Arrival {
        let (at, draft) = match next {
            Next::Resume { at, draft, .. } => (*at, draft.clone()),
            _ => (None, None),
        };
        Arrival {
            first: false,
            at,
            draft,
            failure: None,
            from: Some(from),
        }
    }

    fn is_first(&self) -> bool {
        self.first
    }
}

/// How the picture on the terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Picture {
    /// As the state is.
    Fresh,
    /// Older: it is drawn again with the next frame.
    Stale,
    /// Older than what the person did: it is drawn again at once.
    Urgent,
}

impl Picture {
    fn after(self, event: &Event) -> Picture {
        let needed = match event {
            Event::Key(_) | Event::Paste(_) | Event::Mouse(_) => Picture::Urgent,
            _ => Picture::Stale,
        };
        self.max(needed)
    }
}

/// The next thing from the terminal. One that is gone says so once.
async fn next_input(events: &mut Option<EventStream>) -> Event {
    let Some(stream) = events else {
        return std::future::pending().await;
    };
    loop {
        match stream.next().await {
            Some(Ok(input)) => {
                if let Some(event) = meant(input) {
                    return event;
                }
            }
            Some(Err(_)) | None => {
                *events = None;
                return Event::Unplugged;
            }
        }
    }
}

/// With what else is there already: many keys at once, such as a paste on a terminal that marks none, are one
/// picture.
fn with_more(first: Event) -> Vec<Event> {
    let mut all = vec![first];
    // The stream rests while nobody polls it, so it is safe to read beside it.
    while all.len() < MOST_AT_ONCE && crossterm::event::poll(A_GLANCE).unwrap_or(false) {
        match crossterm::event::read() {
            Ok(input) => all.extend(meant(input)),
            // The stream will meet it, too.
            Err(_) => break,
        }
    }
    all
}

/// What the screen makes of it.
fn meant(input: Input) -> Option<Event> {
    Some(match input {
        Input::Key(key) => Event::Key(key),
        Input::Paste(text) => Event::Paste(text),
        Input::Mouse(mouse) if mouse.kind == MouseEventKind::Moved => return None,
        Input::Mouse(mouse) => Event::Mouse(mouse),
        Input::Resize(columns, rows) => Event::Resize(Size::new(columns, rows)),
        Input::FocusGained | Input::FocusLost => return None,
    })
}

impl Now {
    fn read() -> Now {
        Now {
            at: Timestamp::now(),
            tick: Instant::now(),
        }
    }
}
