use jiff::Timestamp;
use jiff::tz::TimeZone;
use tertulia_core::entry::{Kind, Usage};
use tertulia_core::id::SessionId;
use tertulia_core::price::{Price, PriceRow, PriceTable};
use tertulia_core::stats::{
    By, Cell, Figures, FileUse, Report, ReportScope, SLOT, SessionFacts, ToolUse,
};

use super::*;

const EVIL: &str = "<b onload='x'>&\"\u{202e}, evil";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn report(by: By) -> Report {
    let id: SessionId = "01890000-0000-7000-8000-000000000001".parse().unwrap();
    let cell = |day: u32, model: Option<&str>, messages, usage| Cell {
        session: id,
        slot: at(&format!("2026-11-{day}T10:00:00Z")).as_second() / SLOT,
        agent: model.map(|_| EVIL.into()),
        model: model.map(Into::into),
        messages,
        usage,
    };
    let cached = Usage {
        cache_read: 500_000,
        ..Usage::told(1_000_000, 100_000)
    };
    let cells = vec![
        cell(16, Some("paid"), 2, cached),
        cell(17, Some(EVIL), 1, Usage::told(7, 3)),
        cell(17, None, 4, Usage::default()),
    ];
    let facts = SessionFacts {
        id,
        kind: Kind::Chat,
        team: None,
        project: Some(format!("dir:/{EVIL}")),
        cwd: None,
        messages: 0,
        first: Some(at("2026-11-16T10:00:00Z")),
        last: Some(at("2026-11-17T10:00:30Z")),
        trashed: true,
    };
    let prices = PriceTable::with(vec![PriceRow {
        pattern: "paid".into(),
        since: None,
        price: Price::per_million(2.0, 10.0, Some(0.2), None),
    }]);
    let figures = Figures::new(cells, vec![facts], &prices, &TimeZone::UTC);
    let scope = ReportScope {
        project: Some(EVIL.to_owned()),
        tag: Some("red".to_owned()),
        ..ReportScope::default()
    };
    let mut report = Report::new(&figures, scope, by);
    report.tools = vec![ToolUse {
        name: EVIL.to_owned(),
        sessions: 1,
        calls: 3,
        ok: 1,
        failed: 1,
        denied: 1,
        unfinished: 0,
    }];
    report.files = vec![FileUse {
        path: format!("/{EVIL}"),
        sessions: 1,
        reads: 2,
        writes: 1,
        last: at("2026-11-17T10:00:00Z"),
    }];
    for session in &mut report.longest {
        session.title = Some(EVIL.to_owned());
    }
    for group in report.rows.iter_mut().filter(|_| by == By::Session) {
        group.title = Some(EVIL.to_owned());
    }
    report
}

#[test]
fn numbers_are_short() {
    for (number, expected) in [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (1049, "1.0k"),
        (9949, "9.9k"),
        (9951, "10k"),
        (34_400, "34k"),
        (999_400, "999k"),
        (999_500, "1.0M"),
        (1_250_000, "1.3M"),
        (12_400_000_000, "12G"),
        (u64::MAX, "18446744T"),
    ] {
        assert_eq!(compact(number), expected, "{number}");
    }
    for (amount, expected) in [
        (0.0, "$0.00"),
        (0.004, "<$0.01"),
        (0.005, "$0.01"),
        (3.414, "$3.41"),
        (999.99, "$999.99"),
        (1234.5, "$1234"),
    ] {
        assert_eq!(dollars(amount), expected, "{amount}");
    }
}

#[test]
fn the_document_has_the_agreed_fields() {
    let document = json(&report(By::Day));
    assert_eq!(document["totals"]["sessions"], 1);
    assert_eq!(document["totals"]["messages"], 7);
    assert_eq!(document["totals"]["tokens"]["input"], 1_000_007);
    assert_eq!(document["totals"]["tokens"]["cache_read"], 500_000);
    // 500 000 fresh at $2, 500 000 cached at $0.20, 100 000 out at $10.
    assert_eq!(document["totals"]["cost"]["usd"], 2.1);
    let unknown = &document["totals"]["cost"]["unknown_models"];
    assert_eq!(unknown[0]["model"], EVIL);
    assert_eq!(unknown[0]["tokens"]["output"], 3);
    assert_eq!(document["by"]["kind"], "day");
    let rows = document["by"]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["key"]), (2, &"2026-11-16".into()));
    assert_eq!(rows[0]["cost"], 2.1);
    assert!(rows[1]["cost"].is_null());
    assert_eq!(document["hours"].as_array().unwrap().len(), 24);
    assert_eq!(document["heat"][1][10], 5);
    assert_eq!(document["tools"][0]["name"], EVIL);
    assert_eq!(document["files"][0]["writes"], 1);
    assert_eq!(document["longest"][0]["duration_s"], 86_430);
    assert_eq!(document["scope"]["project"], EVIL);
    assert!(document["since"].is_null());
    let tools = json(&report(By::Tool));
    assert_eq!(tools["by"]["rows"][0]["key"], EVIL);
    assert_eq!(tools["by"]["rows"][0]["calls"], 3);
}

#[test]
fn the_table_quotes_what_needs_it() {
    let day = csv(&report(By::Day));
    assert_eq!(
        day,
        "day,sessions,messages,input,output,cache_read,cache_written,cost_usd\n\
         2026-11-16,1,2,1000000,100000,500000,0,2.1\n\
         2026-11-17,1,5,7,3,0,0,\n"
    );
    let quoted = format!("\"{}\"", EVIL.replace('"', "\"\""));
    let agents = csv(&report(By::Agent));
    assert_eq!(
        agents.lines().nth(1).unwrap(),
        format!("{quoted},1,3,1000007,100003,500000,0,2.1")
    );
    let tools = csv(&report(By::Tool));
    assert_eq!(
        tools.lines().nth(1).unwrap(),
        format!("{quoted},1,3,1,1,1,0")
    );
    let sessions = csv(&report(By::Session));
    assert!(
        sessions.starts_with("session,title,sessions,"),
        "{sessions}"
    );
    let files = csv(&report(By::File));
    assert!(files.ends_with(",1,2,1,2026-11-17T10:00:00Z\n"), "{files}");
}

#[test]
fn the_page_is_safe_and_complete() {
    for by in [By::Day, By::Week, By::Session, By::Team, By::Tool] {
        let page = html(&report(by));
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        for forbidden in ["<b ", "onload='", "\u{202e}", "<script", "http://", "src="] {
            assert!(!page.contains(forbidden), "{by:?} {forbidden}");
        }
        for wanted in [
            "&lt;b onload=&#39;x&#39;&gt;&amp;&quot;",
            "prefers-color-scheme: dark",
            "<svg",
            "$2.10+",
            "no price",
            "Without a price, and not part of the cost",
            "in the trash are counted, too: 1",
        ] {
            assert!(page.contains(wanted), "{by:?} {wanted}");
        }
        let opened = |tag: &str| page.matches(&format!("<{tag}")).count();
        let closed = |tag: &str| page.matches(&format!("</{tag}>")).count();
        for tag in ["svg", "table", "tr", "td", "h2", "title"] {
            assert_eq!(opened(tag), closed(tag), "{by:?} {tag}");
        }
    }
}

#[test]
fn an_empty_report_is_whole() {
    let none = Figures::new(
        Vec::new(),
        Vec::new(),
        &PriceTable::default(),
        &TimeZone::UTC,
    );
    let report = Report::new(&none, ReportScope::default(), By::Day);
    let document = json(&report);
    assert_eq!(document["totals"]["cost"]["usd"], 0.0);
    assert_eq!(document["by"]["rows"], serde_json::json!([]));
    assert_eq!(document["scope"]["all"], true);
    assert_eq!(csv(&report).lines().count(), 1);
    assert!(html(&report).contains("all projects"));
}
