use super::*;
use crate::price::{Price, PriceRow};

fn id(n: u128) -> SessionId {
    SessionId::new(uuid::Uuid::from_u128(n))
}

fn cell(session: u128, at: &str, model: Option<&str>, messages: u64, tokens: (u64, u64)) -> Cell {
    let at: Timestamp = at.parse().unwrap();
    Cell {
        session: id(session),
        slot: at.as_second().div_euclid(SLOT),
        agent: model.map(|_| "ada".into()),
        model: model.map(Into::into),
        messages,
        usage: Usage::told(tokens.0, tokens.1),
    }
}

fn facts(n: u128, project: Option<&str>) -> SessionFacts {
    SessionFacts {
        id: id(n),
        kind: Kind::Chat,
        team: None,
        project: project.map(str::to_owned),
        cwd: None,
        messages: 0,
        first: None,
        last: None,
        trashed: n == 2,
    }
}

fn figures(zone: &str) -> Figures {
    let cells = vec![
        // Sunday 23:30 in UTC is Monday 05:15 in Kathmandu.
        cell(1, "2026-11-15T23:30:00Z", Some("paid"), 2, (1_000_000, 0)),
        cell(1, "2026-11-16T10:00:00Z", None, 3, (0, 0)),
        cell(2, "2026-11-16T10:20:00Z", Some("free"), 1, (5, 5)),
        cell(2, "2026-11-16T10:20:00Z", Some("paid"), 1, (0, 1_000_000)),
    ];
    let prices = PriceTable::with(vec![PriceRow {
        pattern: "paid".into(),
        since: None,
        price: Price::per_million(1.0, 2.0, None, None),
    }]);
    let sessions = vec![facts(1, Some("dir:/w")), facts(2, None)];
    let zone = match zone {
        "UTC" => TimeZone::UTC,
        _ => TimeZone::fixed(jiff::tz::Offset::from_seconds(5 * 3600 + 45 * 60).unwrap()),
    };
    Figures::new(cells, sessions, &prices, &zone)
}

fn keys(groups: &[Group]) -> Vec<&str> {
    let key = |group: &'_ Group| group.key.is_some();
    assert!(groups.iter().all(key));
    groups
        .iter()
        .filter_map(|group| group.key.as_deref())
        .collect()
}

#[test]
fn totals_add_up_and_name_what_has_no_price() {
    let figures = figures("UTC");
    let total = figures.total();
    assert_eq!((total.sessions, total.messages), (2, 7));
    assert_eq!(total.usage, Usage::told(1_000_005, 1_000_005));
    assert_eq!(total.dollars(), Some(3.0));
    assert_eq!(total.unpriced, Usage::told(5, 5));
    let unpriced = figures.unpriced();
    assert_eq!(unpriced.len(), 1);
    assert_eq!(unpriced[0].model.as_deref(), Some("free"));
    assert_eq!(figures.trashed(), 1);
}

#[test]
fn every_grouping_has_the_same_sum() {
    let figures = figures("UTC");
    let total = figures.total();
    for by in [
        By::Day,
        By::Week,
        By::Month,
        By::Hour,
        By::Project,
        By::Team,
        By::Session,
    ] {
        let groups = figures.by(by);
        let messages: u64 = groups.iter().map(|group| group.amount.messages).sum();
        let cost: Cost = groups.iter().map(|group| group.amount.cost).sum();
        assert_eq!((messages, cost), (total.messages, total.cost), "{by:?}");
    }
    // Messages of people belong to no model.
    let models = figures.by(By::Model);
    assert_eq!(keys(&models), ["paid", "free"]);
    assert_eq!(models[0].amount.messages, 3);
    assert_eq!(models[1].amount.dollars(), None);
    assert_eq!(figures.by(By::Tool), []);
}

#[test]
fn times_are_those_of_the_zone() {
    let utc = figures("UTC");
    assert_eq!(keys(&utc.by(By::Day)), ["2026-11-15", "2026-11-16"]);
    assert_eq!(keys(&utc.by(By::Week)), ["2026-W46", "2026-W47"]);
    assert_eq!(keys(&utc.by(By::Hour)), ["10", "23"]);
    assert_eq!((utc.heat()[6][23], utc.heat()[0][10]), (2, 5));
    let there = figures("Kathmandu");
    assert_eq!(keys(&there.by(By::Day)), ["2026-11-16"]);
    assert_eq!(keys(&there.by(By::Month)), ["2026-11"]);
    assert_eq!((there.heat()[0][5], there.hours()[15]), (2, 3));
    assert_eq!(there.hours().iter().sum::<u64>(), 7);
}

#[test]
fn the_last_days_of_december_belong_to_the_first_week_of_the_next_year() {
    let only = vec![cell(1, "2024-12-30T12:00:00Z", None, 1, (0, 0))];
    let figures = Figures::new(only, Vec::new(), &PriceTable::default(), &TimeZone::UTC);
    assert_eq!(keys(&figures.by(By::Week)), ["2025-W01"]);
}

#[test]
fn the_longest_have_the_most_messages() {
    let longest = figures("UTC").longest(1);
    assert_eq!(keys(&longest), [id(1).to_string()]);
    assert_eq!(longest[0].amount.messages, 5);
}

#[test]
fn projects_with_several_identities_are_one() {
    let mut figures = figures("UTC");
    figures.rename_projects(|id| (id == "dir:/w").then(|| "git:example.com/a/b".to_owned()));
    let groups = figures.by(By::Project);
    let keys: Vec<Option<&str>> = groups.iter().map(|group| group.key.as_deref()).collect();
    assert_eq!(keys, [None, Some("a/b")]);
}

#[test]
fn nothing_sums_to_nothing() {
    let none = Figures::new(
        Vec::new(),
        Vec::new(),
        &PriceTable::default(),
        &TimeZone::UTC,
    );
    assert_eq!(none.total(), Amount::default());
    assert_eq!(none.total().dollars(), Some(0.0));
    assert!(none.unpriced().is_empty() && none.by(By::Day).is_empty());
}

#[test]
fn days_without_messages_are_filled_in() {
    let day = |key: &str| Group {
        key: Some(key.to_owned()),
        title: None,
        amount: Amount {
            messages: 1,
            ..Amount::default()
        },
    };
    let filled = with_empty_days(&[day("2026-02-27"), day("2026-03-02")]);
    assert_eq!(
        keys(&filled),
        ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]
    );
    let messages: Vec<u64> = filled.iter().map(|group| group.amount.messages).collect();
    assert_eq!(messages, [1, 0, 0, 1]);
    // The newest days are kept of a span that is too long.
    let long = with_empty_days(&[day("1970-01-01"), day("2026-03-02")]);
    assert_eq!(long.len(), 3660);
    assert_eq!(keys(&long).last(), Some(&"2026-03-02"));
    assert_eq!(with_empty_days(&[]), []);
}

#[test]
fn a_model_with_a_larger_context_is_the_same_model() {
    let at = "2026-11-17T12:00:00Z";
    let cells = ["m", "m[1m]"].map(|model| cell(1, at, Some(model), 1, (10, 1)));
    let table = PriceTable::default();
    let figures = Figures::new(cells.to_vec(), Vec::new(), &table, &TimeZone::UTC);
    let groups = figures.by(By::Model);
    assert_eq!(keys(&groups), ["m"]);
    assert_eq!(groups[0].amount.usage.input, 20);
}
