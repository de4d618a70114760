use super::*;
use std::time::{Duration, Instant};

use proptest::prelude::*;

fn next(text: &str) -> Vec<(String, Intent)> {
    let next = parse(text).next.into_iter();
    next.map(|one| (one.name, one.intent)).collect()
}

fn check_next(text: &str, expected: &[(&str, Intent)]) {
    let expected: Vec<(String, Intent)> = expected
        .iter()
        .map(|(name, intent)| ((*name).to_owned(), *intent))
        .collect();
    assert_eq!(next(text), expected, "{text:?}");
}

fn check_drop(text: &str, expected: Option<&[&str]>) {
    let names = |names: &[&str]| match names {
        ["*"] => Drop::All,
        names => Drop::Names(names.iter().map(|name| (*name).to_owned()).collect()),
    };
    assert_eq!(parse(text).drop, expected.map(names), "{text:?}");
}

fn check_shown(text: &str, expected: &str) {
    assert_eq!(shown(text), expected, "{text:?}");
}

use Intent::{P1, P2, P3};

#[test]
fn addressees_are_read_in_order() {
    check_next("[NEXT: bob]", &[("bob", P2)]);
    check_next(
        "hi [next:bob] and [Next: carol , dan]!",
        &[("bob", P2), ("carol", P2), ("dan", P2)],
    );
    check_next(
        "[NEXT: Max the Great, 李雷, a.b/c@d]",
        &[("Max the Great", P2), ("李雷", P2), ("a.b/c@d", P2)],
    );
    check_next("[NEXT: a, , b,]", &[("a", P2), ("b", P2)]);
    check_next("[NEXT: a,\n b]", &[("a", P2), ("b", P2)]);
    check_next("nobody", &[]);
}

#[test]
fn intents_follow_names() {
    check_next(
        "[NEXT: a!P1, b!p2, c !P3, d  !p1]",
        &[("a", P1), ("b", P2), ("c", P3), ("d", P1)],
    );
    check_next("[NEXT: a！p1]", &[("a", P1)]);
    check_next(
        "[NEXT: a!P4, b!, c!high, !P1, d!P1!P3]",
        &[
            ("a!P4", P2),
            ("b!", P2),
            ("c!high", P2),
            ("!P1", P2),
            ("d!P1", P3),
        ],
    );
}

/// Decoration is part of the name as written, but hides neither a priority nor `ALL`.
#[test]
fn intents_are_seen_through_what_stands_around_a_name() {
    check_next(
        "[NEXT: `a`, @b, **c!P1**, `d !p3`, \"e\"!P1]",
        &[("`a`", P2), ("@b", P2), ("c", P1), ("d", P3), ("\"e\"", P1)],
    );
    check_next("[NEXT: **!P1**]", &[("**!P1**", P2)]);
    check_drop("[DROP: `ALL`]", Some(&["*"]));
    check_drop("[DROP: **all**]", Some(&["*"]));
    check_drop("[DROP: @a]", Some(&["@a"]));
}

#[test]
fn a_list_of_names_has_an_end() {
    let many = "a, ".repeat(300);
    let Some(Drop::Names(names)) = parse(&format!("[DROP: {many}]")).drop else {
        panic!("no names");
    };
    assert_eq!(names.len(), MOST_NAMES);
    check_drop(&format!("[DROP: {many} ALL]"), Some(&["*"]));
}

#[test]
fn what_says_nothing_is_no_marker() {
    for text in [
        "[NEXT:]",
        "[NEXT: ]",
        "[NEXT: , ,]",
        "[FROM: ]",
        "[TEAM_TASK:\n]",
        "[DROP:]",
    ] {
        assert_eq!(parse(text), Markers::default(), "{text:?}");
        check_shown(text, text);
    }
    for text in [
        "[NEXT bob]",
        "NEXT: bob",
        "[NEXT: bob",
        "[ NEXT: bob]",
        "[NEXTBOB: x]",
        "[DONE]",
    ] {
        assert_eq!(parse(text), Markers::default(), "{text:?}");
        check_shown(text, text);
    }
}

#[test]
fn the_first_sender_and_the_last_task_count() {
    let read = parse("[FROM: ann] [from: bob] [TEAM_TASK: one] [team_task:  two words ]");
    assert_eq!(read.from.as_deref(), Some("ann"));
    assert_eq!(read.task.as_deref(), Some("two words"));
    let read = parse("[TEAM_TASK: one\n\n- two, [x\n] [TEAM_TASK: ]");
    assert_eq!(read.task.as_deref(), Some("one\n\n- two, [x"));
}

#[test]
fn all_markers_stand_together() {
    let read = parse("[FROM: ann][DROP: bob][TEAM_TASK: t][NEXT: carol!P1] go");
    assert_eq!(
        read,
        Markers {
            next: vec![Addressee {
                name: "carol".into(),
                intent: P1
            }],
            from: Some("ann".into()),
            task: Some("t".into()),
            drop: Some(Drop::Names(vec!["bob".into()])),
        }
    );
    check_shown(
        "[FROM: ann][DROP: bob][TEAM_TASK: t][NEXT: carol!P1] go",
        " go",
    );
}

#[test]
fn drops_are_read() {
    check_drop("[DROP: ALL]", Some(&["*"]));
    check_drop("[drop:all]", Some(&["*"]));
    check_drop("[DROP:  All ] [DROP: a]", Some(&["*"]));
    check_drop("[DROP: a] [DROP: b, all!P1]", Some(&["*"]));
    check_drop("[DROP: a!P1, b !p3] [DROP: c]", Some(&["a", "b", "c"]));
    check_drop("[DROP: ]", None);
    check_drop("[DROP: allan]", Some(&["allan"]));
    check_drop("none", None);
}

#[test]
fn an_opening_that_is_never_closed_swallows_nothing() {
    check_next("[NEXT: is how you [NEXT: bob]", &[("bob", P2)]);
    check_next("write [NEXT: to\n\nand then x[0]", &[]);
    check_next("write [NEXT: to\n```\nx[0]\n```\n]", &[]);
    check_shown(
        "write [NEXT: to\n\nand then x[0]",
        "write [NEXT: to\n\nand then x[0]",
    );
}

#[test]
fn a_marker_in_code_does_not_count_and_stays() {
    for text in [
        "```\n[NEXT: bob]\n```\n",
        "~~~~ text\n~~~\n[NEXT: bob]\n~~~~\n",
        "   ```\n[DROP: ALL]\n   ```",
        "```[NEXT: bob]\nnever closed [FROM: x]",
        "say `[NEXT: bob]`, or ``[NEXT: ` bob]``",
        "> ```\n> [NEXT: bob]\n> ```\n",
        "1. see\n   ```\n   [NEXT: bob]\n   ```\n",
    ] {
        assert_eq!(parse(text), Markers::default(), "{text:?}");
        check_shown(text, text);
    }
    check_next("```\n[NEXT: bob]\n```\n[NEXT: ann]", &[("ann", P2)]);
    check_next("    ```\n[NEXT: bob]\n", &[("bob", P2)]);
    check_next("a ` b [NEXT: bob]", &[("bob", P2)]);
    let task = parse("[TEAM_TASK: mend `a[0]` now]").task;
    assert_eq!(task.as_deref(), Some("mend `a[0]` now"));
}

#[test]
fn a_marker_in_parentheses_or_quotes_does_not_count_and_stays() {
    for text in [
        "End with ([NEXT: bob]).",
        "(for instance [NEXT: bob], or nobody)",
        "say \"[NEXT: bob]\" or \"go on [NEXT: bob] now\"",
        "say '[NEXT: bob]'",
        "“[NEXT: bob]” «[NEXT: bob]» （[NEXT: bob]）",
    ] {
        check_next(text, &[]);
        check_shown(text, text);
    }
    for text in [
        "I'm done (really). [NEXT: bob]",
        "(see above) [NEXT: bob] (or not)",
        "the \"end\" [NEXT: bob] of \"it\"",
        "it's [NEXT: bob] ana's",
        ":( [NEXT: bob]\n)",
    ] {
        check_next(text, &[("bob", P2)]);
    }
}

#[test]
fn lines_of_markers_disappear_and_all_else_stays() {
    check_shown("hello [NEXT: bob] there", "hello there");
    check_shown("[NEXT: bob] [FROM: ann] there", "there");
    check_shown("see[NEXT: bob] there", "see there");
    check_shown("hello\n[NEXT: bob]\nthere\n", "hello\nthere\n");
    check_shown(
        "hello\r\n  [NEXT: bob] [DROP: a]\t\r\nthere\r\n",
        "hello\r\nthere\r\n",
    );
    check_shown("hello\n\n[NEXT: bob]", "hello\n\n");
    check_shown("[NEXT: bob]", "");
    check_shown("a [TEAM_TASK: x\ny] b\nc", "a b\nc");
    check_shown("a\n[TEAM_TASK: x\n\ny]\nc", "a\nc");
}

/// Regression: lines that begin with a brace, indentation and blank lines were once lost.
#[test]
fn code_in_a_reply_stays_as_it_is() {
    let reply = "Here:\n\n```json\n{\n    \"a\":  1\n}\n```\n\n\n{ not json\n\tfn x() {\n\n    }\n";
    check_shown(reply, reply);
    check_shown(&format!("{reply}[NEXT: bob]\n"), reply);
    check_shown(&format!("[FROM: ann]\n{reply}"), reply);
}

#[test]
fn a_long_task_is_cut_between_characters() {
    let fits = "x".repeat(TASK_LIMIT);
    assert_eq!(
        cut_task(&fits),
        TeamTask {
            text: fits.clone(),
            left_out: 0
        }
    );
    let task = cut_task(&format!("{}äöü", &fits[1..]));
    assert_eq!((task.text.len(), task.left_out), (TASK_LIMIT - 1, 6));
    assert!(fits.starts_with(&task.text));
}

/// With quadratic time this would take many minutes.
#[test]
fn long_hostile_texts_take_no_long_time() {
    let begun = Instant::now();
    for piece in ["[NEXT:", "[TEAM_TASK: a\n", "[NEXT: a]", "]"] {
        let text = piece.repeat(2_000_000 / piece.len());
        parse(&text);
        shown(&text);
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// Texts from pieces that are, or resemble, markers and code.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[NEXT: a, b!P1]".to_owned()),
        Just("[next:".to_owned()),
        Just("[TEAM_TASK: t\nu]".to_owned()),
        Just("[DROP: ALL]".to_owned()),
        Just("[FROM: ä]".to_owned()),
        Just("]".to_owned()),
        Just("`".to_owned()),
        Just("\n```\n".to_owned()),
        Just("\n~~~~\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n    ".to_owned()),
        "\\PC{0,6}",
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Without an opening there is no marker, and without a marker the text is unchanged.
    #[test]
    fn a_text_without_markers_is_shown_as_it_is(text in pieces()) {
        let plain = text.replace("[NEXT", "(").replace("[next", "(").replace("[TEAM_TASK", "(")
            .replace("[DROP", "(").replace("[FROM", "(");
        prop_assert_eq!(parse(&plain), Markers::default());
        prop_assert_eq!(shown(&plain), plain);
    }

    /// Only markers and adjacent white space are removed.
    #[test]
    fn nothing_but_markers_is_left_out(text in pieces()) {
        let found = find(&text);
        let mut kept = String::new();
        let mut at = 0;
        for marker in &found {
            kept.push_str(&text[at..marker.range.start]);
            at = marker.range.end;
        }
        kept.push_str(&text[at..]);
        let words = |text: &str| text.split_whitespace().collect::<String>();
        let shown = shown(&text);
        prop_assert_eq!(words(&shown), words(&kept));
        prop_assert!(!found.is_empty() || shown == text);
        let mut rest = text.chars();
        prop_assert!(shown.chars().all(|letter| rest.any(|other| other == letter)));
    }

    /// Markers in fenced code address no member and are shown unchanged.
    #[test]
    fn fenced_code_never_routes(
        before in "([a-z ]{0,9}\n\n){0,2}",
        mark in "[`~]",
        length in 3usize..6,
        indent in 0usize..4,
        info in "[a-z]{0,4}",
        inside in prop::collection::vec(pieces(), 0..4),
        closed: bool,
    ) {
        let fence = format!("{}{}", " ".repeat(indent), mark.repeat(length));
        // Removes fence characters, so that the fence cannot be closed early.
        let inside = inside.join("\n").replace(&mark, "");
        let end = if closed { format!("\n{fence}\n") } else { String::new() };
        let text = format!("{before}{fence}{info}\n{inside}{end}");
        prop_assert_eq!(parse(&text), Markers::default());
        prop_assert_eq!(shown(&text), text.clone());
        if closed {
            let text = format!("{text}[NEXT: bob]");
            prop_assert_eq!(next(&text), [("bob".to_owned(), P2)]);
        }
    }
}
