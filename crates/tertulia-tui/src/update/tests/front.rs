//! Overlays, drawn on the whole screen.

use tertulia_core::entry::Relation;
use tertulia_core::query::{Hidden, Hits, Listing, Row, SessionHits};
use tertulia_core::session::Parent;

use tertulia_engine::error::ErrorKind;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::*;
use crate::effect::IfOpen;
use crate::error::TuiError;
use crate::host::Exported;
use crate::rewind::Moment;
use crate::state::Layer;
use crate::stats::{Amount, Figures};
use crate::store_service::{Family, Listed, Searched};
use crate::test_support::{hit, said, session};

const TEXT: &str = "I think that the parser drops the last line when it ends without a newline.";

fn refusal(words: &str) -> TuiError {
    TuiError {
        kind: ErrorKind::Failed,
        message: words.to_owned(),
        hints: vec!["look at the disk".to_owned()],
    }
}

/// A session list that is open and filled.
fn picking() -> Play {
    let mut play = Play::talked();
    play.keys("/sessions");
    let effects = play.effects(Event::Key(key("enter")));
    let listing = Listing {
        rows: vec![
            session(1, "Fix the parser", 0),
            session(2, "Übergabe 漢字", 50),
            session(3, "Release notes", 3_000),
        ],
        hidden: Hidden {
            elsewhere: 12,
            trashed: 3,
        },
        ..Listing::default()
    };
    let ticket = ticket(&effects, "list");
    play.answer(Answer::Picker(ticket, Ok(Listed::Page(listing))));
    play
}

#[test]
fn sessions_are_listed_looked_into_and_tidied_up() {
    let mut play = picking();
    let items = vec![
        said(1, "You", SpeakerKind::Human, 91, "Why is it slow?"),
        said(2, "demo", SpeakerKind::Ai, 90, TEXT),
    ];
    // A wide screen shows the preview by itself.
    let effects = play.effects(Event::Resize(Size::new(120, 40)));
    let beside = ticket(&effects, "preview");
    play.answer(Answer::Picker(beside, Ok(Listed::Preview(items.clone()))));
    seen!("picker", play);
    let effects = play.effects(Event::Key(key("down")));
    assert!(effects.is_empty());
    let effects = play.effects(Event::Key(key("space")));
    let ticket = ticket(&effects, "preview");
    play.answer(Answer::Picker(ticket, Ok(Listed::Preview(items))));
    seen!("preview", play);
    play.keys("<space><^r>");
    seen!("rename", play);
    assert_eq!(play.keys("!<enter>"), ["rename Übergabe 漢字!"]);
    play.keys("<^t>");
    seen!("tag", play);
    assert_eq!(
        play.keys("+release -old<enter>"),
        [r#"tag +["release"] -["old"]"#]
    );
    play.keys("<^x>");
    seen!("trash", play);
    assert_eq!(play.keys("y"), [format!("trash {}", id(2).short())]);
    play.answer(Answer::Trashed(
        id(2),
        Ok(Box::new(session(2, "Übergabe 漢字", 50))),
    ));
    seen!("trashed", play);
    play.sees("\"Übergabe 漢字\" moved to trash · Alt+U undo");
    play.answer(Answer::Renamed(Err(refusal("somebody else has it open"))));
    play.sees("somebody else has it open");
    assert_eq!(play.keys("<^f>"), ["fork None"]);
    let forked = crate::host::Forked {
        row: session(9, "Release notes (fork)", 0),
        recovered: false,
    };
    let wanted = play.answer(Answer::Forked(Ok(Box::new(forked))));
    assert_eq!(wanted, ["cancel", "leave"]);
    assert_eq!(play.state.next, Some(Next::resume(id(9))));
}

#[test]
fn another_session_is_gone_on_with() {
    let mut play = picking();
    assert_eq!(play.keys("<enter>"), [""; 0], "it is this one");
    assert!(play.state.overlays.is_empty());
    let mut play = picking();
    assert_eq!(play.keys("<down><enter>"), ["cancel", "leave"]);
    assert_eq!(play.state.next, Some(Next::resume(id(2))));
    let mut play = picking();
    play.keys("<esc>");
    assert!(play.state.overlays.is_empty() && play.state.phase == Phase::Open);
}

#[test]
fn everything_is_searched() {
    let mut play = Play::talked();
    play.keys("/search parser");
    let effects = play.effects(Event::Key(key("enter")));
    let hits = Hits {
        hits: (1..5)
            .map(|number| {
                hit(
                    number,
                    &format!("Talk {number} 漢字"),
                    number + 3,
                    90,
                    ("parser", TEXT),
                )
            })
            .collect(),
        total: 230,
        sessions: (1..100)
            .map(|number| SessionHits {
                session: id(number),
                count: 2,
            })
            .collect(),
        elsewhere: 4,
        ..Hits::default()
    };
    let found = Answer::Search(ticket(&effects, "search"), Ok(Searched::Found(hits)));
    let effects = play.effects(Event::Answer(Box::new(found)));
    let around = vec![said(4, "Ann", SpeakerKind::Human, 9, TEXT)];
    let ticket = ticket(&effects, "around");
    play.answer(Answer::Search(ticket, Ok(Searched::Around(around))));
    seen!("search", play);
    play.keys("<down>");
    assert_eq!(play.keys("<enter>"), ["cancel", "leave"]);
    let next = Next::Resume {
        id: id(2),
        at: Some(Seq(5)),
        draft: None,
        team: None,
        if_open: IfOpen::Ask,
    };
    assert_eq!(play.state.next, Some(next));
}

#[test]
fn a_search_takes_no_hits_of_one_that_was_closed() {
    let mut play = Play::talked();
    play.keys("/search parser");
    let first = play.effects(Event::Key(key("enter")));
    play.keys("<esc>/search lock<enter>");
    let hits = Hits {
        hits: vec![hit(1, "About the parser", 4, 90, ("parser", TEXT))],
        total: 1,
        ..Hits::default()
    };
    play.answer(Answer::Search(
        ticket(&first, "search"),
        Ok(Searched::Found(hits)),
    ));
    play.sees_no("About the parser");
}

#[test]
fn nothing_is_forked_while_an_agent_answers() {
    let mut play = picking();
    play.keys("<esc>go on<enter>");
    play.durable(message(person(), "go on"));
    play.keys("/sessions");
    let effects = play.effects(Event::Key(key("enter")));
    let listing = Listing {
        rows: vec![session(2, "Übergabe 漢字", 50)],
        ..Listing::default()
    };
    play.answer(Answer::Picker(
        ticket(&effects, "list"),
        Ok(Listed::Page(listing)),
    ));
    assert_eq!(play.keys("<^f>"), [""; 0]);
    play.sees("an agent is answering");
}

#[test]
fn a_family_and_figures_are_shown() {
    let mut play = Play::talked();
    assert_eq!(play.keys("/tree<enter>"), ["remember /tree", "tree"]);
    let mut fork = session(2, "Fix the parser (fork)", 50);
    fork.meta.parent = Some(Parent {
        id: id(1),
        seq: Seq(2),
        relation: Relation::Fork,
    });
    let rows: Vec<Row> = vec![session(1, "Fix the parser", 90), fork];
    let family = Family {
        rows,
        complete: false,
    };
    play.answer(Answer::Tree(id(1), Ok(family)));
    seen!("tree", play);
    play.keys("<esc>");
    assert_eq!(play.keys("/stats<enter>"), ["remember /stats", "stats"]);
    let amount = |messages| Amount {
        messages,
        tokens: Usage::told(messages * 100, messages * 10),
    };
    let figures = Figures {
        of: "Fix the parser".to_owned(),
        sessions: 1,
        days: vec![(noon().to_zoned(jiff::tz::TimeZone::UTC).date(), amount(12))],
        agents: vec![("demo".to_owned(), amount(6))],
        models: vec![("demo-1".to_owned(), amount(6))],
    };
    play.answer(Answer::Stats(id(1), Ok(figures)));
    seen!("stats", play);
}

#[test]
fn one_goes_back_to_what_was_said() {
    let mut play = Play::talked();
    play.keys("<esc>");
    let effects = play.effects(Event::Key(key("esc")));
    let moments = vec![
        Moment::new(Seq(3), before(10), "And how is it mended? 漢字"),
        Moment::new(Seq(1), before(20), "Why is it slow?\nSince when?"),
    ];
    let ticket = ticket(&effects, "moments");
    play.answer(Answer::Rewind(id(1), ticket, Ok((moments, false))));
    seen!("rewind", play);
    assert_eq!(play.keys("<down><enter>"), ["words 1"]);
    let words = Answer::Words(id(1), Seq(1), Ok("Why is it slow?\nSince when?".to_owned()));
    assert_eq!(play.answer(words), ["fork Some(0)"]);
    let forked = crate::host::Forked {
        row: session(9, "fork", 0),
        recovered: false,
    };
    let wanted = play.answer(Answer::Forked(Ok(Box::new(forked))));
    assert_eq!(wanted, ["cancel", "leave"]);
    let next = Next::Resume {
        id: id(9),
        at: None,
        draft: Some("Why is it slow?\nSince when?".to_owned()),
        team: None,
        if_open: IfOpen::Ask,
    };
    assert_eq!(play.state.next, Some(next));
}

#[test]
fn the_help_opens_at_what_is_on_the_screen() {
    let first = |play: &mut Play, keys: &str, expected: &str| {
        play.keys(keys);
        let seen = play.at((80, 24));
        assert_eq!(seen.lines().nth(2), Some(expected), "{seen}");
        play.keys("<f1>");
        assert!(!matches!(play.state.overlays.last(), Some(Layer::Help(_))));
    };
    let mut play = Play::talked();
    first(&mut play, "<f1>", "Commands");
    first(&mut play, "/<f1>", "Completing");
    play.keys("<esc><^u><^o>");
    first(&mut play, "<f1>", "The full transcript");
    play.keys("<f1>");
    for (key, meaning) in [
        ("/", "find words"),
        ("N", "next match"),
        ("V", "messages"),
        ("o", "unfold"),
    ] {
        let rows = play.seen();
        let is_row = |line: &&str| line.trim_start().starts_with(key) && line.contains(meaning);
        assert!(rows.lines().any(|line| is_row(&line)), "{key} in {rows}");
    }
    play.keys("/deleted last<enter>");
    play.sees("Ctrl+Y");
    let mut play = picking();
    first(&mut play, "<f1>", "The list of sessions (type to search)");
    play.sees("Übergabe");
    let mut play = Play::asked();
    play.live(LiveEvent::Permission(1, Box::new(request())));
    first(&mut play, "<f1>", "Questions");
    assert!(matches!(
        play.state.overlays.last(),
        Some(Layer::Question(_))
    ));
}

#[test]
fn a_click_chooses_a_session_and_a_second_one_resumes_it() {
    let mut play = picking();
    let seen = play.at((80, 24));
    let row = seen.lines().position(|line| line.contains("Release notes"));
    let row = u16::try_from(row.unwrap()).unwrap();
    let click = || {
        Event::Mouse(MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: 10,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    play.event(click());
    play.sees("› Release notes");
    assert!(play.state.next.is_none());
    play.event(click());
    assert!(play.state.next.is_some());
}

#[test]
fn footers_name_the_way_out_at_80_columns() {
    let mut play = picking();
    let last = |play: &mut Play, row: usize| {
        let seen = play.at((80, 24));
        seen.lines().rev().nth(row).unwrap_or_default().to_owned()
    };
    for _ in 0..2 {
        let foot = last(&mut play, 0);
        assert!(foot.contains("Tab") && foot.contains("Esc back"), "{foot}");
        play.keys("<tab>");
    }
    let mut play = Play::talked();
    play.keys("<^o>");
    let foot = last(&mut play, 1);
    assert!(
        foot.contains("Esc back") && foot.contains("o unfold · a all"),
        "{foot}"
    );
}

#[test]
fn help_and_sheets_are_read() {
    let mut play = Play::talked();
    play.keys("<f1>");
    seen!("help", play);
    play.keys("<esc>/info<enter>");
    seen!("info", play);
    let copied = play.keys("y");
    assert!(copied[0].contains(&id(1).to_string()), "{copied:?}");
    play.keys("<esc>");
    let lines = [
        "- one",
        "+ other",
        "Both have entries 1 to 2.",
        "",
        "  same",
        "- red",
        "+ blue",
    ];
    play.answer(Answer::Compared(
        id(1),
        "other".to_owned(),
        Ok(lines.map(str::to_owned).to_vec()),
    ));
    seen!("compared", play);
    play.keys("<esc>");
    assert!(play.state.overlays.is_empty());
}

#[test]
fn what_cannot_be_done_is_told_until_it_is_read() {
    let mut play = Play::talked();
    play.answer(Answer::Exported(Err(refusal("the file is there already"))));
    seen!("failure", play);
    assert!(play.keys("<^y>")[0].starts_with("copy Not exported\nthe file"));
    // What is being typed goes to the input, and Enter sends none of it.
    assert_eq!(play.keys("can you<enter>"), [""; 0]);
    assert!(play.state.overlays.is_empty());
    assert_eq!(play.input(), "can you");
    play.keys("<^u>");
    let exported = Exported {
        path: "/tmp/talk.md".into(),
        bytes: 12,
        notes: vec!["thoughts are left out".to_owned()],
    };
    play.answer(Answer::Exported(Ok(exported)));
    play.sees("written: /tmp/talk.md");
    play.sees("thoughts are left out");
}

#[test]
fn answers_about_another_session_are_passed_over() {
    let mut play = Play::talked();
    let words = Ok("words".to_owned());
    assert!(play.answer(Answer::Words(id(2), Seq(1), words)).is_empty());
    let family = Family {
        rows: Vec::new(),
        complete: true,
    };
    play.answer(Answer::Tree(id(2), Ok(family)));
    play.answer(Answer::Stats(id(2), Ok(Figures::default())));
    play.answer(Answer::Compared(id(2), "x".to_owned(), Ok(Vec::new())));
    assert!(play.state.overlays.is_empty());
}

#[test]
fn each_lies_over_the_other() {
    let mut play = picking();
    play.live(LiveEvent::Permission(1, Box::new(request())));
    play.wait(400);
    play.sees("file_edit");
    play.event(Event::Resize(Size::new(60, 20)));
    assert_eq!(play.keys("n<enter>"), ["verdict No"]);
    play.sees("Release notes");
    play.keys("<esc>");
    play.sees("Because of the lock");
}

#[test]
fn who_came_to_choose_a_session_leaves_without_one() {
    for way_out in ["<esc>", "<^c>"] {
        let mut play = Play::chat();
        play.state.picks = true;
        play.paste("/sessions");
        play.keys("<enter>");
        assert_eq!(play.keys(way_out), ["cancel", "leave"], "{way_out}");
        assert_eq!((&play.state.next, play.state.signal), (&None, None));
    }
}

#[test]
fn a_change_is_taken_back() {
    let mut play = Play::talked();
    assert_eq!(play.keys("/undo<enter>"), ["remember /undo", "undo"]);
    let row = session(1, "Why is it slow?", 0);
    let words = "the title is \"Why is it slow?\" again".to_owned();
    let undone = crate::host::Undone { row, words };
    play.answer(Answer::Undone(Ok(vec![undone.clone()])));
    play.sees("the title is \"Why is it slow?\" again");
    let mut play = picking();
    let effects = play.answer(Answer::Undone(Ok(vec![undone])));
    assert_eq!(effects, ["list"]);
    play.sees("the title is \"Why is it slow?\" again");
    play.answer(Answer::Undone(Err(refusal("nothing to undo"))));
    play.sees("nothing to undo");
}

#[test]
fn a_failed_answer_is_asked_for_again() {
    let mut play = Play::talked();
    assert_eq!(play.keys("/retry<enter>"), ["remember /retry", "say "]);
    assert!(play.state.is_running());
    let mut play = Play::chat();
    assert_eq!(play.keys("/retry<enter>"), ["remember /retry"]);
    play.sees("no messages yet");
    let mut play = Play::open(info(Kind::Team));
    assert_eq!(play.keys("/retry<enter>"), ["remember /retry"]);
    play.sees("address the member again");
}
