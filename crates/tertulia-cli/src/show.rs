//! Entries as words on a terminal, and the lines that notices become.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tertulia::conversation::run::Notice;
use tertulia::entry::{Body, Entry, Message, SpeakerKind};
use tertulia::session::Damage;

use crate::moment::clock;
use crate::ui::{AGENT, BOLD, DIM, HUMAN, Ui, harmless};

/// A message as it stands in a transcript.
pub fn message(ui: &Ui, entry: &Entry, message: &Message, now: Timestamp) -> String {
    let style = match message.speaker.kind {
        SpeakerKind::Human => HUMAN,
        SpeakerKind::Ai => AGENT,
        SpeakerKind::System | SpeakerKind::Tool => BOLD,
    };
    let name = ui.styled(style, &harmless(&message.speaker.display_name));
    let mut when = clock(entry.at, now);
    if let Some(model) = &message.model {
        when.push_str(&format!(" · {}", harmless(model)));
    }
    if message.interrupted {
        when.push_str(" · interrupted");
    }
    let mut text = format!(
        "{name}  {}\n",
        ui.styled(DIM, &format!("{} · {when}", entry.seq))
    );
    text.push_str(harmless(&message.content).trim_end_matches('\n'));
    text.push('\n');
    for call in &message.tool_calls {
        text.push_str(&ui.styled(
            DIM,
            &format!(
                "→ {} {}\n",
                harmless(&call.name),
                harmless(&call.arguments.to_string())
            ),
        ));
    }
    text
}

/// Any entry on one line.
pub fn entry_line(entry: &Entry) -> String {
    let what = match &entry.body {
        Body::Created(created) => format!("began as a {}", created.kind.name()),
        Body::Forked(forked) => format!(
            "{} of {} at entry {}",
            forked.relation.name(),
            forked.from.id.short(),
            forked.from.seq
        ),
        Body::Message(message) => {
            let mark = if message.interrupted {
                " (interrupted)"
            } else {
                ""
            };
            format!(
                "{}{mark}: {}",
                message.speaker.display_name, message.content
            )
        }
        Body::Renamed(renamed) => format!("title: {}", renamed.title),
        Body::Tagged(tagged) => {
            let added = tagged.add.iter().map(|tag| format!("+{tag}"));
            let removed = tagged.remove.iter().map(|tag| format!("-{tag}"));
            added.chain(removed).collect::<Vec<_>>().join(" ")
        }
        Body::Trashed(_) => "moved to the trash".to_owned(),
        Body::Restored(_) => "taken out of the trash".to_owned(),
        Body::Undone(undone) => format!("took entry {} back", undone.change),
        Body::Failed(failed) => format!(
            "{} failed ({}): {}",
            failed.agent, failed.kind, failed.message
        ),
        Body::Lost(lost) => format!("an entry is lost: {}", lost.reason),
        Body::Repaired(repaired) => {
            format!(
                "repaired: {} lost, {} doubtful",
                repaired.lost.len(),
                repaired.doubtful.len()
            )
        }
        Body::Unknown(kind) => format!("({kind}: from a newer version)"),
    };
    harmless(&what)
}

/// What is damaged, one line each.
pub fn damage(damage: &[Damage]) -> Vec<String> {
    damage
        .iter()
        .map(|damage| {
            format!(
                "session {} entry {}: {}",
                damage.session, damage.seq, damage.reason
            )
        })
        .collect()
}

/// A notice in words. Whether it is a warning comes with it.
pub fn notice(notice: &Notice) -> (bool, String) {
    match notice {
        Notice::SteppedAside { from, to } => (
            true,
            format!(
                "another program is writing to session {}; this talk goes on in a fork, {}",
                from.short(),
                to.short()
            ),
        ),
        Notice::Recovered { speaker } => (
            false,
            format!(
                "{speaker} was cut off in the middle of an answer; what had arrived is kept as an interrupted message"
            ),
        ),
        Notice::Unanswered => (
            false,
            "the last words were not answered: the program ended before".to_owned(),
        ),
        Notice::OtherModel { recorded, now } => (
            true,
            format!("this session was recorded with the model {recorded}; {now} answers now"),
        ),
        Notice::Unsaved(error) => (
            true,
            format!(
                "not saved: {}. The talk goes on in memory and saving is tried again with the next words",
                chain(error)
            ),
        ),
        Notice::SavedAgain => (false, "everything said so far is saved now".to_owned()),
        Notice::Redacted(kinds) => (false, format!("redacted before saving: {}", counts(kinds))),
        Notice::NearLimit { bytes } => (
            true,
            format!(
                "this session has grown to {} MB of at most 100 MB; fork it or begin a new one soon",
                bytes / 1_000_000
            ),
        ),
        Notice::Refused(error) => (true, format!("not taken: {}", chain(error))),
        Notice::Damaged(damaged) => (
            true,
            format!(
                "{} entries of this session are damaged, the first: {}; `tertulia doctor` shows all",
                damaged.len(),
                damage(&damaged[..damaged.len().min(1)]).join("")
            ),
        ),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(&format!(": {error}"));
        cause = error.source();
    }
    words
}

fn counts(kinds: &BTreeMap<String, u32>) -> String {
    kinds
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect::<Vec<_>>()
        .join(", ")
}
