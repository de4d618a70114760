//! One prompt and its answer: forwards updates, and asks the user about permission requests.

use std::collections::{BTreeSet, VecDeque};
use std::future::pending;
use std::pin::Pin;

use agent_client_protocol::v1::Responder;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::failure;
use super::live::{Incoming, Live, Unanswered};
use super::permission;
use super::updates::{self, Updates};
use super::watch::{End, Lost, Watch};
use crate::approval::{Approval, Risk, ToolRequest, Verdict};
use crate::{AgentError, AgentEvent, Outcome, denial};
use tertulia_core::entry::Usage;

/// A permission request that waits for its answer.
struct PendingPermission {
    request: ToolRequest,
    /// Kind of the tool.
    kind: String,
    options: Value,
    responder: Box<Responder<Value>>,
}

/// The user's future answer.
type Answer = Pin<Box<dyn Future<Output = Verdict> + Send>>;

struct Turn<'a> {
    live: &'a Live,
    watch: &'a Watch<'a>,
    session: &'a str,
    policy: Policy,
    updates: Updates,
    /// A tool that ran although it needs permission, and none was requested.
    unasked: Option<String>,
    /// The request that the user is asked about, and the ones that came after it.
    asked: Option<(PendingPermission, Answer)>,
    waiting: VecDeque<PendingPermission>,
    refused: bool,
    /// What the user wants instead of denied tools. The protocol has no place for it in the answer to
    /// a permission request, so it is the next prompt.
    instead: Vec<String>,
    spent: Option<Usage>,
    /// Deadline for the agent to stop, once it was cancelled.
    stop_by: Option<Instant>,
    /// Silence before this moment does not count against the agent.
    since: Instant,
}

/// What an agent may do without asking.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// The tool policy.
    pub(super) approval: Approval,
    /// Kinds of tools that this agent runs unasked, and may.
    pub(super) free: &'static [&'static str],
    /// Kinds of tools that it was told to run unasked earlier.
    pub(super) always: BTreeSet<String>,
}

impl Policy {
    /// Returns whether a tool of this kind needs a permission request.
    fn needs_asking(&self, kind: &str) -> bool {
        match self.approval {
            Approval::All => false,
            Approval::None => true,
            _ => {
                let is_free = self.free.contains(&kind) || self.always.contains(kind);
                permission::risk(kind) != Risk::Low && !is_free
            }
        }
    }
}

/// How a prompt ended.
pub(super) struct Prompted {
    pub(super) end: Result<Outcome, End>,
    /// Whether the agent has sent any text or tool call.
    pub(super) heard: bool,
    /// Kinds of tools that it was told to run unasked from now on.
    pub(super) always: BTreeSet<String>,
    /// Usage of the answer, if it was told.
    pub(super) usage: Option<Usage>,
}

impl Prompted {
    /// The end of a prompt that was not answered.
    pub(super) fn ended(end: End) -> Prompted {
        Prompted {
            end: Err(end),
            heard: true,
            always: BTreeSet::new(),
            usage: None,
        }
    }
}

/// Sends the prompt and forwards updates until the agent has ended its answer. What the user wants
/// instead of a denied tool is sent as another prompt.
pub(super) async fn prompt(
    live: &Live,
    watch: &Watch<'_>,
    session: &str,
    words: String,
    policy: Policy,
) -> Prompted {
    let mut turn = Turn {
        live,
        watch,
        session,
        policy,
        updates: Updates::default(),
        unasked: None,
        asked: None,
        waiting: VecDeque::new(),
        refused: false,
        instead: Vec::new(),
        spent: None,
        stop_by: None,
        since: Instant::now(),
    };
    let mut incoming = live.listen();
    let mut words = words;
    loop {
        let told = match turn.answered(words, &mut incoming).await {
            Ok(told) => told,
            Err(lost) => return Prompted::ended(End::Lost(lost)),
        };
        match turn.next_prompt(&told).await {
            Some(next) => words = next,
            None => {
                if let Ok(told) = &told {
                    turn.count(told);
                }
                return Prompted {
                    usage: turn.spent,
                    heard: turn.updates.heard(),
                    always: std::mem::take(&mut turn.policy.always),
                    end: turn.end(told).await,
                };
            }
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

impl Turn<'_> {
    /// Sends one prompt and forwards updates until the agent responds.
    async fn answered(
        &mut self,
        words: String,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) -> Result<Result<Value, Unanswered>, Lost> {
        let (live, watch) = (self.live, self.watch);
        let params = json!({
            "sessionId": self.session, "prompt": [{ "type": "text", "text": words }],
        });
        let reply = live.ask("session/prompt", params);
        tokio::pin!(reply);
        let told = loop {
            let (asking, stop_by, since) = (self.asked.is_some(), self.stop_by, self.since);
            let stopping = stop_by.is_some();
            self.check_asked()?;
            tokio::select! {
                // Limits first: an agent that never stops sending must not outrun them.
                biased;
                () = watch.sink.cancel().cancelled(), if !stopping => self.stop(),
                () = until(stop_by) => return Err(Lost::Cancelled),
                () = watch.total(), if !stopping => {
                    return Err(Lost::Total(watch.patience.total));
                }
                verdict = self.verdict(), if asking => self.settle(verdict),
                Some(item) = incoming.recv() => self.take(item).await,
                told = &mut reply => break told,
                () = live.silent(since, watch.patience.idle), if !asking && !stopping => {
                    return Err(Lost::Idle(watch.patience.idle));
                }
            }
        };
        // Messages that came before the response belong to the answer.
        while let Ok(item) = incoming.try_recv() {
            self.take(item).await;
        }
        self.check_asked()?;
        Ok(told)
    }

    /// Stops the agent if it ran a tool that it had to ask for.
    fn check_asked(&mut self) -> Result<(), Lost> {
        let Some(tool) = self.unasked.take() else {
            return Ok(());
        };
        self.stop();
        Err(Lost::Unasked(tool))
    }

    /// Returns the prompt that follows a response: what the user wants instead of denied tools.
    async fn next_prompt(&mut self, told: &Result<Value, Unanswered>) -> Option<String> {
        let words = std::mem::take(&mut self.instead);
        let is_over = self.stop_by.is_some() || self.updates.broken().is_some();
        let told = told
            .as_ref()
            .ok()
            .filter(|_| !is_over && !words.is_empty())?;
        self.cancel_requests();
        self.refused = false;
        self.count(told);
        let denied = self.updates.denied();
        self.updates.part();
        self.say(denied).await;
        Some(words.join("\n\n"))
    }

    /// Adds the usage of a response.
    fn count(&mut self, told: &Value) {
        if let Some(usage) = updates::usage(told) {
            self.spent = Some(self.spent.unwrap_or_default().plus(usage));
        }
    }

    async fn take(&mut self, item: Incoming) {
        let (Incoming::Update(params) | Incoming::Permission(params, _)) = &item;
        let ours = params["sessionId"] == self.session;
        match item {
            Incoming::Update(params) if ours => {
                let events = self.updates.hear(&params["update"]);
                self.say(events).await;
                let unasked = self.updates.unasked().into_iter();
                let mut unasked = unasked.filter(|call| self.policy.needs_asking(&call.kind));
                let tool = unasked.next().map(|call| call.tool);
                self.unasked = self.unasked.take().or(tool);
            }
            Incoming::Permission(params, responder) if ours && self.stop_by.is_none() => {
                let (id, call, events) = self.updates.asked(&params["toolCall"]);
                self.say(events).await;
                self.waiting.push_back(PendingPermission {
                    request: permission::request(&id, &call),
                    kind: call.kind,
                    options: params["options"].clone(),
                    responder,
                });
                self.next();
            }
            Incoming::Permission(_, responder) => respond(responder, permission::cancelled()),
            // An update of another session is ignored.
            Incoming::Update(_) => {}
        }
    }

    /// Hands the next waiting request to the session, which decides by the permissions of this
    /// moment: they may change while the agent answers.
    fn next(&mut self) {
        if self.asked.is_none()
            && let Some(pending) = self.waiting.pop_front()
        {
            let (sink, request) = (self.watch.sink.clone(), pending.request.clone());
            let asking: Answer = Box::pin(async move { sink.ask(request).await });
            self.asked = Some((pending, asking));
        }
    }

    async fn verdict(&mut self) -> Verdict {
        match &mut self.asked {
            Some((_, asking)) => asking.as_mut().await,
            None => pending().await,
        }
    }

    fn settle(&mut self, verdict: Verdict) {
        self.since = Instant::now();
        if let Some((pending, _)) = self.asked.take() {
            self.answer(pending, verdict);
        }
        self.next();
    }

    fn answer(&mut self, pending: PendingPermission, verdict: Verdict) {
        if !verdict.allows() {
            self.refused = true;
            let reason = verdict.reason();
            self.instead.extend(reason.map(str::to_owned));
            let reason = reason.map(denial);
            self.updates.deny(&pending.request.call.id, reason);
        }
        let answer = permission::answer(&pending.options, &verdict);
        if permission::is_for_good(&pending.options, &answer) {
            self.policy.always.insert(pending.kind);
        }
        respond(pending.responder, answer);
    }

    /// Cancels the agent's turn. Waiting permission requests are answered as cancelled.
    fn stop(&mut self) {
        self.stop_by = Some(Instant::now() + self.watch.grace);
        self.live
            .tell("session/cancel", json!({ "sessionId": self.session }));
        self.cancel_requests();
    }

    fn cancel_requests(&mut self) {
        let asked = self.asked.take().map(|(pending, _)| pending);
        for pending in asked.into_iter().chain(self.waiting.drain(..)) {
            respond(pending.responder, permission::cancelled());
        }
    }

    async fn say(&mut self, events: Vec<AgentEvent>) {
        for event in events {
            let said = match self.stop_by {
                // The agent's remaining output is forwarded, but only until the deadline.
                Some(at) => timeout_at(at, self.watch.sink.say(event)).await.is_ok(),
                None => self.watch.say(event).await.is_ok(),
            };
            if !said && self.stop_by.is_none() {
                self.stop();
            }
        }
        // Time in which the consumer was busy is not the agent's silence.
        self.since = Instant::now();
    }

    async fn end(mut self, told: Result<Value, Unanswered>) -> Result<Outcome, End> {
        self.cancel_requests();
        let stopped = self.stop_by.is_some();
        let told = match told {
            Ok(told) => told,
            Err(Unanswered::Gone) if !stopped => return Err(End::Lost(Lost::Gone)),
            Err(Unanswered::Gone) => return Err(End::Lost(Lost::Cancelled)),
            Err(Unanswered::Told(_)) if stopped => {
                return Err(End::Told(AgentError::cancelled()));
            }
            Err(Unanswered::Told(error)) => return Err(End::Told(error)),
        };
        let usage = self.spent.map(AgentEvent::Usage);
        let reason = told["stopReason"].as_str().unwrap_or_default();
        let turn = failure::Turn {
            stopped,
            refused: self.refused,
            broken: self.updates.broken(),
        };
        let (remark, outcome) = failure::stop(reason, turn);
        let denied = self.updates.denied().into_iter();
        self.say(denied.chain(usage).chain(remark).collect()).await;
        outcome.map_err(End::Told)
    }
}

fn respond(responder: Box<Responder<Value>>, answer: Value) {
    // The prompt that waits for the agent fails if the agent is gone.
    let _ = responder.respond(answer);
}
