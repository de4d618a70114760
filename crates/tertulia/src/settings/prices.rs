//! The user's own prices: `[prices."MODEL"]`.

use jiff::civil::Date;
use tertulia_core::price::{HIGHEST, Price, PriceRow};
use toml::{Table, Value};

use super::values::Reader;

/// Settings of a price.
pub const KEYS: &[&str] = &["input", "output", "cache_read", "cache_written", "since"];

/// Returns the tables of a model: one, or a list of them with different dates.
pub fn tables(value: &Value) -> Option<Vec<&Table>> {
    match value {
        Value::Table(table) => Some(vec![table]),
        Value::Array(values) => values.iter().map(Value::as_table).collect(),
        _ => None,
    }
}

/// Reads the price of the models that a pattern matches. An invalid price is reported and left out:
/// a guess would be shown as a cost.
pub fn row(reader: &Reader<'_>, pattern: &str, table: &Table) -> Option<PriceRow> {
    let mut sound = true;
    let mut amount = |key: &str| {
        let value = table.get(key)?;
        let amount = dollars(value);
        if amount.is_none() {
            reader.expected(key, "a number of dollars per million tokens, from 0 up");
            sound = false;
        }
        amount
    };
    let (input, output) = (amount("input"), amount("output"));
    let (cache_read, cache_written) = (amount("cache_read"), amount("cache_written"));
    for key in ["input", "output"] {
        if !table.contains_key(key) {
            reader.tell(key, "is missing: a price needs both input and output");
            sound = false;
        }
    }
    let since = table.get("since").map(date);
    if since == Some(None) {
        reader.expected("since", "a date such as \"2026-01-01\"");
        sound = false;
    }
    let price = Price::per_million(input?, output?, cache_read, cache_written);
    sound.then(|| PriceRow {
        pattern: pattern.to_owned(),
        since: since.flatten(),
        price,
    })
}

fn dollars(value: &Value) -> Option<f64> {
    let amount = match value {
        Value::Float(amount) => *amount,
        Value::Integer(amount) => f64::from(i32::try_from(*amount).ok()?),
        _ => return None,
    };
    (0.0..=HIGHEST).contains(&amount).then_some(amount)
}

/// Reads a date, in quotes or as TOML's own.
fn date(value: &Value) -> Option<Date> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Datetime(moment) if moment.time.is_none() => moment.to_string().parse().ok(),
        _ => None,
    }
}
