use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::*;
use crate::test_support::{any_size, look, screen};
use crate::view;

fn some() -> Status {
    Status {
        agent: AgentState::Ready,
        who: "Ada".to_owned(),
        model: Some("demo-1".to_owned()),
        title: Some("Fix the parser of the second stage".to_owned()),
        short: "a0010001".to_owned(),
        folder: Some("/home/ada/garden".to_owned()),
        is_elsewhere: false,
        restored: Some(42),
        messages: 45,
        tokens: Usage::told(1234, 340),
        context: Some(42),
        cost: Some(0.123),
        saving: Saving::Saved,
        team: None,
        pair: None,
        reading: false,
        policy: Some("approve: ask".to_owned()),
        permissions: None,
        unseen: 0,
    }
}

fn with(change: impl FnOnce(&mut Status)) -> Status {
    let mut status = some();
    change(&mut status);
    status
}

fn drawn(status: &Status, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        view::status::draw(status, look(), area, buffer);
        None
    })
}

fn line(status: &Status, columns: u16) -> String {
    drawn(status, (columns, 1)).trim_end().to_owned()
}

/// States that look different, one per row.
fn gallery(columns: u16) -> String {
    let states = [
        some(),
        with(|status| {
            status.agent = AgentState::Thinking;
            status.restored = None;
            status.title = None;
            status.cost = None;
            status.saving = Saving::Saving;
        }),
        with(|status| status.agent = AgentState::Speaking),
        with(|status| status.agent = AgentState::UsingTool("read_file".to_owned())),
        with(|status| status.agent = AgentState::Waiting("run_command".to_owned())),
        with(|status| status.agent = AgentState::Retrying { attempt: 2, of: 5 }),
        with(|status| {
            status.agent = AgentState::Failed;
            status.saving = Saving::Unsaved;
        }),
        with(|status| {
            status.agent = AgentState::Opening;
            status.saving = Saving::Nothing;
            status.tokens = Usage::default();
        }),
        with(|status| {
            status.agent = AgentState::Leaving;
            status.reading = true;
            status.unseen = 7;
        }),
        with(|status| {
            status.who = "漢字 \u{1b}[31m and a very long name indeed".to_owned();
            status.title = Some("漢字\nin two lines \u{7}".to_owned());
        }),
        with(|status| {
            let name = "review".to_owned();
            status.team = Some(TeamStatus { name, members: 4 });
        }),
        with(|status| {
            status.pair = Some(PairStatus {
                round: 3,
                remaining: "5 worker calls left".to_owned(),
                elapsed: SignedDuration::from_mins(12),
            });
        }),
    ];
    states
        .iter()
        .map(|status| line(status, columns) + "\n")
        .collect()
}

#[test]
fn every_state_reads_without_colours() {
    insta::assert_snapshot!("states_80", gallery(80));
    insta::assert_snapshot!("states_120", gallery(120));
    insta::assert_snapshot!("states_40", gallery(40));
}

#[test]
fn it_is_one_line_of_the_screen() {
    insta::assert_snapshot!("status_80", drawn(&some(), (80, 24)));
    insta::assert_snapshot!("status_120", drawn(&some(), (120, 40)));
}

#[test]
fn parts_go_in_a_fixed_order() {
    let status = with(|status| {
        status.agent = AgentState::UsingTool("read".to_owned());
        status.pair = Some(PairStatus {
            round: 3,
            remaining: "5 left".to_owned(),
            elapsed: SignedDuration::from_mins(12),
        });
        let name = "review".to_owned();
        status.team = Some(TeamStatus { name, members: 4 });
        status.reading = true;
        status.unseen = 2;
    });
    let mut gone: Vec<Kind> = Vec::new();
    let whole = status.parts(500);
    for columns in (0..300).rev() {
        let parts = status.parts(columns);
        let missing = whole
            .iter()
            .map(|part| part.kind)
            .filter(|kind| parts.iter().all(|part| part.kind != *kind));
        for kind in missing {
            if !gone.contains(&kind) {
                gone.push(kind);
            }
        }
    }
    let expected = [
        Kind::Folder,
        Kind::Messages,
        Kind::Tokens,
        Kind::Cost,
        Kind::Model,
        Kind::Elapsed,
        Kind::Context,
        Kind::Title,
        Kind::Policy,
        Kind::Team,
        Kind::Restored,
        Kind::Short,
        Kind::Unseen,
        Kind::Reading,
        Kind::Pair,
        Kind::Who,
    ];
    assert_eq!(gone, expected);
}

#[test]
fn the_urgent_word_stays_longest() {
    let failed = with(|status| status.agent = AgentState::Failed);
    assert_eq!(line(&failed, 15), "● FAILED  saved");
    assert_eq!(line(&failed, 14), "● FAILED     ✓");
    let both = with(|status| {
        status.agent = AgentState::Failed;
        status.saving = Saving::Unsaved;
    });
    assert_eq!(line(&both, 17), "● FAILED  UNSAVED");
    assert_eq!(line(&both, 16), "●        UNSAVED");
    assert_eq!(line(&both, 9), "●      !!");
    let quiet = with(|status| status.saving = Saving::Saving);
    assert_eq!(line(&quiet, 12), "●    saving…");
}

#[test]
fn what_is_wrong_is_loud() {
    let status = with(|status| {
        status.agent = AgentState::Failed;
        status.saving = Saving::Unsaved;
    });
    let area = Rect::new(0, 0, 80, 1);
    let mut buffer = Buffer::empty(area);
    view::status::draw(&status, look(), area, &mut buffer);
    let is_loud = |x: u16| buffer[(x, 0)].modifier.contains(Modifier::REVERSED);
    assert!((0..8).all(is_loud) && (73..80).all(is_loud));
    assert!(!(8..73).any(is_loud));
}

#[test]
fn numbers_stay_short() {
    let check = |number, expected: &str| assert_eq!(rounded(number), expected);
    check(0, "0");
    check(999, "999");
    check(1000, "1.0k");
    check(1299, "1.2k");
    check(9_999, "9.9k");
    check(10_000, "10k");
    check(999_999, "999k");
    check(1_250_000, "1.2M");
    check(u64::MAX, "18E");
    let usage = Usage {
        estimated: true,
        ..Usage::told(5, 0)
    };
    assert_eq!(tokens(usage).as_deref(), Some("~↑5 ↓0"));
    let check = |cost, expected: Option<&str>| assert_eq!(dollars(cost).as_deref(), expected);
    check(0.0, None);
    check(-1.0, None);
    check(f64::NAN, None);
    check(f64::INFINITY, None);
    check(0.001, Some("<$0.01"));
    check(12.345, Some("$12.35"));
    check(1e300, Some("$1000000000000000052504…"));
}

#[test]
fn endless_words_are_not_read_to_their_end() {
    let endless = "漢".repeat(1_000_000);
    let status = with(|status| {
        status.who.clone_from(&endless);
        status.title = Some(endless.clone());
        status.model = Some(endless.clone());
    });
    let parts = status.parts(80);
    let bytes: usize = parts.iter().map(|part| part.text.len()).sum();
    assert!(bytes < 1000, "{bytes}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_size_and_no_words_break_it(
        size in any_size(), words in any::<[String; 4]>(), number in any::<u64>(), cost in any::<f64>(),
    ) {
        let [who, model, title, tool] = words;
        let status = Status {
            agent: AgentState::UsingTool(tool.clone()),
            who,
            model: Some(model),
            title: Some(title),
            restored: Some(number),
            messages: number,
            tokens: Usage::told(number, number),
            cost: Some(cost),
            team: Some(TeamStatus { name: tool.clone(), members: 3 }),
            pair: Some(PairStatus { round: number, remaining: tool, elapsed: SignedDuration::MIN }),
            reading: true,
            unseen: 3,
            ..some()
        };
        drawn(&status, size);
        let columns = usize::from(size.0);
        let parts = status.parts(columns);
        prop_assert!(parts.first().is_some_and(|part| part.kind == Kind::State));
        prop_assert!(parts.last().is_some_and(|part| part.kind == Kind::Saving));
        // A dot, a gap and a mark.
        prop_assert!(columns < 4 || taken(&parts) <= columns);
    }
}

#[test]
fn another_folder_is_named_where_the_usual_one_is_not() {
    let elsewhere = with(|status| status.is_elsewhere = true);
    assert!(drawn(&elsewhere, (80, 24)).contains("in garden"));
    assert!(!drawn(&some(), (80, 24)).contains("in garden"));
    assert!(drawn(&some(), (160, 24)).contains("in garden"));
}
