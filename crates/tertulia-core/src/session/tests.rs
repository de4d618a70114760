//! Tests of the fold from log to session metadata.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::changes::UNDO_DEPTH;
use super::*;
use crate::entry::{
    Created, Forked, NewEntry, Origin, Renamed, Role, Speaker, Tagged, Terms, Touched, Undone,
};

fn id(n: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(n))
}

fn operation(n: u128) -> EntryId {
    EntryId::new(Uuid::from_u128(n))
}

fn chained(bodies: Vec<Body>) -> Vec<Entry> {
    let mut head = Head::START;
    let mut second = 0;
    let mut entries = Vec::new();
    for body in bodies {
        second += 1;
        let new = NewEntry {
            id: operation(1000 + second as u128),
            at: Timestamp::from_second(second).unwrap(),
            body,
            redacted: BTreeMap::new(),
            author: None,
        };
        let entry = Entry::chain(&head, vec![new]).unwrap().remove(0);
        head = entry.head();
        entries.push(entry);
    }
    entries
}

fn created() -> Body {
    Body::Created(Created {
        session: id(1),
        kind: Kind::Chat,
        title: None,
        team: None,
        project: Some("p".into()),
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
        seal: None,
    })
}

fn said(kind: SpeakerKind, content: &str) -> Body {
    Body::Message(Message {
        speaker: Speaker::plain(
            if kind == SpeakerKind::Ai {
                "demo"
            } else {
                "you"
            },
            kind,
        ),
        role: Role::User,
        content: content.into(),
        reasoning: None,
        thread: None,
        tool_calls: vec![],
        tool_call_id: None,
        usage: (kind == SpeakerKind::Ai).then_some(Usage::told(3, 4)),
        usage_id: None,
        requests: Vec::new(),
        model: (kind == SpeakerKind::Ai).then(|| "m1".to_owned()),
        addressees: Vec::new(),
        asked: None,
        interrupted: false,
        outcome: None,
        attachments: Vec::new(),
        client_id: None,
        metadata: None,
    })
}

fn fold(bodies: Vec<Body>) -> SessionMeta {
    SessionMeta::of(id(1), &chained(bodies))
}

#[test]
fn a_talk_has_title_counts_and_state() {
    let asked = fold(vec![
        created(),
        said(SpeakerKind::Human, "\n  What is a tertulia?\nmore"),
    ]);
    assert_eq!(asked.title.as_deref(), Some("What is a tertulia?"));
    assert_eq!((asked.messages, asked.state()), (1, "active"));

    let answered = fold(vec![
        created(),
        said(SpeakerKind::Human, "a"),
        said(SpeakerKind::Ai, "b"),
    ]);
    assert_eq!((answered.messages, answered.state()), (2, "paused"));
    assert_eq!(answered.tokens, Usage::told(3, 4));
    assert_eq!(
        (answered.agents, answered.model),
        (vec!["demo".to_owned()], Some("m1".into()))
    );
    assert_eq!(answered.updated_at, Timestamp::from_second(3).unwrap());
}

/// A message by `id`, displayed as `shown`; an agent uses the model `m2` and two tokens.
fn said_by(id: &str, shown: &str, kind: SpeakerKind) -> Body {
    let mut body = said(kind, "words");
    if let Body::Message(message) = &mut body {
        message.speaker = Speaker {
            display_name: shown.into(),
            ..Speaker::plain(id, kind)
        };
        message.usage = (kind == SpeakerKind::Ai).then_some(Usage::told(1, 1));
        message.model = (kind == SpeakerKind::Ai).then(|| "m2".to_owned());
    }
    body
}

#[test]
fn people_and_agents_are_counted_by_what_they_said() {
    let meta = fold(vec![
        created(),
        said_by("ana", "Ana", SpeakerKind::Human),
        said_by("ada", "Ada", SpeakerKind::Ai),
        said_by("shell", "shell", SpeakerKind::Tool),
        said_by("ada", "Ada L.", SpeakerKind::Ai),
        said_by("tertulia", "tertulia", SpeakerKind::System),
        // Speakers with the same id but another kind are counted separately.
        said_by("ada", "Ada", SpeakerKind::Human),
    ]);
    let counted: Vec<(&str, SpeakerKind, u64, Usage, Option<&str>)> = meta
        .speakers
        .iter()
        .map(|spoke| {
            let shown = spoke.display_name.as_str();
            let model = spoke.model.as_deref();
            (shown, spoke.kind, spoke.messages, spoke.tokens, model)
        })
        .collect();
    let nothing = Usage::default();
    assert_eq!(
        counted,
        [
            ("Ana", SpeakerKind::Human, 1, nothing, None),
            ("Ada L.", SpeakerKind::Ai, 2, Usage::told(2, 2), Some("m2")),
            ("Ada", SpeakerKind::Human, 1, nothing, None),
        ]
    );
    assert_eq!(meta.duration().as_secs(), 6);
    // The counts round-trip, and rows without `speakers` (older versions) can be read.
    let row = serde_json::to_string(&meta).unwrap();
    assert_eq!(serde_json::from_str::<SessionMeta>(&row).unwrap(), meta);
    let mut old = serde_json::to_value(&meta).unwrap();
    old.as_object_mut().unwrap().remove("speakers");
    let old: SessionMeta = serde_json::from_value(old).unwrap();
    assert!(old.speakers.is_empty());
}

#[test]
fn long_first_lines_are_cut_between_words() {
    let check = |content: &str, expected: &str| {
        assert_eq!(title_from(content).as_deref(), Some(expected));
    };
    check(
        &"word ".repeat(30),
        &format!("{}…", "word ".repeat(11).trim_end()),
    );
    check(&"漢".repeat(100), &format!("{}…", "漢".repeat(59)));
    check("a\tb", "a b");
    assert_eq!(title_from(" \n\n "), None);
}

#[test]
fn changes_are_taken_back_in_order() {
    let rename = |title: &str, n| {
        Body::Renamed(Renamed {
            title: title.into(),
            operation: operation(n),
        })
    };
    let tag = |tag: &str, n| {
        Body::Tagged(Tagged {
            add: vec![tag.into()],
            remove: vec![],
            operation: operation(n),
        })
    };
    let undo = |change| {
        Body::Undone(Undone {
            change: Seq(change),
            operation: operation(99),
        })
    };
    let mut log = vec![
        created(),
        said(SpeakerKind::Human, "first"),
        rename("A", 1),
        tag("x", 2),
    ];
    let meta = fold(log.clone());
    assert_eq!((meta.title.as_deref(), meta.tags.len()), (Some("A"), 1));
    // Housekeeping does not change `updated_at`.
    assert_eq!(meta.updated_at, Timestamp::from_second(2).unwrap());

    log.push(Body::Trashed(Touched {
        operation: operation(3),
    }));
    assert_eq!(fold(log.clone()).state(), "trashed");
    log.push(undo(5));
    assert_eq!(fold(log.clone()).state(), "active");
    log.push(undo(4));
    log.push(undo(3));
    let meta = fold(log.clone());
    assert_eq!(
        (meta.title.as_deref(), meta.titled, meta.tags.len()),
        (Some("first"), false, 0)
    );
    assert!(meta.changes.is_empty());
    // Undoing a change again has no effect.
    log.push(undo(3));
    assert_eq!(fold(log).title.as_deref(), Some("first"));
}

#[test]
fn only_the_newest_changes_are_kept_for_undo() {
    let mut log = vec![created()];
    for n in 0..50 {
        log.push(Body::Renamed(Renamed {
            title: format!("t{n}"),
            operation: operation(n),
        }));
    }
    assert_eq!(fold(log).changes.len(), UNDO_DEPTH);
}

#[test]
fn a_fork_is_a_session_of_its_own() {
    let base = chained(vec![created(), said(SpeakerKind::Human, "hello")]);
    let mut meta = SessionMeta::of(id(1), &base);
    let head = meta.head;
    let forked = Body::Forked(Forked {
        session: id(2),
        from: Origin {
            id: id(1),
            seq: head.seq,
            hash: head.hash,
        },
        relation: Relation::Fork,
        title: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
        seal: None,
    });
    let new = NewEntry {
        id: operation(5),
        at: Timestamp::from_second(50).unwrap(),
        body: forked,
        redacted: BTreeMap::new(),
        author: None,
    };
    meta.apply(&Entry::chain(&head, vec![new]).unwrap()[0]);
    assert_eq!(meta.id, id(2));
    assert_eq!(meta.title.as_deref(), Some("hello (fork)"));
    assert_eq!((meta.messages, meta.created_at.as_second()), (1, 50));
    assert_eq!(meta.speakers[0].messages, 1);
    assert_eq!(
        meta.parent.map(|parent| (parent.id, parent.seq)),
        Some((id(1), Seq(2)))
    );
}

#[test]
fn a_log_reports_what_is_missing_unreadable_or_altered() {
    let entries = chained(
        (0..6)
            .map(|n| said(SpeakerKind::Human, &format!("word{n}")))
            .collect(),
    );
    let mut lines: Vec<Line> = entries.iter().map(Line::from).collect();
    let read = |lines: &[Line]| Log::read(id(1), Some(Head::START), Seq::START, lines);
    assert!(read(&lines).damage.is_empty());

    lines[1].bytes.truncate(40);
    let altered = String::from_utf8(lines[3].bytes.clone())
        .unwrap()
        .replace("word3", "wurd3");
    lines[3].bytes = altered.into_bytes();
    lines.remove(4);
    let log = read(&lines);
    let places: Vec<u64> = log.damage.iter().map(|damage| damage.seq.0).collect();
    assert_eq!(places, [2, 4, 5]);
    assert!(log.damage[1].reason.contains("hash"), "{:?}", log.damage);
    // Readable entries are kept, including the altered one: it is shown with a warning.
    assert_eq!(log.entries.len(), 4);
}

#[test]
fn a_teams_title_is_what_was_said() {
    let check = |content: &str, expected: &str| {
        assert_eq!(without_markers(content).trim(), expected);
    };
    check("[NEXT: ben] and [you]?", "and [you]?");
    check("plan [team_task: a table] it", "plan  it");
    check("[TEAM_TASK: a [redacted:key] b] go", "go");
    check("[NEXT: ben]", "[NEXT: ben]");
    check("[NEXT: ben go", "[NEXT: ben go");
    // With quadratic time these would take minutes.
    for piece in ["[", "[NEXT:", "[NEXT: [redacted:"] {
        let many = piece.repeat(200_000);
        check(&format!("{many} x"), &format!("{many} x"));
    }
    check("[NEXT: open", "[NEXT: open");
    check("é[", "é[");
}

#[test]
fn terms_are_those_that_were_set_last() {
    let terms = |approve, agent: Option<&str>| {
        Body::Terms(Terms {
            approve,
            agent: agent.map(str::to_owned),
            model: agent.map(|_| "large".to_owned()),
            ..Terms::default()
        })
    };
    let log = chained(vec![
        created(),
        said(SpeakerKind::Human, "hello"),
        terms(Some(Approval::Low), Some("ada")),
        terms(Some(Approval::None), None),
    ]);
    let meta = SessionMeta::of(id(1), &log);
    let found = meta.terms();
    assert_eq!(found.approve, Some(Approval::None));
    assert_eq!(found.agent.as_deref(), Some("ada"));
    assert_eq!(found.model.as_deref(), Some("large"));
    // A fork of the beginning does not have them, unless its opening says them.
    let mut fork = SessionMeta::of(id(1), &log[..2]);
    assert_eq!(fork.terms().approve, None);
    fork.agree(&found);
    assert_eq!(fork.terms(), found);
}
