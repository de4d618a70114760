//! The talk beside the screen: it runs on a thread of its own and speaks to the screen in data, so that
//! drawing waits neither for an agent nor for a disk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use tertulia_agents::AgentEvent;
use tertulia_agents::approval::{PermissionChange, Permissions, ToolRequest, Verdict};
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::team::markers::Unmarked;
use tertulia_engine::frontend::{Frontend, Notice, TalkEvent};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::floor;
use super::item::Tone;
use super::mailbox::Mailbox;
use super::news::{Farewell, News, Order, Ticket};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::talk::conversation::Conversation;
use crate::talk::opening::{Cast, Opening, StartedFrontend};
use crate::talk::{self, LEAVE_WITHIN, Leaving, notice};
use crate::ui::Ui;

/// An order, and what stops it.
type Given = (Order, CancellationToken);

/// A question, and where its answer goes.
type Asked = (Ticket, oneshot::Sender<Verdict>);

/// The engine as the screen holds it.
#[derive(Debug)]
pub struct Engine {
    orders: mpsc::UnboundedSender<Given>,
    news: Mailbox<News>,
    strings: Strings,
    permissions: Permissions,
    thread: Option<JoinHandle<()>>,
}

/// What reaches a talk from outside while it answers.
#[derive(Clone, Debug, Default)]
struct Strings {
    /// Stops whoever is answering now.
    cancel: Arc<Mutex<CancellationToken>>,
    /// Drops the answer and everything after it.
    insist: CancellationToken,
    /// Where the person's answer to the last question goes, and which question that is.
    verdict: Arc<Mutex<Option<Asked>>>,
}

impl Engine {
    /// Opens the talk on a thread of its own. What happens in it is put into the mailbox.
    pub fn start(opening: Opening, news: Mailbox<News>) -> CommandResult<Engine> {
        let (orders, taken) = mpsc::unbounded_channel();
        let strings = Strings::default();
        let runtime = talk::runtime()?;
        let permissions = opening.terms.rules.clone();
        news.post(News::Permissions(permissions.state()));
        let messenger = Messenger {
            news: news.clone(),
            strings: strings.clone(),
            kind: opening.cast.kind(),
            words: Unmarked::default(),
            ticket: 0,
            is_switch: opening.is_switch,
        };
        let thread = std::thread::Builder::new()
            .name("talk".into())
            .spawn(move || {
                let _last = LastWord(messenger.news.clone());
                runtime.block_on(serve(opening, taken, messenger));
                runtime.shutdown_timeout(LEAVE_WITHIN);
            })
            .map_err(|error| {
                CommandError::new(ErrorKind::Failed, "cannot start the session").because(error)
            })?;
        Ok(Engine {
            orders,
            news,
            strings,
            permissions,
            thread: Some(thread),
        })
    }

    /// What happened.
    pub fn news(&self) -> &Mailbox<News> {
        &self.news
    }

    /// Gives an order.
    pub fn order(&self, order: Order) {
        // What was stopped before does not stop what comes now, and what comes now can be stopped before it has
        // begun. Whoever leaves may still have somebody to stop.
        let cancel = CancellationToken::new();
        if order != Order::Leave {
            *locked(&self.strings.cancel) = cancel.clone();
        }
        // An engine that is gone has said so.
        let _ = self.orders.send((order, cancel));
    }

    /// Stops whoever is answering.
    pub fn cancel(&self) {
        locked(&self.strings.cancel).cancel();
    }

    /// Drops what is being answered: somebody will not wait. What was on the screen is in the draft.
    pub fn insist(&self) {
        self.strings.insist.cancel();
    }

    /// Answers a question, if it is still the last one: an answer must not reach what was asked after it.
    pub fn answer(&self, ticket: Ticket, verdict: Verdict) {
        let mut last = locked(&self.strings.verdict);
        if let Some((_, asked)) = last.take_if(|(asked, _)| *asked == ticket) {
            // Whoever asked may have been stopped meanwhile.
            let _ = asked.send(verdict);
        }
    }

    /// Changes the tool permissions, also while an agent answers.
    pub fn permit(&self, change: &PermissionChange) {
        self.permissions.change(change);
        self.news.post(News::Permissions(self.permissions.state()));
    }

    /// Waits for the thread to end, after [`News::Gone`].
    pub fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic on it was told when it happened.
            let _ = thread.join();
        }
    }
}

/// Tells that nothing follows, also after a panic: the screen must not wait for ever.
struct LastWord(Mailbox<News>);

impl Drop for LastWord {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = CommandError::new(
                ErrorKind::Failed,
                "internal error: the session task crashed",
            )
            .hint("every message is saved: `tertulia -c` continues the session");
            self.0.post(News::NotOpened(Box::new(error)));
            self.0.post(News::Gone(Farewell::default()));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The door through which the talk speaks to the screen.
struct Messenger {
    news: Mailbox<News>,
    strings: Strings,
    kind: Kind,
    /// What was held back of somebody's words because it may be a marker.
    words: Unmarked,
    /// Which question comes next.
    ticket: Ticket,
    /// Whether the session was only left for another model.
    is_switch: bool,
}

impl Messenger {
    fn heard(&mut self, event: &AgentEvent) -> News {
        match event {
            AgentEvent::Text(text) if self.kind == Kind::Team => News::Text(self.words.push(text)),
            AgentEvent::Text(text) => News::Text(text.clone()),
            AgentEvent::Reasoning(text) => News::Thought(text.clone()),
            event => News::Heard(event.clone()),
        }
    }
}

#[async_trait]
impl Frontend for Messenger {
    fn show(&mut self, event: TalkEvent<'_>) {
        let news = match event {
            TalkEvent::Heard(event) => self.heard(event),
            TalkEvent::Durable(entry) => News::Durable(Box::new(entry.clone())),
            TalkEvent::Held(message) => News::Held(Box::new(message.clone())),
            TalkEvent::Asked(speaker) => {
                self.words = Unmarked::default();
                News::Asked(speaker.clone())
            }
            TalkEvent::Failed(speaker, error) => News::Failed(speaker.clone(), error.clone()),
            TalkEvent::Routed(output) => News::Routed(output.clone()),
            TalkEvent::Pair(event) => News::Pair(event.clone()),
            TalkEvent::Permissions(state) => News::Permissions(state.clone()),
            TalkEvent::Notice(Notice::OtherModel { .. }) if self.is_switch => return,
            TalkEvent::Notice(told) => {
                let tone = match notice::is_warning(&told) {
                    true => Tone::Warning,
                    false => Tone::Note,
                };
                News::Notice(tone, notice::screen_words(&told))
            }
        };
        self.news.post(news);
    }

    async fn approve(&mut self, request: &ToolRequest) -> Verdict {
        let (answer, verdict) = oneshot::channel();
        self.ticket += 1;
        *locked(&self.strings.verdict) = Some((self.ticket, answer));
        let request = Box::new(request.clone());
        self.news.post(News::MayI(self.ticket, request));
        // A screen that is gone allows nothing.
        verdict.await.unwrap_or(Verdict::No)
    }
}

impl StartedFrontend for Messenger {
    fn started(&mut self, _: SessionId, _: Option<u64>) {
        // The floor tells.
    }
}

async fn serve(
    opening: Opening,
    mut orders: mpsc::UnboundedReceiver<Given>,
    mut frontend: Messenger,
) {
    let leaving = opening.leaving.clone();
    let mut seat = match &opening.cast {
        Cast::Team { seat, .. } => seat.clone(),
        Cast::Chat(_) | Cast::Pair { .. } => None,
    };
    let insist = frontend.strings.insist.clone();
    // Opening it may write, and a disk may take its time.
    let opened = tokio::select! {
        biased;
        () = insist.cancelled() => return frontend.news.post(News::Gone(Farewell::default())),
        opened = opening.open(&mut frontend) => opened,
    };
    let mut conversation = match opened {
        Ok(conversation) => conversation,
        Err(error) => {
            frontend.news.post(News::NotOpened(Box::new(error)));
            frontend.news.post(News::Gone(Farewell::default()));
            return;
        }
    };
    let floor = floor::of(&conversation, seat.as_deref(), false);
    frontend.news.post(News::Opened(Box::new(floor)));
    while let Some((order, cancel)) = orders.recv().await {
        let done = tokio::select! {
            biased;
            () = insist.cancelled() => break,
            done = carry_out(order, &mut conversation, &mut seat, &mut frontend, &cancel) => done,
        };
        match done {
            None => break,
            Some(failed) => {
                let floor = floor::of(&conversation, seat.as_deref(), failed);
                frontend.news.post(News::Over(Box::new(floor)));
            }
        }
    }
    if !frontend.strings.insist.is_cancelled() {
        conversation.leave().await;
    }
    let farewell = farewell(&mut conversation, &leaving).await;
    frontend.news.post(News::Gone(farewell));
}

/// Carries out an order. Whether somebody failed; nothing, if the talk is to be left.
async fn carry_out(
    order: Order,
    conversation: &mut Conversation,
    seat: &mut Option<String>,
    frontend: &mut Messenger,
    cancel: &CancellationToken,
) -> Option<bool> {
    match order {
        Order::Leave | Order::End => return None,
        Order::As(name) => {
            match conversation.seat_of(name.as_deref().unwrap_or_default()) {
                Ok(taken) => *seat = taken,
                Err(why) => frontend.news.post(News::Notice(Tone::Warning, why)),
            }
            return Some(false);
        }
        Order::Say(words) => {
            return Some(say(words, conversation, seat.as_deref(), frontend, cancel).await);
        }
        Order::Compact => {
            let news = frontend.news.clone();
            let compacted = conversation.compact(frontend, cancel).await;
            if let Some(words) = floor::not_compacted(compacted) {
                news.post(News::Notice(Tone::Note, words.to_owned()));
            }
        }
    }
    write_back(conversation, frontend).await;
    Some(false)
}

/// Says something, and tells how it ended. Whether somebody failed.
async fn say(
    words: String,
    conversation: &mut Conversation,
    seat: Option<&str>,
    frontend: &mut Messenger,
    cancel: &CancellationToken,
) -> bool {
    if let Err(error) = tertulia_store::check_message(&words) {
        let words = floor::sentence(&error.into());
        frontend.news.post(News::Notice(Tone::Error, words));
        return false;
    }
    let failed = match conversation.say(words, seat, frontend, cancel).await {
        Ok(turned) => {
            for (tone, words) in floor::endings(&turned, conversation) {
                frontend.news.post(News::Notice(tone, words));
            }
            turned.failure().is_some()
        }
        Err(error) => {
            frontend
                .news
                .post(News::Notice(Tone::Warning, error.to_string()));
            false
        }
    };
    write_back(conversation, frontend).await;
    failed
}

/// Writes the session back to the file that it came from.
async fn write_back(conversation: &Conversation, frontend: &mut Messenger) {
    if let Err(reason) = conversation.talk().writer().copy().await {
        let words = format!("saved, but not in the session file: {reason}");
        frontend.news.post(News::Notice(Tone::Warning, words));
    }
}

/// What is said and done at the end.
async fn farewell(conversation: &mut Conversation, leaving: &Leaving) -> Farewell {
    let mut ui = Ui::holding();
    if let Some(words) = conversation.unheard(leaving) {
        ui.note(&words);
    }
    let unsaved = leaving.farewell(conversation.talk_mut(), &mut ui).await;
    Farewell {
        unsaved,
        told: ui.take_held(),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use serde_json::json;
    use tertulia_agents::approval::Risk;
    use tertulia_core::entry::ToolCall;

    use super::*;

    fn engine() -> (Engine, Messenger, mpsc::UnboundedReceiver<Given>) {
        let (orders, taken) = mpsc::unbounded_channel();
        let (news, strings) = (Mailbox::default(), Strings::default());
        let messenger = Messenger {
            news: news.clone(),
            strings: strings.clone(),
            kind: Kind::Chat,
            words: Unmarked::default(),
            ticket: 0,
            is_switch: false,
        };
        let engine = Engine {
            orders,
            news,
            strings,
            permissions: Permissions::default(),
            thread: None,
        };
        (engine, messenger, taken)
    }

    fn request() -> ToolRequest {
        ToolRequest {
            call: ToolCall {
                id: "1".to_owned(),
                name: "shell".to_owned(),
                arguments: json!({}),
            },
            risk: Risk::High,
            preview: String::new(),
            key: "shell".to_owned(),
        }
    }

    #[test]
    fn an_answer_reaches_only_what_it_was_given_to() {
        let (engine, mut messenger, _orders) = engine();
        // The first question is not waited for any more.
        assert_eq!(messenger.approve(&request()).now_or_never(), None);
        let request = request();
        let mut second = messenger.approve(&request);
        assert_eq!((&mut second).now_or_never(), None);
        engine.answer(1, Verdict::Yes);
        assert_eq!((&mut second).now_or_never(), None);
        engine.answer(2, Verdict::No);
        assert_eq!(second.now_or_never(), Some(Verdict::No));
    }

    #[test]
    fn what_has_not_begun_can_be_stopped() {
        let (engine, _messenger, mut orders) = engine();
        let mut given = |order| {
            engine.order(order);
            orders.try_recv().unwrap().1
        };
        let first = given(Order::Compact);
        engine.cancel();
        assert!(first.is_cancelled());
        // What comes after it is not.
        let second = given(Order::Say("next".to_owned()));
        assert!(!second.is_cancelled());
        // Who leaves stops it, however late.
        let _ = given(Order::Leave);
        engine.cancel();
        assert!(second.is_cancelled());
    }
}
