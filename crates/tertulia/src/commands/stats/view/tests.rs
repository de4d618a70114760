use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tertulia_core::entry::{Kind, Usage};
use tertulia_core::id::SessionId;
use tertulia_core::price::PriceTable;
use tertulia_core::stats::{Cell, Figures, FileUse, ReportScope, SLOT, SessionFacts, ToolUse};

use super::*;

fn id(n: u128) -> SessionId {
    SessionId::new(uuid::Uuid::from_u128(n))
}

/// Sessions of many days, models and agents, with long and wide names.
fn report(by: By) -> Report {
    let first: Timestamp = "2026-10-01T08:00:00Z".parse().unwrap();
    let mut cells = Vec::new();
    let mut sessions = Vec::new();
    for n in 0..30_i64 {
        let at = first + SignedDuration::from_hours(n * 35);
        cells.push(Cell {
            session: id(n.unsigned_abs().into()),
            slot: at.as_second() / SLOT,
            agent: Some(format!("agent-{}", n % 7).into()),
            model: Some(
                ["claude-opus-4-5", "日本語の長い名前のモデル", "x"][n as usize % 3].into(),
            ),
            messages: n.unsigned_abs() * 37,
            usage: Usage::told(n.unsigned_abs() * 100_000, 999_999),
        });
        sessions.push(SessionFacts {
            id: id(n.unsigned_abs().into()),
            kind: Kind::Chat,
            team: None,
            project: Some(format!("dir:/home/user/a/very/long/folder/name/{n}")),
            cwd: None,
            messages: 0,
            first: Some(at),
            last: Some(at + SignedDuration::from_mins(n)),
            trashed: false,
        });
    }
    let figures = Figures::new(cells, sessions, &PriceTable::default(), &TimeZone::UTC);
    let mut report = Report::new(&figures, ReportScope::default(), by);
    for session in &mut report.longest {
        session.title =
            Some("ein sehr langer Titel, der nirgends ganz hineinpasst 題名".to_owned());
    }
    report.tools = (1..12)
        .map(|n| ToolUse {
            name: format!("tool_with_a_name_{n}"),
            sessions: 1,
            calls: n * 1000,
            failed: n % 2,
            ..ToolUse::default()
        })
        .collect();
    report.files = (1..12)
        .map(|n| FileUse {
            path: format!("/w/src/a/b/c/d/e/f/g/h/i/j/k/日本語/{n}.rs"),
            sessions: 1,
            reads: n,
            writes: n,
            last: first,
        })
        .collect();
    report
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [40, 60, 80, 109, 110, 140, 160] {
        let look = Look {
            width: columns,
            colours: false,
        };
        for (by, is_chosen) in [
            (By::Day, false),
            (By::Day, true),
            (By::Session, true),
            (By::Project, true),
            (By::Tool, true),
            (By::File, true),
            (By::Hour, true),
        ] {
            let text = screen(&report(by), is_chosen, &look, "/w");
            for line in text.lines() {
                // The heat map has a fixed width.
                let most = if line.contains(['·', '░']) || line.contains("03    06") {
                    columns.max(55)
                } else {
                    columns
                };
                assert!(width(line) <= most, "{columns} {by:?}: {line}");
            }
        }
    }
}

#[test]
fn everything_is_there_at_a_glance() {
    let look = Look {
        width: 80,
        colours: false,
    };
    let text = screen(&report(By::Day), false, &look, "/w");
    for wanted in [
        "all projects, all time",
        "Sessions  30",
        "By day",
        "Models",
        "Agents",
        "Projects",
        "Tools",
        "Files",
        "Longest sessions",
        "Busiest hours",
        "  Mon  ",
        "█",
        "earlier days: --by day",
        "2 more: --by agent",
        "no price",
        "without a price: ",
        "claude-opus-4-5",
    ] {
        assert!(text.contains(wanted), "no {wanted} in\n{text}");
    }
    // Days without messages are shown, so that a gap looks like one.
    let days = text.lines().filter(|line| line.contains(" Nov ")).count();
    assert_eq!(days, 12, "{text}");
}

#[test]
fn wide_terminals_have_two_columns() {
    let look = Look {
        width: 140,
        colours: false,
    };
    let text = screen(&report(By::Day), false, &look, "/w");
    let line = text.lines().find(|line| line.starts_with("Models"));
    assert!(line.is_some_and(|line| line.contains("Agents")), "{text}");
}

#[test]
fn styles_do_not_move_columns() {
    let draw = |colours| {
        let look = Look {
            width: 140,
            colours,
        };
        screen(&report(By::Day), false, &look, "/w")
    };
    let painted = draw(true);
    assert!(painted.contains('\u{1b}'));
    assert_eq!(
        anstream::adapter::strip_str(&painted).to_string(),
        draw(false)
    );
}

#[test]
fn nothing_is_said_to_be_nothing() {
    let none = Figures::new(
        Vec::new(),
        Vec::new(),
        &PriceTable::default(),
        &TimeZone::UTC,
    );
    let report = Report::new(&none, ReportScope::default(), By::Day);
    let look = Look {
        width: 80,
        colours: false,
    };
    let text = screen(&report, false, &look, "/w");
    assert!(text.contains("Nothing to count here."), "{text}");
}

#[test]
fn the_end_of_a_path_is_kept() {
    assert_eq!(ending("src/main.rs", 20), "src/main.rs");
    assert_eq!(ending("src/main.rs", 8), "…main.rs");
    assert_eq!(ending("a/日本語.rs", 8), "…本語.rs");
}
