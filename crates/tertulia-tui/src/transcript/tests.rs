//! Transcripts: keys in, screens out; and a long session costs no more than a short one.

mod cards;
mod find;
mod window;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::civil::date;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::style::Color;
use serde_json::json;
use tertulia_core::entry::{Speaker, ToolCall, ToolOutcome};

use super::*;
use crate::item::{Said, Tone, Used};
use crate::theme::Palette;
use crate::view;

const DARK: Theme = Theme::new(Palette::Dark);
const SCREEN: Size = Size {
    width: 80,
    height: 24,
};

fn said(seq: Option<u64>, name: &str, kind: SpeakerKind, text: &str) -> Item {
    Item {
        seq: seq.map(Seq),
        what: What::Said(Said {
            speaker: Speaker::plain(name, kind),
            to: Vec::new(),
            at: None,
            model: None,
            text: text.to_owned(),
            interrupted: false,
            streaming: false,
        }),
    }
}

fn agent(seq: u64, text: &str) -> Item {
    said(Some(seq), "ana", SpeakerKind::Ai, text)
}

fn speaking() -> Item {
    let mut item = said(None, "ana", SpeakerKind::Ai, "");
    if let What::Said(said) = &mut item.what {
        said.streaming = true;
    }
    item
}

fn tool(seq: u64, name: &str, arguments: serde_json::Value, output: Option<(&str, bool)>) -> Item {
    Item {
        seq: Some(Seq(seq)),
        what: What::Used(Used {
            speaker: Speaker::plain("ana", SpeakerKind::Ai),
            at: None,
            model: None,
            live: String::new(),
            call: ToolCall {
                id: format!("call-{seq}"),
                name: name.to_owned(),
                arguments,
            },
            output: output.map(|(text, worked)| (text.to_owned(), ToolOutcome::of(text, worked))),
            folded: true,
        }),
    }
}

/// Answers a request from a log of `total` messages.
fn load(total: u64, wanted: Wanted) -> Loaded {
    let (from, to) = match wanted {
        Wanted::Before { seq, count } => (seq.0.saturating_sub(count as u64).max(1), seq.0),
        Wanted::After { seq, count } => (seq.0 + 1, seq.0 + 1 + count as u64),
        Wanted::Around { seq, count } => {
            let half = count as u64 / 2;
            (seq.0.saturating_sub(half).max(1), seq.0 + half)
        }
    };
    let to = to.min(total + 1);
    Loaded {
        wanted,
        items: (from..to)
            .map(|seq| agent(seq, &format!("message {seq}")))
            .collect(),
        more_before: from > 1,
        more_after: to <= total,
    }
}

/// Answers all requests.
fn serve(transcript: &mut Transcript, total: u64) {
    while let Some(wanted) = transcript.wants() {
        assert!(transcript.put(load(total, wanted)), "{wanted:?}");
        transcript.fit(SCREEN, DARK);
    }
}

fn loaded(total: u64) -> Transcript {
    let mut transcript = Transcript::new(total);
    transcript.fit(SCREEN, DARK);
    serve(&mut transcript, total);
    transcript
}

fn of(items: Vec<Item>) -> Transcript {
    let mut transcript = Transcript::new(0);
    for item in items {
        transcript.push(item);
    }
    transcript.fit(SCREEN, DARK);
    transcript
}

fn screen(transcript: &mut Transcript, width: u16, height: u16) -> String {
    let size = Size { width, height };
    transcript.fit(size, DARK);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let drawn = terminal.draw(|frame| {
        view::transcript::draw(transcript, DARK, frame.area(), frame.buffer_mut());
    });
    drawn.unwrap();
    terminal.backend().to_string()
}

/// The visible rows as text.
fn seen(transcript: &Transcript) -> Vec<String> {
    transcript
        .rows()
        .map(|seen| seen.row.line.to_string())
        .collect()
}

fn press(transcript: &mut Transcript, keys: &str) -> Did {
    let mut did = Did::Nothing;
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        did = transcript.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    did
}

fn talk() -> Transcript {
    let mut question = said(
        Some(2),
        "Rosa",
        SpeakerKind::Human,
        "What is in `main.rs`?\n  And: why?",
    );
    if let What::Said(said) = &mut question.what {
        said.to = vec!["ana".to_owned(), "bo".to_owned()];
        said.at = Some("2026-11-16T09:30:00Z".parse().unwrap());
    }
    let mut answer = agent(
        6,
        "It has **one** function:\n\n```rust\nfn main() {}\n```\n\nThe key was [redacted:aws-key].",
    );
    if let What::Said(said) = &mut answer.what {
        said.model = Some("model-1".to_owned());
        said.at = Some("2026-11-15T23:59:00Z".parse().unwrap());
        said.interrupted = true;
    }
    let mut transcript = of(vec![
        agent(1, "Good morning. 早上好 👋🏽"),
        Item {
            seq: None,
            what: What::Restored { messages: 1 },
        },
        question,
        Item {
            seq: Some(Seq(3)),
            what: What::Thought {
                text: "They want to know what is in a file; I should look.".to_owned(),
                folded: false,
            },
        },
        tool(
            4,
            "file_read",
            json!({"path": "src/main.rs"}),
            Some(("fn main() {}\n", true)),
        ),
        tool(
            5,
            "shell",
            json!({"command": "cargo build --release --all-targets --features everything,and,more --quiet"}),
            Some(("a\nb", false)),
        ),
        answer,
        Item {
            seq: None,
            what: What::Notice {
                tone: Tone::Warning,
                text: "The answer was cut off.".to_owned(),
            },
        },
        tool(7, "grep", json!({}), None),
        said(Some(8), "bo", SpeakerKind::Ai, "Nothing to add."),
    ]);
    transcript.clock(TimeZone::UTC, date(2026, 11, 16));
    transcript
}

#[test]
fn a_talk_at_80_by_24() {
    insta::assert_snapshot!(screen(&mut talk(), 80, 24));
}

#[test]
fn a_talk_at_120_by_40_with_tools_unfolded() {
    let mut transcript = talk();
    transcript.fold_all(false);
    insta::assert_snapshot!(screen(&mut transcript, 120, 40));
}

#[test]
fn a_talk_in_a_corner() {
    insta::assert_snapshot!(screen(&mut talk(), 24, 9));
}

#[test]
fn no_screen_is_too_small() {
    let mut transcript = talk();
    transcript.fold_all(false);
    for (width, height) in [(1, 1), (2, 1), (1, 5), (3, 3), (9, 2), (10, 1), (200, 100)] {
        screen(&mut transcript, width, height);
        press(&mut transcript, "gvjjGk/x");
        screen(&mut transcript, width, height);
        press(&mut transcript, "\u{1b}\u{1b}");
    }
    let odd = KeyEvent::new(KeyCode::F(1), KeyModifiers::NONE);
    assert_eq!(transcript.key(odd), Did::Pass(odd));
    let mut nothing = Transcript::new(0);
    press(&mut nothing, "gGjkvVnNoay");
    screen(&mut nothing, 1, 1);
    transcript.fit(
        Size {
            width: 0,
            height: 0,
        },
        DARK,
    );
    transcript.scroll(-5);
    assert!(!screen(&mut transcript, 80, 24).is_empty());
}

#[test]
fn speakers_have_their_own_colours() {
    let mut transcript = talk();
    let style = |transcript: &Transcript, name: &str| {
        let rows: Vec<_> = transcript
            .rows()
            .map(|seen| seen.row.line.clone())
            .collect();
        let line = rows
            .iter()
            .find(|line| line.spans.first().is_some_and(|span| span.content == name));
        line.unwrap().spans[0].style
    };
    assert_eq!(style(&transcript, "bo"), DARK.speaker(1));
    assert_eq!(style(&transcript, "ana"), DARK.speaker(0));
    transcript.speakers(vec![("bo".to_owned(), Some("red".to_owned()))]);
    assert_eq!(Some(style(&transcript, "bo")), DARK.named("red"));
    assert_eq!(style(&transcript, "ana"), DARK.speaker(1));
}

/// Rows of messages of people have a bar in the gutter and a background over the whole width.
#[test]
fn messages_of_people_stand_out_with_and_without_colours() {
    let looks = |palette, width| {
        let mut transcript = of(vec![
            said(Some(1), "Rosa", SpeakerKind::Human, "first\n\nsecond"),
            agent(2, "answer"),
        ]);
        let (size, theme) = (Size { width, height: 8 }, Theme::new(palette));
        transcript.fit(size, theme);
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 8));
        view::transcript::draw(&transcript, theme, buffer.area, &mut buffer);
        let look = |row: u16| {
            let right = buffer[(width - 2, row)].bg;
            (buffer[(0, row)].symbol().to_owned(), right != Color::Reset)
        };
        (1..8).map(look).collect::<Vec<_>>()
    };
    let own = |bar: &str, shaded| vec![(bar.to_owned(), shaded); 4];
    assert_eq!(looks(Palette::Dark, 40)[..4], own("▌", true));
    assert_eq!(looks(Palette::Light, 40)[..4], own("▌", true));
    assert_eq!(looks(Palette::Plain, 40)[..4], own("▌", false));
    let others = vec![(" ".to_owned(), false); 3];
    assert_eq!(looks(Palette::Dark, 40)[4..], others);
    assert_ne!(looks(Palette::Plain, 19)[0].0, "▌", "no room for a gutter");
}

#[test]
fn the_end_is_followed_until_one_goes_up() {
    let mut transcript = loaded(50);
    assert!(transcript.follows());
    transcript.push(agent(51, "new"));
    transcript.fit(SCREEN, DARK);
    assert_eq!(seen(&transcript).last().unwrap(), "new");
    transcript.scroll(-1);
    let before = seen(&transcript);
    transcript.push(agent(52, "newer"));
    transcript.stream("ignored: nobody is speaking");
    transcript.fit(SCREEN, DARK);
    assert_eq!(seen(&transcript), before);
    // Its gap, its head and its text.
    assert_eq!(transcript.new_rows(), 3);
    assert!(screen(&mut transcript, 80, 24).contains("↓ 3 new lines · Ctrl+End"));
    transcript.page(1);
    assert!(transcript.follows() && transcript.new_rows() == 0);
    assert_eq!(seen(&transcript).last().unwrap(), "newer");
}

#[test]
fn the_scroll_bar_counts_rows() {
    let text: String = (0..200).map(|line| format!("line {line}\n\n")).collect();
    let mut transcript = Transcript::new(2);
    transcript.push(agent(1, "short"));
    transcript.push(agent(2, &text));
    transcript.fit(SCREEN, DARK);
    transcript.go_to_top();
    let top = transcript.extent().unwrap();
    assert_eq!((top.from, top.to), (0, u64::from(SCREEN.height)));
    assert!(top.total > 200, "{top:?}");
    transcript.page(1);
    let second = transcript.extent().unwrap();
    assert_eq!(second.from, u64::from(SCREEN.height) - 1);
    assert_eq!(second.total, top.total);
    transcript.go_to_end();
    let end = transcript.extent().unwrap();
    assert_eq!(end.to, end.total);
}

#[test]
fn text_that_streams_in_below_is_counted() {
    let mut transcript = loaded(50);
    transcript.push(speaking());
    transcript.stream("one\n");
    transcript.fit(SCREEN, DARK);
    transcript.scroll(-5);
    assert_eq!(transcript.new_rows(), 0, "{:?}", seen(&transcript));
    transcript.stream("\ntwo\n\nthree\n");
    transcript.fit(SCREEN, DARK);
    assert_eq!(transcript.new_rows(), 4);
}

#[test]
fn pages_overlap_by_a_row_and_lines_are_lines() {
    let mut transcript = loaded(50);
    let bottom = seen(&transcript);
    transcript.page(-1);
    let above = seen(&transcript);
    assert_eq!(above.last(), bottom.first());
    transcript.scroll(3);
    transcript.scroll(-3);
    assert_eq!(seen(&transcript), above);
    transcript.go_to_top();
    assert_eq!(seen(&transcript)[2], "message 1");
    transcript.scroll(-10);
    assert_eq!(seen(&transcript)[2], "message 1");
    transcript.go_to_end();
    assert_eq!(seen(&transcript), bottom);
}

#[test]
fn a_resize_keeps_what_is_read() {
    let words = |n: usize| (0..400).map(|w| format!("w{n}-{w} ")).collect::<String>();
    let mut transcript = of((1..20).map(|n| agent(n, &words(n as usize))).collect());
    transcript.scroll(-60);
    let top = seen(&transcript)[0].clone();
    let word = top.split(' ').next().unwrap();
    for width in [40, 33, 121, 12, 80] {
        transcript.fit(Size { width, height: 24 }, DARK);
        let now = seen(&transcript)[0].clone();
        assert!(
            format!("{now} ").contains(&format!("{word} ")),
            "{width}: {now} without {word}"
        );
        transcript.fit(SCREEN, DARK);
        assert_eq!(seen(&transcript)[0], top, "{width}");
    }
}

/// Five thousand pieces: the message is laid out once, and only its last block is rendered again.
#[test]
fn a_fast_answer_is_laid_out_once() {
    let mut transcript = loaded(50);
    transcript.push(speaking());
    transcript.fit(SCREEN, DARK);
    let before = transcript.made;
    let mut whole = String::new();
    for token in 0..5_000 {
        let text = if token % 50 == 49 {
            ".\n\n".to_owned()
        } else {
            format!("t{token} ")
        };
        whole.push_str(&text);
        transcript.stream(&text);
        if token % 10 == 0 {
            transcript.fit(SCREEN, DARK);
            assert!(transcript.follows());
        }
    }
    let mut done = agent(51, &whole);
    transcript.replace_last(std::mem::replace(&mut done, agent(51, &whole)));
    transcript.fit(SCREEN, DARK);
    assert!(
        transcript.made - before <= 2,
        "{}",
        transcript.made - before
    );
    let grown = seen(&transcript);
    assert_eq!(grown, seen(&of(vec![done])));
    assert_eq!(transcript.items.len(), 51);
    assert_eq!(transcript.total, 51);
}

/// A paste of half a megabyte and an answer of one endless line: each is laid out once, however the
/// view is scrolled.
#[test]
fn huge_messages_are_laid_out_once() {
    let pasted = "a pasted line of some forty characters.\n".repeat(12_500);
    let mut transcript = of(vec![
        said(Some(1), "Rosa", SpeakerKind::Human, &pasted),
        agent(2, &"endless ".repeat(25_000)),
    ]);
    for _ in 0..300 {
        transcript.page(-1);
        transcript.fit(SCREEN, DARK);
    }
    assert_eq!(transcript.made, 2);
    assert!(seen(&transcript)[5].starts_with("a pasted line"));
}

#[test]
fn tools_fold_one_by_one_and_all() {
    let mut transcript = talk();
    let lines = |transcript: &Transcript| {
        seen(transcript)
            .iter()
            .filter(|row| row.starts_with("  ▸"))
            .count()
    };
    assert_eq!(lines(&transcript), 3);
    press(&mut transcript, "o");
    assert_eq!(lines(&transcript), 2);
    press(&mut transcript, "a");
    transcript.fit(
        Size {
            width: 80,
            height: 50,
        },
        DARK,
    );
    assert_eq!(lines(&transcript), 0);
    assert!(seen(&transcript).contains(&"    path: src/main.rs".to_owned()));
    press(&mut transcript, "a");
    assert_eq!(lines(&transcript), 3);
    // A click on the head of a tool call does the same.
    let row = seen(&transcript)
        .iter()
        .position(|row| row.contains("▸ Read"))
        .unwrap();
    transcript.press(row as u16, 0);
    transcript.release();
    assert_eq!(lines(&transcript), 2);
}

#[test]
fn thoughts_grow_and_end() {
    let mut transcript = of(vec![]);
    transcript.think("First ");
    transcript.think("thought.");
    transcript.push(agent(1, "words"));
    transcript.think("Second.");
    transcript.fit(SCREEN, DARK);
    let shown = seen(&transcript).join("|");
    assert_eq!(shown, "|▸ thought: First thought.||ana|words||┊ Second.");
}

#[test]
fn what_is_copied_is_what_was_written() {
    let text = "Some *words*:\n\n- one\n- two\n\n```\n\tcode  with   spaces and so long that it has to be broken for this screen, that is sure\n```";
    let mut transcript = of(vec![agent(1, "before"), agent(2, text)]);
    assert_eq!(press(&mut transcript, "Vy"), Did::Copy(text.to_owned()));
    assert_eq!(
        press(&mut transcript, "Vky"),
        Did::Copy(format!("before\n\n{text}"))
    );
    assert!(!transcript.has_selection());
    // Code that was wrapped into two rows is one line again, with its tab and without its frame.
    let code = text.lines().find(|line| line.contains("code")).unwrap();
    assert_eq!(press(&mut transcript, "vkky"), Did::Copy(code.to_owned()));
    assert_eq!(press(&mut transcript, "vkkky"), Did::Copy(code.to_owned()));
    let row = |word: &str| {
        seen(&transcript)
            .iter()
            .position(|row| row.contains(word))
            .unwrap()
    };
    let (from, to) = (row("words"), row("one"));
    transcript.press(from as u16, 0);
    transcript.drag(to as i32, 0);
    assert_eq!(
        transcript.release(),
        Did::Copy("Some *words*:\n\n- one".to_owned())
    );
    transcript.press(to as u16, 0);
    transcript.drag(-1, 0);
    assert!(matches!(transcript.release(), Did::Copy(text) if text.starts_with("before")));
    assert_eq!(press(&mut transcript, "\u{1b}"), Did::Changed);
    assert_eq!(press(&mut transcript, "\u{1b}"), Did::Leave);
}

#[test]
fn dragging_within_a_line_copies_that_part() {
    let mut transcript = of(vec![agent(1, "Some **bold** words, 漢字 too.")]);
    let mut dragged = |from: u16, to: u16| {
        transcript.press(2, from);
        transcript.drag(2, to);
        let did = transcript.release();
        (did, seen(&transcript)[2].clone())
    };
    let row = "Some bold words, 漢字 too.";
    let check = |got: (Did, String), expected: &str| {
        assert_eq!(got, (Did::Copy(expected.to_owned()), row.to_owned()));
    };
    check(dragged(5, 8), "bold");
    check(dragged(8, 5), "bold");
    check(dragged(10, 99), "words, 漢字 too.");
    assert_eq!(dragged(3, 3).0, Did::Changed, "a click");
    assert_eq!(dragged(60, 70).0, Did::Changed, "nothing is there");
}

#[test]
fn a_code_block_is_copied_as_a_whole() {
    let text = "One:\n\n```rust\nfn a() {\n}\n```\n\n- two:\n\n  ```\n  b\n  c\n  ```\n\nend";
    let mut transcript = of(vec![
        agent(1, text),
        said(Some(2), "Rosa", SpeakerKind::Human, "ok"),
    ]);
    let copied = |code: &str| Did::Copy(code.to_owned());
    assert_eq!(press(&mut transcript, "y"), copied("b\nc"), "the last one");
    let row = |word: &str| seen(&transcript).iter().position(|row| row.contains(word));
    let (inside, outside) = (row("fn a").unwrap(), row("One").unwrap());
    for (row, expected) in [
        (inside, "fn a() {\n}"),
        (inside - 1, "fn a() {\n}"),
        (outside, "One:"),
    ] {
        transcript.press(row as u16, 0);
        assert_eq!(press(&mut transcript, "y"), copied(expected));
        assert!(!transcript.has_selection());
    }
    transcript.press(inside as u16, 0);
    assert_eq!(
        press(&mut transcript, "jy"),
        copied("fn a() {\n}"),
        "the selection"
    );
    let y = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);
    assert_eq!(of(vec![agent(1, "no code")]).key(y), Did::Pass(y));
}

#[test]
fn words_are_found_upwards_and_around() {
    let mut items: Vec<Item> = (1..200)
        .map(|seq| agent(seq, &format!("message {seq}")))
        .collect();
    items[20] = agent(21, "here is a **Needle** in\n\nthe needle's hay");
    items[100] = tool(
        101,
        "grep",
        json!({"pattern": "needle"}),
        Some(("hay\nhay\nneedle\n", true)),
    );
    let mut transcript = of(items);
    let shows =
        |transcript: &Transcript, text: &str| seen(transcript).iter().any(|row| row.contains(text));
    assert_eq!(press(&mut transcript, "/needle\n"), Did::Changed);
    assert!(
        shows(&transcript, "    needle"),
        "the last one, in a tool that was unfolded for it"
    );
    press(&mut transcript, "n");
    press(&mut transcript, "n");
    assert!(shows(&transcript, "the needle's hay"));
    press(&mut transcript, "n");
    press(&mut transcript, "n");
    assert!(shows(&transcript, "    needle"), "around the end");
    press(&mut transcript, "N");
    assert!(shows(&transcript, "Needle"));
    assert!(screen(&mut transcript, 80, 24).contains("Needle"));
    assert_eq!(
        press(&mut transcript, "/Needle's\n"),
        Did::NotFound("Needle's".to_owned())
    );
    assert_eq!(
        press(&mut transcript, "/a[b\n"),
        Did::NotFound("a[b".to_owned())
    );
    press(&mut transcript, "/typed");
    assert!(screen(&mut transcript, 80, 24).contains("/typed"));
}
