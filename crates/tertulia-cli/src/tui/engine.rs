//! The talk beside the screen: it runs on a thread of its own and speaks to the screen in data, so that
//! drawing waits neither for an agent nor for a disk.

use std::thread::JoinHandle;

use async_trait::async_trait;
use tertulia::agent::{AgentError, AgentEvent};
use tertulia::approval::{ToolRequest, Verdict};
use tertulia::conversation::chat::TurnEnd;
use tertulia::conversation::door::{Door, TalkEvent};
use tertulia::conversation::pair::PairEvent;
use tertulia::conversation::run::{Compaction, Talk};
use tertulia::conversation::table::{Round, Table};
use tertulia::conversation::team::events::{Output as Routed, SenderError};
use tertulia::entry::{Entry, Message, Speaker};
use tertulia::session::Summary;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::item::Tone;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::talk::notice;

/// What the screen wants of the talk.
#[derive(Debug)]
pub enum Order {
    /// Somebody says something; in a team as this member, if that is not for the words to say.
    Say {
        /// The words.
        words: String,
        /// The member.
        seat: Option<String>,
    },
    /// Sum up the older part.
    Compact,
    /// End what is running and leave.
    Leave,
}

/// What happened in the talk.
#[derive(Debug)]
pub enum News {
    /// An agent said or did something.
    Heard(AgentEvent),
    /// An entry is durable now.
    Durable(Box<Entry>),
    /// A message is said and held in memory.
    Held(Box<Message>),
    /// Somebody of several is asked now.
    Asked(Speaker),
    /// Somebody of several could not answer.
    Failed(Speaker, AgentError),
    /// What followed from what was said among several.
    Routed(Routed),
    /// What followed between an instructor and a worker.
    Pair(PairEvent),
    /// Something that the person should know.
    Notice(Tone, String),
    /// Whether a tool may be used.
    MayI(Box<ToolRequest>, oneshot::Sender<Verdict>),
    /// The turn is over, and the session is like this.
    Over(Over, Option<Box<Summary>>),
    /// The talk has ended; nothing follows.
    Gone {
        /// Whether something could not be saved.
        unsaved: bool,
    },
}

/// How a turn ended.
#[derive(Debug)]
pub enum Over {
    /// One agent's.
    Chat(TurnEnd),
    /// A team's.
    Team(Round),
    /// It is not known who spoke.
    Who(SenderError),
    /// The older part was summed up, or not.
    Compacted(Compaction),
}

/// A talk of any kind.
#[derive(Debug)]
pub enum Conversation {
    /// One agent.
    Chat(Box<Talk>),
    /// A team.
    Team(Box<Table>),
}

impl Conversation {
    /// The talk under it.
    pub fn talk(&self) -> &Talk {
        match self {
            Conversation::Chat(talk) => talk,
            Conversation::Team(table) => table.talk(),
        }
    }

    async fn say(
        &mut self,
        words: String,
        seat: Option<&str>,
        door: &mut Messenger,
        cancel: &CancellationToken,
    ) -> Over {
        match self {
            Conversation::Chat(talk) => Over::Chat(talk.turn(words, door, cancel).await),
            Conversation::Team(table) => match table.turn(seat, words, door, cancel).await {
                Ok(round) => Over::Team(round),
                Err(error) => Over::Who(error),
            },
        }
    }

    async fn compact(&mut self, door: &mut Messenger, cancel: &CancellationToken) -> Over {
        Over::Compacted(match self {
            Conversation::Chat(talk) => talk.compact(door, cancel).await,
            Conversation::Team(_) => Compaction::Nothing,
        })
    }

    async fn leave(&self) {
        match self {
            Conversation::Chat(talk) => talk.leave().await,
            Conversation::Team(table) => table.leave().await,
        }
    }
}

/// The door through which the talk speaks to the screen.
#[derive(Debug)]
pub struct Messenger {
    news: mpsc::UnboundedSender<News>,
}

impl Messenger {
    fn send(&self, news: News) {
        // A screen that is gone needs no news; the talk is durable without it.
        let _ = self.news.send(news);
    }
}

#[async_trait]
impl Door for Messenger {
    fn show(&mut self, event: TalkEvent<'_>) {
        self.send(match event {
            TalkEvent::Heard(event) => News::Heard(event.clone()),
            TalkEvent::Durable(entry) => News::Durable(Box::new(entry.clone())),
            TalkEvent::Held(message) => News::Held(Box::new(message.clone())),
            TalkEvent::Asked(speaker) => News::Asked(speaker.clone()),
            TalkEvent::Failed(speaker, error) => News::Failed(speaker.clone(), error.clone()),
            TalkEvent::Routed(output) => News::Routed(output.clone()),
            TalkEvent::Pair(event) => News::Pair(event.clone()),
            TalkEvent::Notice(told) => {
                let tone = if notice::is_warning(&told) {
                    Tone::Warning
                } else {
                    Tone::Note
                };
                News::Notice(tone, notice::words(&told))
            }
        });
    }

    async fn approve(&mut self, request: &ToolRequest) -> Verdict {
        let (answer, verdict) = oneshot::channel();
        self.send(News::MayI(Box::new(request.clone()), answer));
        // A screen that is gone allows nothing.
        verdict.await.unwrap_or(Verdict::No)
    }
}

/// The engine as the screen holds it.
#[derive(Debug)]
pub struct Engine {
    orders: mpsc::UnboundedSender<Order>,
    /// What happened.
    pub news: mpsc::UnboundedReceiver<News>,
    cancel: std::sync::Arc<std::sync::Mutex<CancellationToken>>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts the thread. `open` begins or resumes the talk on it, and tells the screen what there is to
    /// tell; `close` says farewell and tells whether something could not be saved.
    pub fn start<O, C>(open: O, close: C) -> CommandResult<Engine>
    where
        O: AsyncFnOnce(&mut Messenger) -> CommandResult<Conversation> + Send + 'static,
        C: AsyncFnOnce(&Talk) -> bool + Send + 'static,
    {
        let (orders, taken) = mpsc::unbounded_channel();
        let (told, news) = mpsc::unbounded_channel();
        let cancel = std::sync::Arc::new(std::sync::Mutex::new(CancellationToken::new()));
        let shared = cancel.clone();
        let failed = |error: std::io::Error| {
            CommandError::new(ErrorKind::Failed, "the talk cannot be started").because(error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name("talk".into())
            .spawn(move || {
                let messenger = Messenger { news: told };
                runtime.block_on(serve(open, close, taken, messenger, &shared));
                runtime.shutdown_timeout(std::time::Duration::from_secs(1));
            })
            .map_err(failed)?;
        Ok(Engine {
            orders,
            news,
            cancel,
            thread: Some(thread),
        })
    }

    /// Gives an order.
    pub fn order(&self, order: Order) {
        // An engine that is gone has said so.
        let _ = self.orders.send(order);
    }

    /// Stops whoever is answering.
    pub fn cancel(&self) {
        locked(&self.cancel).cancel();
    }

    /// Waits for the thread to end, after [`Order::Leave`].
    pub fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn locked(
    cancel: &std::sync::Mutex<CancellationToken>,
) -> std::sync::MutexGuard<'_, CancellationToken> {
    cancel
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

async fn serve<O, C>(
    open: O,
    close: C,
    mut orders: mpsc::UnboundedReceiver<Order>,
    mut door: Messenger,
    cancel: &std::sync::Mutex<CancellationToken>,
) where
    O: AsyncFnOnce(&mut Messenger) -> CommandResult<Conversation>,
    C: AsyncFnOnce(&Talk) -> bool,
{
    let mut conversation = match open(&mut door).await {
        Ok(conversation) => conversation,
        Err(error) => {
            door.send(News::Notice(Tone::Error, error.words()));
            door.send(News::Gone { unsaved: false });
            return;
        }
    };
    loop {
        let order = orders.recv().await.unwrap_or(Order::Leave);
        // What was stopped before does not stop what comes now.
        let token = {
            let mut held = locked(cancel);
            if held.is_cancelled() {
                *held = CancellationToken::new();
            }
            held.clone()
        };
        let over = match order {
            Order::Leave => break,
            Order::Say { words, seat } => {
                conversation
                    .say(words, seat.as_deref(), &mut door, &token)
                    .await
            }
            Order::Compact => conversation.compact(&mut door, &token).await,
        };
        let summary = conversation.talk().recorder().summary();
        let summary = summary.map(|summary| Box::new(summary.clone()));
        door.send(News::Over(over, summary));
    }
    conversation.leave().await;
    let unsaved = close(conversation.talk()).await;
    door.send(News::Gone { unsaved });
}
