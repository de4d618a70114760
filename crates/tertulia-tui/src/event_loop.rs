//! Event loop: passes events to `update`, performs the effects and draws the state, at most about
//! sixty times a second.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, EventStream, MouseEventKind};
use futures::StreamExt;
use ratatui::layout::Size;
use tertulia_engine::event::SessionEnd;
use tokio::sync::mpsc;

use super::burst::Bursts;
use super::dialog::failure::Failure;
use super::driver::Driver;
use super::editor;
use super::effect::{Effect, Event, IfOpen, Next, Now};
use super::error::{TuiError, TuiResult};
use super::host::Options;
use super::item::{Item, Tone, What};
use super::keymap;
use super::notify;
use super::source::{self, Preparation, Source};
use super::state::{Layer, State};
use super::store_service::{Answer, StoreService};
use super::terminal::Screen;
use super::update::{arrange, open, sessions, update};
use super::view::{self, screen};

/// Minimum time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// Maximum number of terminal events handled before the next frame.
const MOST_AT_ONCE: usize = 1000;
/// Practically zero; with a timeout of zero crossterm would not look for input at all.
const A_GLANCE: Duration = Duration::from_micros(100);
/// Longest wait without any event.
const REST: Duration = Duration::from_secs(60);
/// Longest wait on exit for prompts to be written to the history file.
const WRITING: Duration = Duration::from_secs(2);

/// End of the last session, after the screen is closed.
#[derive(Debug)]
pub struct Finished {
    /// Messages and exit status for the shell.
    pub end: SessionEnd,
    /// Signal that ended the TUI.
    pub signal: Option<u8>,
}

/// Runs sessions in the full-screen TUI until the user leaves. `signals` waits for the next signal
/// that ends a session and returns its number.
pub async fn run(
    first: Source,
    options: Options,
    signals: impl AsyncFnMut() -> u8,
) -> TuiResult<Finished> {
    EventLoop::new(options, signals)?.run(first).await
}

/// What outlives a single session: terminal, signals, options.
struct EventLoop<S> {
    screen: Screen,
    signals: S,
    events: Option<EventStream>,
    options: Options,
    /// Warnings about the user's keys, for the first session.
    warnings: Vec<String>,
}

impl<S: AsyncFnMut() -> u8> EventLoop<S> {
    fn new(options: Options, signals: S) -> TuiResult<EventLoop<S>> {
        let screen = Screen::take().map_err(|error| {
            TuiError::failed("the terminal cannot be taken", &error)
                .hint("--plain works line by line")
        })?;
        Ok(EventLoop {
            screen,
            signals,
            events: Some(EventStream::new()),
            warnings: keymap::change(&options.keys),
            options,
        })
    }

    /// Runs one session after another.
    async fn run(&mut self, first: Source) -> TuiResult<Finished> {
        let mut source = first;
        let mut arrival = Arrival::default();
        loop {
            let preparation = source.preparation();
            let store_service = source.store_service();
            let state = self.state(&mut source, &store_service, arrival);
            let state = self.talk(source, state, store_service).await?;
            let back = source::back(&state);
            let written = state.input.text();
            let next = match (state.broken, state.next) {
                // Without an earlier session, or after a failure in an open one, there is no way
                // back.
                (Some(error), _) if !state.was_open || state.has_begun => return Err(error),
                (Some(error), _) => Err(error),
                (None, Some(next)) => Ok(next),
                (None, None) => {
                    return Ok(Finished {
                        end: state.farewell,
                        signal: state.signal,
                    });
                }
            };
            (source, arrival) = arrive(&preparation, next, back).await?;
            arrival.draft = source::draft(arrival.draft, written);
        }
    }

    /// Creates the state of a session that is about to be opened.
    fn state(
        &mut self,
        source: &mut Source,
        store_service: &StoreService,
        arrival: Arrival,
    ) -> State {
        let size = self.screen.size().unwrap_or(Size::new(80, 24));
        let history = store_service.history();
        let info = source.info();
        let picks = source.picks() && info.restored.is_none() && arrival.is_first();
        let mut state = State::new(info, history, size, self.options.theme);
        let zone = store_service.zone();
        let today = store_service.now().to_zoned(zone.clone()).date();
        state.transcript.clock(zone, today);
        match source.take_prompt() {
            Some(prompt) if state.info.follows.is_some() => state.input.set_text(&prompt),
            Some(prompt) => state.ahead.put(prompt),
            None => {}
        }
        for (tone, text) in source.take_notices() {
            let what = What::Notice { tone, text };
            state.transcript.push(Item { seq: None, what });
        }
        for text in self.warnings.drain(..) {
            let tone = Tone::Warning;
            let what = What::Notice { tone, text };
            state.transcript.push(Item { seq: None, what });
        }
        if let Some(seq) = arrival.at {
            state.transcript.jump(seq);
        }
        match arrival.draft {
            Some(draft) if arrival.sends => state.ahead.put(draft),
            Some(draft) => state.input.set_text(&draft),
            None => {}
        }
        if picks {
            state.picks = true;
            sessions(&mut state);
        }
        if let Some(error) = arrival.failure {
            let hints = error.hints.iter();
            let hints = hints.map(|hint| self.options.invocation.complete(hint));
            let failure = Failure::new("That did not work", &error.message, hints.collect());
            open(&mut state, Layer::Failure(Box::new(failure)));
        }
        state.was_open = !arrival.first;
        state.before = arrival.from;
        state.version.clone_from(&self.options.version);
        state.links = self.options.links;
        state.has_flags = self.options.has_flags;
        state.input.set_vim(self.options.vim);
        state.notify = self.options.notify.clone();
        state.invocation = self.options.invocation.clone();
        state
    }

    /// Runs the event loop of one session until the user leaves it.
    async fn talk(
        &mut self,
        source: Source,
        mut state: State,
        store_service: StoreService,
    ) -> TuiResult<State> {
        let engine = source.drive()?;
        let (answered, mut answers) = mpsc::unbounded_channel::<Answer>();
        let store = StoreClient {
            store_service,
            answered,
            writing: RefCell::default(),
        };
        let mut drawn: Option<Instant> = None;
        let mut bursts = Bursts::default();
        let mut frame = FrameState::Urgent;
        while !state.is_over() {
            let now = store.now();
            let is_due = match frame {
                FrameState::Urgent => true,
                FrameState::Stale => drawn.is_none_or(|drawn| now.tick - drawn >= FRAME),
                FrameState::Fresh => false,
            };
            if is_due {
                self.draw(&mut state, &engine, &store, now);
                drawn = Some(now.tick);
                frame = FrameState::Fresh;
            }
            let due = match (frame, drawn) {
                (FrameState::Stale, Some(drawn)) => drawn + FRAME,
                _ => state.due(now).map_or(now.tick + REST, |due| now.tick + due),
            };
            let happened = tokio::select! {
                biased;
                input = next_input(&mut self.events) => bursts.join(with_more(input), Instant::now()),
                number = (self.signals)() => vec![Event::Signal(number)],
                events = engine.events().take() => events.into_iter().map(Event::Live).collect(),
                answer = answers.recv() => {
                    answer.map(|answer| Event::Answer(Box::new(answer))).into_iter().collect()
                }
                () = tokio::time::sleep_until(due.into()) => vec![Event::Tick],
            };
            for event in happened {
                frame = frame.after(&event);
                let now = store.now();
                let effects = update(&mut state, event, now);
                self.perform(effects, &mut state, &engine, &store).await;
            }
        }
        engine.join().await;
        store.finish_writing().await;
        Ok(state)
    }

    fn draw(&mut self, state: &mut State, engine: &Driver, store: &StoreClient, now: Now) {
        // A terminal that is gone has no size; drawing reports that below.
        if let Ok(size) = self.screen.size()
            && size != state.size
        {
            update(state, Event::Resize(size), now);
        }
        let effects = arrange(state, now);
        self.perform_plain(effects, engine, store);
        let mut drawn = self
            .screen
            .draw(|buffer| screen::draw(state, now.at, buffer));
        if drawn.is_ok() && self.options.notify.title {
            drawn = self.screen.entitle(&view::title::of(state));
        }
        if drawn.is_err() {
            let effects = update(state, Event::Unplugged, now);
            self.perform_plain(effects, engine, store);
        }
    }

    /// Performs the effects that do not need the terminal.
    fn perform_plain(&mut self, effects: Vec<Effect>, engine: &Driver, store: &StoreClient) {
        for effect in effects {
            match effect {
                Effect::Command(command) => engine.command(command),
                Effect::Cancel => engine.cancel(),
                Effect::Abort => engine.abort(),
                Effect::Verdict(ticket, verdict) => engine.answer(ticket, verdict),
                Effect::Permit(change) => engine.permit(change),
                Effect::Ask(request) => store.ask(*request),
                Effect::RunNotify(message) => notify::run(&self.options.notify.command, &message),
                _ => {}
            }
        }
    }

    async fn perform(
        &mut self,
        effects: Vec<Effect>,
        state: &mut State,
        engine: &Driver,
        store: &StoreClient,
    ) {
        for effect in effects {
            let trouble = match effect {
                Effect::Copy(text) => self.screen.copy(&text, self.options.in_tmux),
                Effect::Ring => self.screen.ring(),
                Effect::Desktop(text) => self.screen.announce(&text),
                Effect::Redraw => {
                    self.screen.redraw();
                    Ok(())
                }
                Effect::Suspend => self.lend(Screen::suspend),
                Effect::Edit(text) => {
                    let editor = self.options.editor.clone();
                    let edited = self.lend(|screen| screen.lend(|| editor::edit(&editor, &text)));
                    let event = match edited {
                        Ok(edited) => Event::Edited(edited),
                        Err(error) => Event::Edited(Err(error.to_string())),
                    };
                    let more = update(state, event, store.now());
                    self.perform_plain(more, engine, store);
                    Ok(())
                }
                other => {
                    self.perform_plain(vec![other], engine, store);
                    Ok(())
                }
            };
            if let Err(error) = trouble {
                let words = format!("the terminal did not take it: {error}");
                state.toasts.push(Tone::Warning, &words, store.now().at);
            }
        }
    }

    /// Stops reading the keyboard while `work` (editor, shell) uses the terminal.
    fn lend<T>(&mut self, work: impl FnOnce(&mut Screen) -> T) -> T {
        self.events = None;
        let done = work(&mut self.screen);
        self.events = Some(EventStream::new());
        done
    }
}

/// Sends requests to the store service and its answers to the event loop.
struct StoreClient {
    store_service: StoreService,
    answered: mpsc::UnboundedSender<Answer>,
    /// Requests that write a file and are not finished yet.
    writing: RefCell<Vec<tokio::task::JoinHandle<()>>>,
}

impl StoreClient {
    fn now(&self) -> Now {
        Now {
            at: self.store_service.now(),
            tick: Instant::now(),
        }
    }

    fn ask(&self, request: super::store_service::Request) {
        let (store_service, answered) = (self.store_service.clone(), self.answered.clone());
        let writes = matches!(request, super::store_service::Request::Remember(_));
        let runtime = tokio::runtime::Handle::current();
        // Decoding a log would hold up the event loop, so the answer is made on a blocking thread.
        let work = tokio::task::spawn_blocking(move || {
            let answer = runtime.block_on(store_service.answer(request));
            // The receiver is gone if the user has left: no answer needed.
            let _ = answered.send(answer);
        });
        if writes {
            let mut writing = self.writing.borrow_mut();
            writing.retain(|work| !work.is_finished());
            writing.push(work);
        }
    }

    /// Waits until prompts are in the history file: a runtime that shuts down drops blocking work
    /// that has not started.
    async fn finish_writing(&self) {
        for work in self.writing.take() {
            let _ = tokio::time::timeout(WRITING, work).await;
        }
    }
}

/// Prepares the next session. On failure, returns to the previous session and shows the error.
async fn arrive(
    preparation: &Preparation,
    next: TuiResult<Next>,
    back: Next,
) -> TuiResult<(Source, Arrival)> {
    let error = match next {
        Ok(next) => match preparation.prepare(&next).await {
            Ok(source) => return Ok((source, Arrival::at(&next, back))),
            Err(error) => error,
        },
        Err(error) => error,
    };
    let source = preparation.prepare(&back).await?;
    let arrival = Arrival {
        failure: Some(error),
        ..Arrival::default()
    };
    Ok((source, arrival))
}

/// How the screen gets to a session: scroll position, draft, error and previous session.
#[derive(Debug)]
struct Arrival {
    first: bool,
    at: Option<tertulia_core::id::Seq>,
    draft: Option<String>,
    /// Whether the draft is sent at once.
    sends: bool,
    failure: Option<TuiError>,
    from: Option<Next>,
}

impl Default for Arrival {
    fn default() -> Arrival {
        Arrival {
            first: true,
            at: None,
            draft: None,
            sends: false,
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
        let if_open = match next {
            Next::Resume { if_open, .. } => *if_open,
            _ => IfOpen::Ask,
        };
        Arrival {
            first: false,
            at,
            draft,
            sends: if_open == IfOpen::Fork,
            failure: None,
            from: Some(from),
        }
    }

    fn is_first(&self) -> bool {
        self.first
    }
}

/// Whether the drawn frame matches the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FrameState {
    /// The frame matches the state.
    Fresh,
    /// The frame is outdated: redraw when the next frame is due.
    Stale,
    /// The frame is outdated after user input: redraw at once.
    Urgent,
}

impl FrameState {
    fn after(self, event: &Event) -> FrameState {
        let needed = match event {
            Event::Key(_) | Event::Paste(_) | Event::Mouse(_) => FrameState::Urgent,
            _ => FrameState::Stale,
        };
        self.max(needed)
    }
}

/// Returns the next terminal event. A closed terminal yields [`Event::Unplugged`] once.
async fn next_input(events: &mut Option<EventStream>) -> Event {
    let Some(stream) = events else {
        return std::future::pending().await;
    };
    loop {
        match stream.next().await {
            Some(Ok(input)) => {
                if let Some(event) = translate(input) {
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

/// Adds the terminal events that are already available, so that many keys at once, such as a paste
/// without bracketed paste, need a single frame.
fn with_more(first: Event) -> Vec<Event> {
    let mut all = vec![first];
    // `EventStream` reads only while it is polled, so reading directly is safe here.
    while all.len() < MOST_AT_ONCE && crossterm::event::poll(A_GLANCE).unwrap_or(false) {
        match crossterm::event::read() {
            Ok(input) => all.extend(translate(input)),
            // The stream will report the same error.
            Err(_) => break,
        }
    }
    all
}

/// Translates a crossterm event, or returns `None` for an event that the TUI ignores.
fn translate(input: Input) -> Option<Event> {
    Some(match input {
        Input::Key(key) => Event::Key(key),
        Input::Paste(text) => Event::Paste(text),
        Input::Mouse(mouse) if mouse.kind == MouseEventKind::Moved => return None,
        Input::Mouse(mouse) => Event::Mouse(mouse),
        Input::Resize(columns, rows) => Event::Resize(Size::new(columns, rows)),
        Input::FocusGained => Event::Focus(true),
        Input::FocusLost => Event::Focus(false),
    })
}
