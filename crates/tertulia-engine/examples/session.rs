//! Drives a session with an agent of its own: asks, prints the events, leaves.
//!
//! `cargo run -p tertulia-engine --example session`

#![allow(clippy::print_stdout, reason = "an example prints what it does")]

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use tertulia_agents::approval::{ToolRequest, Verdict};
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, Outcome, Readiness, ToolSide,
};
use tertulia_core::clock::Clock;
use tertulia_core::entry::Kind;
use tertulia_engine::conversation::Conversation;
use tertulia_engine::event::SessionEvent;
use tertulia_engine::frontend::Frontend;
use tertulia_engine::log_writer::{LogWriter, OnConflict};
use tertulia_engine::setup::{Participants, RunOptions};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Redaction, Sessions, Start};
use tokio_util::sync::CancellationToken;

/// An agent that repeats the last message in capitals.
#[derive(Debug)]
struct Loud;

#[async_trait]
impl Agent for Loud {
    fn name(&self) -> &str {
        "loud"
    }

    fn model(&self) -> Option<&str> {
        None
    }

    fn tools(&self) -> ToolSide {
        ToolSide::None
    }

    async fn readiness(&self) -> Readiness {
        Readiness::Ready(None)
    }

    async fn models(&self) -> Result<Vec<String>, AgentError> {
        Ok(Vec::new())
    }

    async fn answer(
        &self,
        request: &AgentRequest,
        sink: &AgentSink,
    ) -> Result<Outcome, AgentError> {
        let last = request.messages.last();
        let text = last.map_or_else(String::new, |message| message.content.to_uppercase());
        sink.say(AgentEvent::Text(text)).await?;
        Ok(Outcome::Done)
    }
}

/// A frontend that prints every event and denies every tool.
struct Printer;

#[async_trait]
impl Frontend for Printer {
    fn show(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Text { text } => println!("loud: {text}"),
            SessionEvent::Durable { .. } => println!("(saved)"),
            _ => {}
        }
    }

    async fn approve(&mut self, _: &ToolRequest) -> Verdict {
        Verdict::No
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(&folder.path().join("sessions.db"))?;
    let clock = Clock::new(jiff::Timestamp::now, uuid::Uuid::now_v7);
    let sessions = Sessions::new(Arc::new(store), clock, Redaction::On);
    let start = Start {
        id: sessions.clock().session_id(),
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
    };
    let writer = LogWriter::begin(sessions, start, OnConflict::Fork);
    let participants = Participants::Chat(Arc::new(Loud));
    let options = RunOptions::default();
    let begun = Conversation::begin(writer, participants, options);
    let mut conversation = begun.map_err(|error| error.sentence())?;
    let cancel = CancellationToken::new();
    let text = "hello there".to_owned();
    let turn = conversation.say(text, None, &mut Printer, &cancel).await?;
    println!("{}", turn.status().name());
    Ok(())
}
