//! A session that another program writes to, read along on the screen: its log is looked at from time
//! to time.

use std::time::Duration;

use tertulia_core::session::SessionMeta;
use tertulia_engine::event::{SessionEnd, SessionEvent, Tone};
use tertulia_engine::following::{Changes, Following};
use tertulia_store::{Sessions, StoreResult};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::event_queue::EventQueue;
use super::live::{LiveCommand, LiveEvent};

/// Pause between looks.
const LOOK: Duration = Duration::from_millis(300);
/// Pause after a look that failed.
const TROUBLE: Duration = Duration::from_secs(5);

/// A session that is read along.
#[derive(Debug)]
pub struct Follower {
    events: EventQueue<LiveEvent>,
    leave: CancellationToken,
    task: JoinHandle<()>,
}

impl Follower {
    /// Follows a session from the end of `meta`.
    pub fn start(sessions: Sessions, meta: SessionMeta, events: EventQueue<LiveEvent>) -> Follower {
        let leave = CancellationToken::new();
        let following = Following::new(sessions, meta);
        let task = tokio::spawn(follow(following, events.clone(), leave.clone()));
        Follower {
            events,
            leave,
            task,
        }
    }

    /// Returns the queue of events.
    pub fn events(&self) -> &EventQueue<LiveEvent> {
        &self.events
    }

    /// Executes a command: the session can only be left.
    pub fn command(&self, command: &LiveCommand) {
        match command {
            LiveCommand::Leave | LiveCommand::End => self.leave.cancel(),
            LiveCommand::KeepDraft(_) => {}
            LiveCommand::Say(_)
            | LiveCommand::Queue { .. }
            | LiveCommand::EditQueued { .. }
            | LiveCommand::Withdraw { .. }
            | LiveCommand::Run(_)
            | LiveCommand::As(_)
            | LiveCommand::Switch(_)
            | LiveCommand::Compact => {
                let text = "this session is only read here".to_owned();
                let notice = SessionEvent::notice(Tone::Warning, text);
                self.events.push(LiveEvent::Session(notice));
                self.events.push(LiveEvent::Refused);
            }
        }
    }

    /// Waits for the task to end, after [`LiveEvent::Gone`].
    pub async fn join(self) {
        // A panic in it was told when it happened.
        let _ = self.task.await;
    }
}

/// Looks at the session until it is left.
async fn follow(mut following: Following, events: EventQueue<LiveEvent>, leave: CancellationToken) {
    let floor = Box::new(following.state());
    events.push(LiveEvent::Session(SessionEvent::Opened { floor }));
    let mut was_open = true;
    let mut trouble = None;
    loop {
        let pause = match following.changes().await {
            Ok(changes) => {
                trouble = None;
                let holder = holder(&following, &changes, was_open).await;
                was_open = changes.is_open;
                for event in changes.events {
                    events.push(LiveEvent::Session(event));
                }
                if let Ok(Some(holder)) = holder {
                    events.push(LiveEvent::Holder(holder));
                }
                LOOK
            }
            Err(error) => {
                let text = format!("cannot read the session: {error}");
                if trouble.as_ref() != Some(&text) {
                    let notice = SessionEvent::notice(Tone::Warning, text.clone());
                    events.push(LiveEvent::Session(notice));
                }
                trouble = Some(text);
                TROUBLE
            }
        };
        tokio::select! {
            () = leave.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    events.push(LiveEvent::Gone(SessionEnd::default()));
}

/// Returns who has the session open, if that has changed.
async fn holder(
    following: &Following,
    changes: &Changes,
    was_open: bool,
) -> StoreResult<Option<Option<String>>> {
    match (was_open, changes.is_open) {
        (true, false) => Ok(Some(None)),
        (false, true) => following.holder().await.map(Some),
        _ => Ok(None),
    }
}
