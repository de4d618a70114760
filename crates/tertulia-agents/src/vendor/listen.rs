//! Consumes a program's output: forwards its events, asks the user about permission requests, and
//! ends the program after its last event.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::lines::{LONGEST, Lines, TooLong};
use super::permission::{self, Control, PermissionRequest};
use super::reading::Reader;
use super::refusal::Refusals;
use crate::approval::Verdict;
use crate::process::Hold;
use crate::{AgentError, AgentSink, FailureKind};

/// The user's future answer.
type Answer = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// Consumer of a program's output for one turn.
pub(super) struct OutputReader<'a> {
    pub(super) reader: &'a mut Reader,
    pub(super) sink: &'a AgentSink,
    pub(super) refusals: Refusals,
    pub(super) permissions: PermissionQueue,
    /// Ends the program.
    pub(super) stop: &'a CancellationToken,
}

impl OutputReader<'_> {
    /// Reads until the output ends, or until the program has stayed too long after its last event;
    /// then it is ended.
    pub(super) async fn read_all(
        mut self,
        mut received: mpsc::Receiver<Vec<u8>>,
    ) -> Result<(), AgentError> {
        let mut lines = Lines::default();
        let mut due = None;
        loop {
            let asking = self.permissions.asked.is_some();
            let chunk = tokio::select! {
                // First, so that a program that keeps writing is ended too.
                biased;
                () = reached(due) => {
                    self.stop.cancel();
                    return Ok(());
                }
                verdict = self.permissions.verdict(), if asking => {
                    self.permissions.settle(verdict, self.sink).await;
                    continue;
                }
                chunk = received.recv() => chunk,
            };
            let Some(chunk) = chunk else {
                return self.hand_on(&[lines.finish()]).await;
            };
            let done = match lines.push(&chunk) {
                Ok(lines) => self.hand_on(&lines).await,
                Err(TooLong) => Err(AgentError::new(
                    FailureKind::Protocol,
                    format!("it printed a line of more than {LONGEST} bytes"),
                )),
            };
            if done.is_err() {
                self.stop.cancel();
                return done;
            }
            if let Some(linger) = self.reader.over() {
                self.permissions.close();
                due = due.or_else(|| Some(Instant::now() + linger));
            } else {
                due = None;
            }
        }
    }

    async fn hand_on(&mut self, lines: &[String]) -> Result<(), AgentError> {
        for line in lines {
            for event in self.reader.line(line) {
                let event = self.refusals.mark(event);
                self.sink.say(event).await?;
            }
            for control in self.reader.controls() {
                self.permissions.take(control, self.sink).await;
            }
        }
        Ok(())
    }
}

async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

/// Queue of permission requests, which are answered one after the other.
pub(super) struct PermissionQueue {
    /// Standard input of the program, as long as it takes answers.
    answers: Option<mpsc::Sender<Vec<u8>>>,
    /// Pauses the time limits: the time in which the user decides does not count.
    hold: Hold,
    /// The request that the user is asked about, and the ones that came after it.
    asked: Option<(PermissionRequest, Answer)>,
    waiting: VecDeque<PermissionRequest>,
}

impl PermissionQueue {
    /// Creates a queue that writes to `answers`, if the program takes answers; `hold` pauses its
    /// clock.
    pub(super) fn new(answers: Option<mpsc::Sender<Vec<u8>>>, hold: Hold) -> PermissionQueue {
        PermissionQueue {
            answers,
            hold,
            asked: None,
            waiting: VecDeque::new(),
        }
    }

    async fn take(&mut self, control: Control, sink: &AgentSink) {
        match control {
            Control::Permission(request) => self.waiting.push_back(*request),
            Control::Withdrawn(id) => {
                self.waiting.retain(|request| request.id != id);
                if self
                    .asked
                    .as_ref()
                    .is_some_and(|(request, _)| request.id == id)
                {
                    self.asked = None;
                }
            }
            Control::Other(id) => self.send(permission::not_done(&id)).await,
        }
        self.next(sink);
    }

    /// Asks the user about the next request, unless one is pending.
    fn next(&mut self, sink: &AgentSink) {
        if self.asked.is_none()
            && self.answers.is_some()
            && let Some(next) = self.waiting.pop_front()
        {
            let (sink, request) = (sink.clone(), next.request.clone());
            let answer: Answer = Box::pin(async move { sink.ask(request).await });
            self.asked = Some((next, answer));
        }
        self.hold.set(self.asked.is_some());
    }

    async fn verdict(&mut self) -> Verdict {
        match &mut self.asked {
            Some((_, answer)) => answer.as_mut().await,
            None => pending().await,
        }
    }

    async fn settle(&mut self, verdict: Verdict, sink: &AgentSink) {
        if let Some((request, _)) = self.asked.take() {
            self.hold.set(false);
            self.send(request.answer(&verdict)).await;
        }
        self.next(sink);
    }

    async fn send(&mut self, line: String) {
        if let Some(answers) = &self.answers {
            // Fails if the program has ended, which shows in its output.
            let _ = answers.send(line.into_bytes()).await;
        }
    }

    /// Closes the program's input: no more requests are answered.
    fn close(&mut self) {
        (self.answers, self.asked) = (None, None);
        self.waiting.clear();
        self.hold.set(false);
    }
}
