//! Prices of models and the cost of usage.
//!
//! A price holds from a date on, so that usage costs what it cost at its time. The user's own prices
//! come before the built-in list prices of the providers.

#[cfg(test)]
mod tests;

use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::entry::Usage;

/// Built-in list prices.
const BUILT_IN: &str = include_str!("price/prices.toml");

/// Price units in a dollar per million tokens: a unit per token is 10⁻¹² dollars, so that costs are
/// exact sums.
const UNITS: f64 = 1_000_000.0;

/// Highest accepted price, in dollars per million tokens.
pub const HIGHEST: f64 = 1_000_000.0;

/// Returns the name of a model without the context size that Claude Code adds to it in brackets.
pub fn base_model(model: &str) -> &str {
    match model.split_once('[') {
        Some((base, _)) if model.ends_with(']') && !base.is_empty() => base,
        _ => model,
    }
}

/// Price of a model, in 10⁻¹² dollars per token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_written: u64,
}

impl Price {
    /// Returns the price for amounts in dollars per million tokens. Cached tokens without a price of
    /// their own cost as much as other input.
    pub fn per_million(
        input: f64,
        output: f64,
        cache_read: Option<f64>,
        cache_written: Option<f64>,
    ) -> Price {
        Price {
            input: units(input),
            output: units(output),
            cache_read: units(cache_read.unwrap_or(input)),
            cache_written: units(cache_written.unwrap_or(input)),
        }
    }

    /// Returns the cost of usage. Cached tokens are part of the input.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let fresh = usage
            .input
            .saturating_sub(usage.cache_read)
            .saturating_sub(usage.cache_written);
        let parts = [
            (fresh, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_written, self.cache_written),
        ];
        let sum = parts
            .iter()
            .map(|(tokens, price)| u128::from(*tokens) * u128::from(*price))
            .sum();
        Cost(sum)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped to the range before the cast"
)]
fn units(dollars: f64) -> u64 {
    (dollars.clamp(0.0, HIGHEST) * UNITS).round() as u64
}

/// An amount of money, in 10⁻¹² dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u128);

impl Cost {
    /// Returns the amount in dollars.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an amount that loses precision is beyond a thousand dollars, where cents remain"
    )]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / (UNITS * 1_000_000.0)
    }

    /// Returns true if the amount is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), Add::add)
    }
}

/// Where built-in prices come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceSource {
    /// Name of the provider.
    pub provider: &'static str,
    /// The provider's public price page.
    pub page: &'static str,
    /// Date as of which its prices were taken.
    pub noted: Date,
}

/// Returns where the built-in prices come from, one per provider.
pub fn sources() -> impl Iterator<Item = PriceSource> {
    providers().iter().map(|provider| PriceSource {
        provider: &provider.name,
        page: &provider.source,
        noted: provider.noted,
    })
}

/// Price of the models that a pattern matches, from a date on.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceRow {
    /// Name of a model; `*` stands for any characters.
    pub pattern: String,
    /// First day on which the price holds (UTC), or `None` if it always did.
    pub since: Option<Date>,
    /// The price.
    pub price: Price,
}

/// All known prices.
#[derive(Clone, Debug, Default)]
pub struct PriceTable {
    /// The user's own prices, which come first.
    own: Vec<PriceRow>,
}

/// Prices of one model: each holds from its time until the next, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule(Vec<(Timestamp, Price)>);

impl Schedule {
    /// Returns the price at a time.
    pub fn at(&self, at: Timestamp) -> Option<Price> {
        let held = self.0.iter().find(|(since, _)| *since <= at);
        held.map(|(_, price)| *price)
    }
}

impl PriceTable {
    /// Returns the built-in prices with the user's own before them.
    pub const fn with(own: Vec<PriceRow>) -> PriceTable {
        PriceTable { own }
    }

    /// Returns the prices of a model over time. At each time, the user's own rows count before
    /// built-in ones, then the most specific pattern, then the newest row.
    pub fn schedule(&self, model: &str) -> Schedule {
        let own = self.own.iter().map(|row| (true, row, model));
        let built_in = built_in().iter().map(|(provider, row)| {
            let mut prefixes = provider.prefixes.iter();
            let bare = prefixes.find_map(|prefix| model.strip_prefix(prefix.as_str()));
            (false, row, bare.unwrap_or(model))
        });
        let mut rows: Vec<Candidate> = own
            .chain(built_in)
            .filter(|(_, row, model)| matches(&row.pattern, model))
            .map(|(own, row, _)| Candidate {
                own,
                literal: row.pattern.bytes().filter(|byte| *byte != b'*').count(),
                since: row.since.map_or(Timestamp::MIN, start_of),
                price: row.price,
            })
            .collect();
        let rank = |row: &Candidate| (row.own, row.literal, row.since);
        let mut turns: Vec<Timestamp> = rows.iter().map(|row| row.since).collect();
        turns.sort_unstable();
        turns.dedup();
        rows.sort_by_key(|row| std::cmp::Reverse(rank(row)));
        let in_force = turns.into_iter().rev().filter_map(|turn| {
            let best = rows.iter().find(|row| row.since <= turn)?;
            Some((turn, best.price))
        });
        Schedule(in_force.collect())
    }
}

struct Candidate {
    own: bool,
    literal: usize,
    since: Timestamp,
    price: Price,
}

fn start_of(date: Date) -> Timestamp {
    let start = date.to_zoned(TimeZone::UTC);
    start.map_or(Timestamp::MIN, |start| start.timestamp())
}

/// Returns true if a pattern, in which `*` stands for any characters, matches a whole text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A provider in the built-in list.
#[derive(Debug, Deserialize)]
struct Provider {
    name: String,
    source: String,
    noted: Date,
    /// Prefixes that other programs put before its models.
    #[serde(default)]
    prefixes: Vec<String>,
    prices: Vec<ListPrice>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListPrice {
    models: Vec<String>,
    since: Date,
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_written: Option<f64>,
}

#[derive(Deserialize)]
struct PriceList {
    provider: Vec<Provider>,
}

/// Returns the built-in list. A test proves that it can be read.
fn providers() -> &'static [Provider] {
    static PROVIDERS: OnceLock<Vec<Provider>> = OnceLock::new();
    PROVIDERS.get_or_init(|| {
        let list: Result<PriceList, _> = toml::from_str(BUILT_IN);
        list.map(|list| list.provider).unwrap_or_default()
    })
}

fn built_in() -> &'static [(&'static Provider, PriceRow)] {
    static ROWS: OnceLock<Vec<(&'static Provider, PriceRow)>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows = Vec::new();
        for provider in providers() {
            for listed in &provider.prices {
                let price = Price::per_million(
                    listed.input,
                    listed.output,
                    listed.cache_read,
                    listed.cache_written,
                );
                rows.extend(listed.models.iter().map(|model| {
                    let row = PriceRow {
                        pattern: model.clone(),
                        since: Some(listed.since),
                        price,
                    };
                    (provider, row)
                }));
            }
        }
        rows
    })
}
