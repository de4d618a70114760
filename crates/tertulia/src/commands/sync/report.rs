//! What was moved, in words and as JSON.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tertulia_core::id::SessionId;
use tertulia_store::sync::{Skipped, Transferred};
use tertulia_store::{Doing, StoreError};

use super::Exchange;
use crate::author;
use crate::link::PartnerUrl;
use crate::show;
use crate::ui::Ui;

/// Sessions that were not moved in the last round of an exchange that goes on, with the reason: said once.
pub type Known = BTreeSet<String>;

/// Reports a whole exchange.
pub fn report(exchange: &Exchange, url: &PartnerUrl, doing: Doing, ui: &mut Ui) {
    warn_of_skipped(exchange, &mut Known::new(), ui);
    if ui.json {
        ui.document(&document(exchange, url));
        return;
    }
    note_sealed(exchange, ui);
    note_diverged(exchange, ui);
    for (side, moved) in exchange.both() {
        let (done, way) = match (side, doing) {
            ("here", Doing::Write) => ("Pulled", "from"),
            ("here", Doing::Preview) => ("Would pull", "from"),
            (_, Doing::Write) => ("Pushed", "to"),
            (_, Doing::Preview) => ("Would push", "to"),
        };
        ui.note(&format!("{done} {} {way} {url}.", words(moved)));
    }
}

/// Reports one round of an exchange that goes on, on one line, if something was moved.
pub fn round(exchange: &Exchange, at: &str, known: &mut Known, ui: &mut Ui) {
    warn_of_skipped(exchange, known, ui);
    note_sealed(exchange, ui);
    if exchange.both().all(|(_, moved)| moved.is_empty()) {
        return;
    }
    note_diverged(exchange, ui);
    let parts: Vec<String> = exchange
        .both()
        .filter(|(_, moved)| !moved.is_empty())
        .map(|(side, moved)| match side {
            "here" => format!("pulled {}", words(moved)),
            _ => format!("pushed {}", words(moved)),
        })
        .collect();
    ui.note(&format!("{at} {}", parts.join("; ")));
}

fn words(moved: &Transferred) -> String {
    if moved.is_empty() {
        return "nothing new".to_owned();
    }
    let counts = [
        (moved.created, "new session"),
        (moved.diverged.len(), "fork"),
    ];
    let mut parts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| show::count(count as u64, what))
        .collect();
    if moved.extended > 0 {
        let sessions = show::count(moved.extended as u64, "session");
        parts.push(format!("{sessions} extended"));
    }
    let entries = show::count(moved.entries as u64, "entry");
    match parts.is_empty() {
        true => entries,
        false => format!("{entries} ({})", parts.join(", ")),
    }
}

fn note_sealed(exchange: &Exchange, ui: &mut Ui) {
    for copy in &exchange.sealed {
        let (id, entries) = (copy.session.short(), show::count(copy.entries, "entry"));
        let fork = copy.fork.map(|fork| format!(" in fork {}", fork.short()));
        let fork = fork.unwrap_or_default();
        ui.note(&match (copy.is_ours, copy.had_key) {
            (true, false) => format!(
                "session {id} is sealed there: the copy here is sealed now, too ({entries} of it only here)"
            ),
            (true, true) => format!(
                "session {id} is sealed with another key there: the copy here has that key now, too ({entries} of it only here)"
            ),
            (false, false) => format!(
                "session {id} is stored in plain there: {entries} that only that copy has are sealed here{fork}"
            ),
            (false, true) => format!(
                "session {id} is sealed with another key there: {entries} that only that copy has are kept here{fork}"
            ),
        });
    }
}

fn note_diverged(exchange: &Exchange, ui: &mut Ui) {
    for (side, moved) in exchange.both() {
        for diverged in &moved.diverged {
            let both = match &diverged.host {
                Some(host) if side == "here" && author::host().as_ref() != Some(host) => {
                    format!("here and on {host}")
                }
                _ => "on both sides".to_owned(),
            };
            ui.note(&format!(
                "session {} was continued {both}: the other branch is {} {side}",
                diverged.session.short(),
                diverged.fork.short()
            ));
        }
    }
}

fn warn_of_skipped(exchange: &Exchange, known: &mut Known, ui: &mut Ui) {
    let before = std::mem::take(known);
    for (side, moved) in exchange.both() {
        for skipped in &moved.skipped {
            let name = skipped
                .session
                .map_or("a session".to_owned(), |id| format!("session {id}"));
            let problem = match skipped.is_open() {
                true => format!("{name} is open {side}"),
                false if skipped.is_sealed_otherwise() => {
                    format!("{name} was not moved: {}", reason(skipped, side))
                }
                false => format!("{name} was not moved {side}: {}", skipped.error),
            };
            if !before.contains(&problem) {
                let later = match skipped.is_open() {
                    true => {
                        let entries = show::count(skipped.entries, "new entry");
                        format!("; its {entries} come with the next sync")
                    }
                    false => String::new(),
                };
                ui.warn(&format!("{problem}{later}"));
            }
            known.insert(problem);
        }
    }
}

fn document(exchange: &Exchange, url: &PartnerUrl) -> Value {
    let mut diverged = Vec::new();
    let mut skipped = Vec::new();
    for (side, moved) in exchange.both() {
        diverged.extend(moved.diverged.iter().map(
            |it| json!({ "session": it.session, "fork": it.fork, "host": it.host, "side": side }),
        ));
        skipped.extend(moved.skipped.iter().map(|it| skipped_object(it, side)));
    }
    json!({
        "with": url.to_string(),
        "pulled": exchange.pulled.as_ref().map(counts),
        "pushed": exchange.pushed.as_ref().map(counts),
        "diverged": diverged,
        "skipped": skipped,
    })
}

fn counts(moved: &Transferred) -> Value {
    json!({
        "sessions": moved.sessions,
        "entries": moved.entries,
        "created": moved.created,
        "extended": moved.extended,
        "forked": moved.diverged.len(),
    })
}

fn skipped_object(skipped: &Skipped, side: &str) -> Value {
    let id: Option<SessionId> = skipped.session;
    json!({
        "session": id,
        "side": side,
        "open": skipped.is_open(),
        "entries": skipped.entries,
        "reason": reason(skipped, side),
    })
}

/// Returns why a session was not moved to a side.
fn reason(skipped: &Skipped, side: &str) -> String {
    match skipped.error {
        StoreError::SealedInOne {
            in_target,
            only_plain,
            ..
        } => {
            let places = match in_target == (side == "here") {
                true => "it is sealed here and stored in plain there",
                false => "it is sealed there and stored in plain here",
            };
            match only_plain {
                0 => format!("{places}; the plain copy has nothing that the sealed one lacks"),
                count => format!(
                    "{places}; only the plain copy has its last {}",
                    entries(count)
                ),
            }
        }
        ref error => error.to_string(),
    }
}

fn entries(count: u64) -> String {
    match count {
        1 => "entry".to_owned(),
        count => show::count(count, "entry"),
    }
}
