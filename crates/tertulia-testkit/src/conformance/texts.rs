//! Unusual texts: every byte is preserved.

use serde_json::json;
use tertulia_core::entry::{
    Body, Failed, Lost, Message, Repaired, Role, Speaker, SpeakerKind, ToolCall, Usage,
};
use tertulia_core::id::Seq;
use tertulia_store::Store;

use crate::ask::{assert_log, found, row};
use crate::clock::{moment, still_clock};
use crate::logs::{Writer, ai, human, message, renamed, tagged, unknown};

/// Unusual texts.
pub const ODD: &[&str] = &[
    "",
    " ",
    "\n",
    "\r\n",
    "one\r\ntwo\rthree\nfour\n",
    "\t\u{b}\u{c}",
    "a\0b",
    "\0",
    "\u{1}\u{1b}[31mred\u{1b}[0m\u{7f}",
    "\u{7f}",
    "\u{85}\u{2028}\u{2029}",
    "\u{feff}after the mark",
    "👩‍👩‍👧‍👦 and 🇪🇸 and 👍🏽",
    "世界 こんにちは 안녕하세요 สวัสดี",
    "e\u{301} is not \u{e9} is not e",
    "\u{202e}backwards",
    "\"",
    "'",
    "`\"'\\",
    "\\",
    "\\u0000 \\n",
    "{\"v\":1,\"seq\":2,\"type\":\"message\"}",
    "\",\"hash\":\"0000000000000000000000000000000000000000000000000000000000000000\"}",
    "'; DROP TABLE session; --",
    "% _ * ? [a-z] $1 :name @x ?1",
    "../../etc/passwd",
    "NULL",
    "\u{10ffff}\u{e000}\u{fffd}",
];

/// Contents are preserved byte for byte, alone and in one append.
pub fn odd_contents(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    for text in ODD {
        writer.say(store, text);
        assert_log(store, &writer);
    }
    writer.append(store, ODD.iter().map(|text| ai(text, text)).collect());
    assert_log(store, &writer);
}

/// The same for titles and tags, in the log and in the row.
pub fn odd_titles_and_tags(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    for text in ODD {
        writer.append(store, vec![renamed(text), tagged(&[text], &[])]);
        assert_log(store, &writer);
        assert_eq!(row(store, writer.id).meta.title.as_deref(), Some(*text));
    }
    let mut tags: Vec<&str> = ODD.to_vec();
    tags.sort_unstable();
    assert_eq!(row(store, writer.id).meta.tags, tags);
}

/// A message close to the size limit, followed by others.
pub fn large_message(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    let mut text = "Lorem ipsum dolor sit amet \"\\ 世 ".repeat(25_000);
    text.truncate(900_000);
    text.push_str(" needle");
    writer.say(store, &text);
    writer.append(store, vec![ai("claude", "short"), human(&text)]);
    assert_log(store, &writer);
    assert_eq!(found(store, "needle"), [(writer.id, 2), (writer.id, 4)]);
}

/// An append of a thousand entries.
pub fn many_entries_in_one_append(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.append(
        store,
        (0..1000).map(|n| human(&format!("word{n}"))).collect(),
    );
    assert_log(store, &writer);
    assert_eq!(found(store, "word777"), [(writer.id, 779)]);
}

/// Every field of every kind of entry.
pub fn every_field(store: &dyn Store) {
    let clock = still_clock(1);
    let mut writer = Writer::begin_with(
        store,
        &clock,
        |created| {
            created.kind = tertulia_core::entry::Kind::Pair;
            created.title = Some("title".into());
            created.team = Some("team".into());
            created.project = Some("/project".into());
            created.cwd = Some("/project/here".into());
        },
        vec![],
    );
    let full = Message {
        speaker: Speaker {
            id: "id-7".into(),
            name: "claude".into(),
            display_name: "Claude".into(),
            kind: SpeakerKind::Ai,
        },
        thread: Some("worker".into()),
        tool_calls: vec![ToolCall {
            id: "c".into(),
            name: "t".into(),
            // The order of keys and the spelling of numbers must be preserved.
            arguments: json!({"z": 1.50, "a": [null, true, {"m": -0.0, "b": 1e300}]}),
        }],
        tool_call_id: Some("other".into()),
        usage: Some(Usage::told(u64::from(u32::MAX) + 1, 0)),
        model: Some("claude-9".into()),
        addressees: Vec::new(),
        asked: None,
        interrupted: true,
        ..message("x", SpeakerKind::Ai, Role::Assistant, "text")
    };
    let failure = Failed {
        agent: "claude".into(),
        kind: "rate_limit".into(),
        message: "later".into(),
        retry_at: Some(moment(99)),
        withdrawn: false,
    };
    writer.append(store, vec![Body::Message(full), Body::Failed(failure)]);
    let lost = Lost {
        reason: "unreadable".into(),
    };
    let repaired = Repaired {
        lost: vec![Seq(4)],
        doubtful: vec![Seq(2), Seq(3)],
    };
    writer.append(store, vec![Body::Lost(lost), Body::Repaired(repaired)]);
    assert_log(store, &writer);
    let fork = writer.fork_with(store, 5, |fork| fork.cwd = Some("/there".into()), vec![]);
    assert_log(store, &fork);
}

/// Entries of a later version are preserved, also through forks.
pub fn unknown_types_survive(store: &dyn Store) {
    let clock = still_clock(1);
    let mut writer = Writer::begin(store, &clock);
    writer.say(store, "before");
    let fields = [
        r#""what":"nobody knows","when":[1,2.50,null]"#,
        r#""content":"needle","type2":"message""#,
        r#"  "spaced" : { "b":1,"a":2 }"#,
        r#""escaped":"\u0041\/\ud83d\ude00""#,
    ];
    for fields in fields {
        let entry = unknown(&writer.head(), &clock, "whistled", fields);
        writer.append_chained(store, vec![entry]).unwrap();
        assert_log(store, &writer);
    }
    writer.say(store, "after");
    assert_log(store, &writer);
    assert_log(store, &writer.fork(store, 4));
    assert_eq!(found(store, "needle"), []);
}

/// Unusual texts do not prevent adjacent words from being found.
pub fn searched_by_odd_words(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    for text in ODD {
        writer.say(store, &format!("{text} needle {text}"));
    }
    assert_eq!(found(store, "needle").len(), ODD.len());
    assert_eq!(found(store, "DROP").len(), 1);
    assert_eq!(found(store, "👍🏽").len(), 1);
    assert_eq!(found(store, "\"'; DROP TABLE session\"").len(), 1);
    assert_eq!(found(store, "NULL OR AND NOT").len(), 0);
    assert_eq!(found(store, "null").len(), 1);
}
