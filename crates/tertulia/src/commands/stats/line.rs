//! One line for a shell prompt. A prompt is drawn often, so each call looks at the newest sessions
//! and at some of the others, for a moment; the next call goes on.

use std::process::ExitCode;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use serde_json::{Value, json};
use tertulia_core::price::PriceTable;
use tertulia_core::query::Filter;
use tertulia_core::stats::{Amount, By, Figures};
use tertulia_formats::stats::{compact, money, usd};
use tertulia_store::{Extent, Ledger, Progress, StoreResult};

use crate::error::CommandResult;
use crate::open::Workspace;
use crate::ui::Ui;

/// Time to bring the ledger up to date.
const BUDGET: Duration = Duration::from_millis(20);
/// How long to wait for another process that does.
const PATIENCE: Duration = Duration::from_millis(2);

pub fn run(workspace: &Workspace, filter: &Filter, ui: &mut Ui) -> CommandResult<ExitCode> {
    let (ledger, current) = match newest(workspace, Ledger::of(store(workspace), PATIENCE)) {
        Ok(ledger) => ledger,
        // A ledger that another process holds is read as it is; one that cannot be used at all is
        // made in memory.
        Err(_) => match Ledger::of(store(workspace), PATIENCE) {
            Ok(ledger) => (ledger, false),
            Err(_) => newest(workspace, Ledger::in_memory())?,
        },
    };
    let zone = TimeZone::system();
    let now = workspace.sessions.clock().now().to_zoned(zone.clone());
    let filter = Filter {
        since: start_of_week(&now),
        ..filter.clone()
    };
    let prices = PriceTable::with(workspace.settings.prices.clone());
    let figures = Figures::new(ledger.cells(&filter)?, Vec::new(), &prices, &zone);
    let today = now.date().to_string();
    let mut days = figures.by(By::Day).into_iter();
    let today = days.find(|day| day.key.as_deref() == Some(&today));
    let today = today.map(|day| day.amount).unwrap_or_default();
    let week = figures.total();
    let partial = !current || !ledger.is_complete()?;
    if ui.json {
        let document =
            json!({ "today": figure(&today), "week": figure(&week), "partial": partial });
        ui.document(&document);
    } else {
        ui.line(&words(&today, &week, partial));
    }
    Ok(ExitCode::SUCCESS)
}

fn store(workspace: &Workspace) -> &dyn tertulia_store::Store {
    workspace.sessions.stored()
}

/// Brings a ledger up to date with the newest sessions. Returns whether there was enough time.
fn newest(workspace: &Workspace, ledger: StoreResult<Ledger>) -> StoreResult<(Ledger, bool)> {
    let mut ledger = ledger?;
    let progress = Progress::unseen().within(BUDGET);
    let done = workspace.wait(ledger.catch_up(store(workspace), Extent::Newest, &progress))?;
    Ok((ledger, !done.paused))
}

/// Returns Monday at midnight.
fn start_of_week(now: &Zoned) -> Option<Timestamp> {
    let days = i64::from(now.weekday().to_monday_zero_offset());
    let monday = now.date().checked_sub(days.days()).ok()?;
    let start = monday.to_zoned(now.time_zone().clone()).ok()?;
    Some(start.timestamp())
}

fn words(today: &Amount, week: &Amount, partial: bool) -> String {
    let cost = |amount: &Amount| money(amount).unwrap_or_else(|| "$?".to_owned());
    format!(
        "today {}↑ {}↓ {} · week {}{}",
        compact(today.usage.input),
        compact(today.usage.output),
        cost(today),
        cost(week),
        if partial { " …" } else { "" },
    )
}

fn figure(amount: &Amount) -> Value {
    json!({
        "tokens": { "input": amount.usage.input, "output": amount.usage.output },
        "cost": usd(amount),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia_core::entry::Usage;
    use tertulia_core::price::Price;

    #[test]
    fn the_line_is_short() {
        let usage = Usage::told(1_200_000, 34_000);
        let paid = Amount {
            usage,
            cost: Price::per_million(2.0, 10.0, None, None).cost(&usage),
            ..Amount::default()
        };
        let free = Amount {
            usage,
            unpriced: usage,
            ..Amount::default()
        };
        assert_eq!(
            words(&paid, &paid, false),
            "today 1.2M↑ 34k↓ $2.74 · week $2.74"
        );
        assert_eq!(
            words(&Amount::default(), &free, true),
            "today 0↑ 0↓ $0.00 · week $? …"
        );
    }

    #[test]
    fn weeks_begin_on_monday_at_midnight_of_the_zone() {
        let check = |now: &str, expected: &str| {
            let now: Zoned = now.parse().unwrap();
            let start = start_of_week(&now).unwrap();
            assert_eq!(start.to_string(), expected, "{now}");
        };
        check(
            "2026-11-17T12:00:00+01:00[Europe/Madrid]",
            "2026-11-15T23:00:00Z",
        );
        check(
            "2026-11-16T00:00:00+01:00[Europe/Madrid]",
            "2026-11-15T23:00:00Z",
        );
        check(
            "2026-11-15T23:59:59+01:00[Europe/Madrid]",
            "2026-11-08T23:00:00Z",
        );
    }
}
