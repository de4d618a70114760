//! Embeds the store: writes two messages, finds one of them, forks the session.
//!
//! `cargo run -p tertulia-store --example embed`

#![allow(clippy::print_stdout, reason = "an example prints what it does")]

use std::error::Error;
use std::sync::Arc;

use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Kind, Relation, Role, Speaker, SpeakerKind, human, plain};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Fork, Redaction, Sessions, Start};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(&folder.path().join("sessions.db"))?;
    let clock = Clock::new(jiff::Timestamp::now, uuid::Uuid::now_v7);
    let sessions = Sessions::new(Arc::new(store), clock, Redaction::On);
    let start = Start {
        id: sessions.clock().session_id(),
        kind: Kind::Chat,
        title: Some("An embedded session".to_owned()),
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
    };
    let agent = Speaker::plain("parrot", SpeakerKind::Ai);
    let question = plain(&human(), Role::User, "Who is there?".to_owned());
    let answer = plain(&agent, Role::Assistant, "A parrot.".to_owned());
    let bodies = vec![Body::Message(question), Body::Message(answer)];
    let (meta, _) = sessions.create(&start, bodies).await?;

    let fork = Fork {
        id: sessions.clock().session_id(),
        at: None,
        title: Some("A fork of it".to_owned()),
        relation: Relation::Fork,
    };
    let (forked, _) = sessions.fork(&meta, &fork, Vec::new()).await?;
    for id in [meta.id, forked.id] {
        let row = sessions.row(id).await?;
        println!("{}  {}", id.short(), row.meta.title_or_untitled());
        for (_, message) in sessions.load(id).await?.messages() {
            println!("  {}: {}", message.speaker.display_name, message.content);
        }
    }
    Ok(())
}
