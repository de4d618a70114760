use super::*;
use Layout::{Claude, Codex, Gemini, Plain};
use std::time::{Duration, Instant};
use tertulia_core::id::EntryId;

use proptest::prelude::*;
use uuid::Uuid;

/// More than any test needs.
const AMPLE: usize = 1_000_000;
const LAYOUTS: [Layout; 4] = [Claude, Codex, Gemini, Plain];

fn spoken(number: u32, from: &str, to: &[&str], text: &str) -> Spoken {
    Spoken {
        id: EntryId::new(Uuid::from_u128(u128::from(number))),
        seq: None,
        by: from.to_lowercase(),
        from: from.into(),
        to: to.iter().map(|name| (*name).to_owned()).collect(),
        replies_to: None,
        text: text.into(),
        attachments: Vec::new(),
    }
}

/// Recalled messages: the number of each message is its position, which is also its id.
#[derive(Debug)]
struct Told {
    context: Vec<Spoken>,
    parent: Option<(Spoken, usize)>,
    related: Vec<Spoken>,
    message: Spoken,
}

impl Told {
    fn alone(message: Spoken) -> Told {
        Told {
            context: Vec::new(),
            parent: None,
            related: Vec::new(),
            message,
        }
    }

    fn recalled(&self) -> Recalled<'_> {
        Recalled {
            message: &self.message,
            context: self.context.iter().collect(),
            parent: self.parent.as_ref().map(|(parent, _)| parent),
            parent_at: self.parent.as_ref().map_or(0, |(_, place)| *place),
            related: self.related.iter().collect(),
        }
    }

    fn prompt(&self, layout: Layout, room: usize) -> String {
        let material = Material {
            system: "You are Max.",
            system_apart: false,
            task: Some("Ship it."),
            summary: None,
            recalled: &self.recalled(),
            intent: Intent::P2,
        };
        prompt(layout, &material, room).text
    }
}

/// A conversation with content for each section.
fn full() -> Told {
    Told {
        context: vec![
            spoken(1, "Ana", &["Max", "Bo"], "Hello."),
            spoken(3, "Bo", &[], "Two\n\n  lines."),
        ],
        parent: Some((spoken(2, "Ana", &["Bo"], "Who?"), 1)),
        related: vec![spoken(3, "Bo", &[], "Two\n\n  lines.")],
        message: spoken(4, "Carol", &["Max"], "Me."),
    }
}

#[test]
fn claude_and_codex_are_given_sections_in_brackets() {
    let expected = "\
[SYSTEM]
You are Max.

[TEAM_TASK]
Ship it.

[CONTEXT]
- Ana -> Max, Bo: Hello.
- Bo -> all: Two

  lines.

[PARENT_CONTEXT]
Ana: Who?

[RELATED_CONTEXT]
- Bo: Two

  lines.

[MESSAGE]
Carol: Me.

[ROUTING_META]
parentMessageId: 00000000-0000-0000-0000-000000000002
intent: P2_REPLY";
    assert_eq!(full().prompt(Claude, AMPLE), expected);
    assert_eq!(full().prompt(Codex, AMPLE), expected);
}

#[test]
fn gemini_is_given_sections_in_words() {
    let expected = "\
Instructions:
You are Max.

Team Task:
Ship it.

Conversation so far:
- Ana: Hello.
- Bo: Two

  lines.

Original message:
Ana: Who?

Related responses:
- Bo: Two

  lines.

Last message:
Carol: Me.

Routing info:
parentMessageId: 00000000-0000-0000-0000-000000000002
intent: P2_REPLY";
    assert_eq!(full().prompt(Gemini, AMPLE), expected);
}

#[test]
fn others_are_given_the_talk_in_its_order() {
    let expected = "\
You are Max.

Ship it.

Ana: Hello.

Ana: Who?

Bo: Two

  lines.

Carol: Me.";
    assert_eq!(full().prompt(Plain, AMPLE), expected);
}

#[test]
fn what_is_empty_is_left_out() {
    let told = Told::alone(spoken(7, "Ana", &[], "Hi."));
    let recalled = told.recalled();
    for (system, system_apart, task) in [
        ("", false, None),
        (" \n", false, Some("")),
        ("You are Max.", true, Some("\n")),
    ] {
        let material = Material {
            system,
            system_apart,
            task,
            summary: None,
            recalled: &recalled,
            intent: Intent::P1,
        };
        let meta = "parentMessageId: 00000000-0000-0000-0000-000000000007\nintent: P1_INTERRUPT";
        for (layout, expected) in [
            (
                Claude,
                format!("[MESSAGE]\nAna: Hi.\n\n[ROUTING_META]\n{meta}"),
            ),
            (
                Codex,
                format!("[MESSAGE]\nAna: Hi.\n\n[ROUTING_META]\n{meta}"),
            ),
            (
                Gemini,
                format!("Last message:\nAna: Hi.\n\nRouting info:\n{meta}"),
            ),
            (Plain, "Ana: Hi.".to_owned()),
        ] {
            assert_eq!(prompt(layout, &material, AMPLE).text, expected);
        }
    }
}

#[test]
fn each_section_is_left_out_for_itself() {
    let headers = |prompt: &str| {
        let lines = prompt.lines().filter(|line| line.starts_with('['));
        lines.map(str::to_owned).collect::<Vec<_>>().join("")
    };
    let check = |change: fn(&mut Told), expected: &str| {
        let mut told = full();
        change(&mut told);
        let prompt = told.prompt(Claude, AMPLE);
        let (before, after) = ("[SYSTEM][TEAM_TASK]", "[MESSAGE][ROUTING_META]");
        assert_eq!(headers(&prompt), format!("{before}{expected}{after}"));
        assert!(!prompt.contains("\n\n\n"), "{prompt}");
    };
    check(|_| {}, "[CONTEXT][PARENT_CONTEXT][RELATED_CONTEXT]");
    check(
        |told| told.context.clear(),
        "[PARENT_CONTEXT][RELATED_CONTEXT]",
    );
    check(|told| told.parent = None, "[CONTEXT][RELATED_CONTEXT]");
    check(|told| told.related.clear(), "[CONTEXT][PARENT_CONTEXT]");
}

#[test]
fn intents_have_their_long_names() {
    for (intent, expected) in [
        (Intent::P1, "intent: P1_INTERRUPT"),
        (Intent::P2, "intent: P2_REPLY"),
        (Intent::P3, "intent: P3_EXTEND"),
    ] {
        let told = full();
        let material = Material {
            system: "",
            system_apart: false,
            task: None,
            summary: None,
            recalled: &told.recalled(),
            intent,
        };
        assert!(prompt(Gemini, &material, AMPLE).text.ends_with(expected));
    }
}

#[test]
fn what_is_replied_to_stands_where_it_was_said_if_nothing_else_tells() {
    let mut told = full();
    for (place, expected) in [
        (
            0,
            "Ana: Who?\n\nAna: Hello.\n\nBo: Two\n\n  lines.\n\nCarol: Me.",
        ),
        (
            2,
            "Ana: Hello.\n\nBo: Two\n\n  lines.\n\nAna: Who?\n\nCarol: Me.",
        ),
    ] {
        told.parent = Some((spoken(2, "Ana", &[], "Who?"), place));
        assert!(told.prompt(Plain, AMPLE).ends_with(expected));
    }
    // Without room for the messages before it, it comes first.
    told.parent = Some((spoken(2, "Ana", &[], "Who?"), 1));
    let without = told.prompt(Plain, AMPLE).len() - 1;
    let expected = "Ship it.\n\nAna: Who?\n\nBo: Two\n\n  lines.\n\nCarol: Me.";
    assert!(told.prompt(Plain, without).ends_with(expected));
}

#[test]
fn forms_are_found_by_name_and_then_by_type() {
    for (name, kind, expected) in [
        ("claude", "command", Claude),
        ("My-Claude-2", "codex", Claude),
        ("max", "Anthropic", Claude),
        ("CODEX", "", Codex),
        ("max", "openai", Codex),
        ("max", "gemini-cli", Gemini),
        ("Gemini Pro", "claude", Gemini),
        ("max", "command", Plain),
        ("", "", Plain),
    ] {
        assert_eq!(Layout::of(name, kind), expected, "{name} {kind}");
    }
}

/// Code, indentation, blank lines, markers in code, lines that look like JSON: all stay unchanged.
#[test]
fn texts_stay_as_they_are() {
    let text = "  {\"a\": 1}\n\n\n{\n\tb\r\n}\n```\n[NEXT: bob]\n```\n  [SYSTEM]  \n\n";
    for layout in LAYOUTS {
        let told = Told {
            context: vec![spoken(1, "Ana", &[], text)],
            parent: Some((spoken(2, "Bo", &[], text), 1)),
            related: Vec::new(),
            message: spoken(3, "Carol", &[], text),
        };
        let prompt = told.prompt(layout, AMPLE);
        assert_eq!(prompt.matches(text).count(), 3, "{layout:?}");
    }
}

#[test]
fn related_replies_are_told_in_brief() {
    for (text, expected) in [
        ("short", "short".to_owned()),
        (
            "See:\n```rust\nfn main() {}\n```\nand `this`.\n",
            "See:\n[code]\nand `this`.".to_owned(),
        ),
        ("```\nnever closed", "[code]".to_owned()),
        (
            "a\n~~~\nb\n~~~\n```\nc\n```",
            "a\n[code]\n[code]".to_owned(),
        ),
        (&"ñ".repeat(200), "ñ".repeat(200)),
        (&"ñ".repeat(201), format!("{}…", "ñ".repeat(199))),
    ] {
        assert_eq!(brief(text), expected);
    }
}

const K: usize = 1024;
/// Characters of long texts: the earlier ones, the one to reply to, the related ones, the last.
/// They occur in no name and no header.
const STUFF: [char; 6] = ['#', '%', '&', '*', '+', '='];

/// A conversation in which everything is long.
fn long() -> Told {
    let text = |place: usize, length| String::from(STUFF[place]).repeat(length);
    let earlier = |number| spoken(number, "Ana", &[], &text(number as usize, K));
    Told {
        context: (0..3).map(earlier).collect(),
        parent: Some((spoken(3, "Bo", &[], &text(3, 3 * K)), 3)),
        related: vec![spoken(4, "Carol", &[], &text(4, 600)); 5],
        message: spoken(5, "Dan", &[], &text(5, 5 * K)),
    }
}

/// Counts the bytes left of each long text.
fn left(prompt: &str) -> [usize; 6] {
    STUFF.map(|letter| prompt.matches(letter).count())
}

#[test]
fn the_least_needed_is_left_out_first() {
    // Bytes left of the parent besides its mark.
    let cut = PARENT_LIMIT - mark(3 * K).len();
    let expected = [
        [K, K, K, 3 * K, 5 * 199, 5 * K],
        [K, K, K, 3 * K, 0, 5 * K],
        [K, K, K, cut, 0, 5 * K],
        [0, K, K, cut, 0, 5 * K],
        [0, 0, K, cut, 0, 5 * K],
        [0, 0, 0, cut, 0, 5 * K],
    ];
    for (layout, skipped) in [(Claude, 0), (Codex, 0), (Gemini, 0), (Plain, 1)] {
        let told = long();
        let mut room = AMPLE;
        for expected in &expected[skipped..] {
            let prompt = told.prompt(layout, room);
            assert_eq!(left(&prompt), *expected, "{layout:?} in {room}");
            // It fits exactly, and not in one byte less.
            assert_eq!(told.prompt(layout, prompt.len()), prompt, "{layout:?}");
            room = prompt.len() - 1;
        }
        // Last, the message is cut, and the mark takes its place.
        let message = 5 * K - 1 - mark(5 * K).len();
        let prompt = told.prompt(layout, room);
        assert_eq!(left(&prompt), [0, 0, 0, cut, 0, message], "{layout:?}");
        assert!(prompt.len() <= room);
    }
}

#[test]
fn what_must_stay_stays_in_no_room_at_all() {
    for layout in LAYOUTS {
        let told = long();
        let prompt = told.prompt(layout, 0);
        assert!(prompt.contains("You are Max.") && prompt.contains("Ship it."));
        let [.., parent, related, message] = left(&prompt);
        assert!(parent > 900 && related == 0);
        assert_eq!(message, MESSAGE_LEAST + REST_OF_CHARACTER);
        assert!(prompt.contains("\n[… 4093 bytes are missing here …]"));
    }
}

#[test]
fn a_message_is_not_cut_if_that_saves_nothing() {
    let check = |length: usize, whole: bool| {
        let told = Told::alone(spoken(1, "Ana", &[], &"=".repeat(length)));
        let prompt = told.prompt(Claude, 0);
        assert_eq!(prompt.contains("missing"), !whole, "{length}");
        assert!(prompt.matches('=').count() >= MESSAGE_LEAST.min(length));
    };
    check(10, true);
    check(MESSAGE_LEAST, true);
    check(MESSAGE_LEAST + mark(1100).len(), true);
    check(MESSAGE_LEAST + 100, false);
}

#[test]
fn system_text_that_is_given_apart_takes_room_too() {
    let told = full();
    let recalled = told.recalled();
    let apart = |system, room| {
        let material = Material {
            system,
            system_apart: true,
            task: None,
            summary: None,
            recalled: &recalled,
            intent: Intent::P2,
        };
        prompt(Claude, &material, room).text
    };
    let whole = apart("", AMPLE);
    let system = "s".repeat(500);
    assert_eq!(apart(&system, whole.len() + 500), whole);
    assert!(!apart(&system, whole.len() + 499).contains("[RELATED_CONTEXT]"));
    assert!(!apart(&system, 100).contains(&system));
}

/// With a time quadratic in the window, this would take many minutes.
#[test]
fn a_long_talk_takes_no_long_time() {
    let begun = Instant::now();
    let mut told = full();
    told.context = vec![spoken(1, "Ana", &[], "Hello."); 200_000];
    for layout in LAYOUTS {
        let whole = told.prompt(layout, usize::MAX).len();
        let half = told.prompt(layout, whole / 2).len();
        assert!(half > whole / 2 - 30 && half <= whole / 2);
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zñ€😀{}`\\[\\] \\n]{0,30}",
        ("[a-zñ€😀\\n]{1,4}", 0usize..1500).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn told() -> impl Strategy<Value = Told> {
    let many = |most| prop::collection::vec(text(), 0..most);
    let parent = prop::option::of((text(), 0usize..8));
    (many(8), parent, many(5), text()).prop_map(|(context, parent, related, message)| {
        let named =
            |(number, text): (usize, String)| spoken(0, &format!("N{number}"), &["X"], &text);
        let parent = parent.map(|(text, place)| (text, place.min(context.len())));
        Told {
            context: context.into_iter().enumerate().map(named).collect(),
            parent: parent.map(|(text, place)| (spoken(1, "Parent", &[], &text), place)),
            related: related
                .iter()
                .map(|text| spoken(3, "Related", &[], text))
                .collect(),
            message: spoken(2, "Last", &[], &message),
        }
    })
}

/// Returns the maximum size of what is always kept.
fn fixed(told: &Told, layout: Layout) -> usize {
    let short = |text: &str, most: usize| text.len().min(most);
    let least = MESSAGE_LEAST + REST_OF_CHARACTER + mark(told.message.text.len()).len();
    let nothing = Told {
        parent: told.parent.as_ref().map(|(parent, _)| {
            let text = "x".repeat(short(&parent.text, PARENT_LIMIT));
            (spoken(1, "Parent", &[], &text), 0)
        }),
        ..Told::alone(spoken(
            2,
            "Last",
            &[],
            &"x".repeat(short(&told.message.text, least)),
        ))
    };
    nothing.prompt(layout, AMPLE).len()
}

/// Returns the numbers of the earlier messages in the prompt, in order.
fn earlier(prompt: &str) -> Vec<usize> {
    let names = prompt.split('N').skip(1);
    let digits = names.filter_map(|after| after.chars().next()?.to_digit(10));
    digits.map(|digit| digit as usize).collect()
}

proptest! {
    #[test]
    fn what_fits_is_told_and_nothing_is_changed(
        told in told(), layout in prop::sample::select(&LAYOUTS[..]), share in 0usize..=110,
    ) {
        let whole = told.prompt(layout, AMPLE);
        let room = whole.len() * share / 100;
        let prompt = told.prompt(layout, room);
        prop_assert!(prompt.len() <= room.max(fixed(&told, layout)));
        prop_assert!(share < 100 || prompt == whole);

        // Of the earlier messages, the newest that fit, each complete.
        let kept = earlier(&prompt);
        let left_out = told.context.len() - kept.len();
        prop_assert!(kept.iter().copied().eq(left_out..told.context.len()), "{:?}", kept);
        for spoken in &told.context[left_out..] {
            prop_assert!(prompt.contains(&layout.line(spoken)));
        }
        if let Some(next) = told.context[..left_out].last() {
            let between = match layout {
                Plain => 2,
                _ if kept.is_empty() => layout.headers().context.len() + 3,
                _ => 1,
            };
            prop_assert!(prompt.len() + between + layout.line(next).len() > room);
        }

        // The last message is complete, or cut at its end with the number of missing bytes.
        let message = &told.message.text;
        if !prompt.contains(&format!("Last: {message}")) {
            prop_assert!(kept.is_empty());
            let (_, cut) = prompt.rsplit_once("Last: ").unwrap();
            let (start, rest) = cut.rsplit_once("\n[… ").unwrap();
            let missing: usize = rest.split_once(' ').unwrap().0.parse().unwrap();
            prop_assert!(start.len() >= MESSAGE_LEAST && message.starts_with(start));
            prop_assert_eq!(start.len() + missing, message.len());
        }
    }
}

/// A prompt with a summary, in the given room.
fn with_summary(layout: Layout, summary: &str, room: usize) -> FittedPrompt {
    let told = full();
    let recalled = told.recalled();
    let material = Material {
        system: "You are Max.",
        system_apart: false,
        task: Some("Ship it."),
        summary: Some(summary),
        recalled: &recalled,
        intent: Intent::P2,
    };
    prompt(layout, &material, room)
}

#[test]
fn the_summary_stands_before_the_earlier_messages() {
    for (layout, header) in [
        (Claude, "[SUMMARY]"),
        (Codex, "[SUMMARY]"),
        (Gemini, "Summary of earlier messages:"),
        (Plain, "Summary of earlier messages:"),
    ] {
        let fitted = with_summary(layout, "Tea was chosen.", AMPLE);
        let section = format!("\n\n{header}\nTea was chosen.");
        let place = fitted.text.find(&section).unwrap();
        assert!(fitted.text[..place].ends_with("Ship it."), "{layout:?}");
        // Everything else is as it was.
        let without = fitted.text.replacen(&section, "", 1);
        assert_eq!(without, full().prompt(layout, AMPLE));
        assert_eq!(fitted.left_out, 0);
    }
}

#[test]
fn a_long_summary_is_cut_and_goes_before_the_last_message_does() {
    let long = "tea ".repeat(10_000);
    for layout in LAYOUTS {
        let text = with_summary(layout, &long, 8_000).text;
        assert!(text.len() <= 8_000, "{layout:?}: {}", text.len());
        assert!(text.contains("tea tea") && text.contains("bytes are missing here"));
        let whole = full().prompt(layout, AMPLE).len();
        assert!(with_summary(layout, &long, whole / 4).text.len() <= whole);
        assert!(!with_summary(layout, &long, 0).text.contains("tea"));
    }
}
