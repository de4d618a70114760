use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn usage(input: u64, output: u64, cache_read: u64, cache_written: u64) -> Usage {
    Usage {
        cache_read,
        cache_written,
        ..Usage::told(input, output)
    }
}

fn row(pattern: &str, since: Option<&str>, input: f64) -> PriceRow {
    PriceRow {
        pattern: pattern.to_owned(),
        since: since.map(|since| since.parse().unwrap()),
        price: Price::per_million(input, input, None, None),
    }
}

#[test]
fn patterns_match_whole_names() {
    for (pattern, text, expected) in [
        ("gpt-5", "gpt-5", true),
        ("gpt-5", "gpt-5-mini", false),
        ("gpt-5*", "gpt-5-mini", true),
        ("gpt-*-mini", "gpt-5-mini", true),
        ("gpt-*-mini", "gpt-mini", false),
        ("*", "", true),
        ("*mini*", "a-mini-b", true),
        ("claude-opus-5[*", "claude-opus-5[1m]", true),
        ("a*a", "a", false),
        ("", "x", false),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn cached_tokens_are_a_part_of_the_input() {
    let price = Price::per_million(2.0, 10.0, Some(0.2), Some(2.5));
    let cost = |usage| price.cost(&usage).dollars();
    assert_eq!(cost(usage(1_000_000, 0, 0, 0)), 2.0);
    assert_eq!(cost(usage(1_000_000, 0, 1_000_000, 0)), 0.2);
    assert_eq!(cost(usage(1_000_000, 100_000, 500_000, 100_000)), 2.15);
    // Figures that contradict each other cost no less than what they name.
    assert_eq!(cost(usage(0, 0, 1_000_000, 0)), 0.2);
    let plain = Price::per_million(2.0, 10.0, None, None);
    assert_eq!(
        plain.cost(&usage(10, 1, 5, 5)),
        plain.cost(&usage(10, 1, 0, 0))
    );
}

#[test]
fn small_costs_add_up_exactly() {
    let price = Price::per_million(0.1, 0.4, None, None);
    let one = price.cost(&usage(1, 0, 0, 0));
    let many: Cost = std::iter::repeat_n(one, 3_000_000).sum();
    assert_eq!(many.dollars(), 0.3);
    assert!(Cost::default().is_zero() && !one.is_zero());
}

#[test]
fn the_price_at_the_time_counts() {
    let table = PriceTable::default();
    let luna = table.schedule("gpt-5.6-luna");
    let cost = |moment: &str| {
        let price = luna.at(at(moment))?;
        Some(price.cost(&usage(1_000_000, 0, 0, 0)).dollars())
    };
    assert_eq!(cost("2026-07-08T23:59:59Z"), None);
    assert_eq!(cost("2026-07-09T00:00:00Z"), Some(1.0));
    assert_eq!(cost("2026-07-29T23:59:59Z"), Some(1.0));
    assert_eq!(cost("2026-07-30T00:00:00Z"), Some(0.2));
    assert_eq!(cost("2099-01-01T00:00:00Z"), Some(0.2));
}

#[test]
fn own_prices_come_first_and_specific_ones_before_general_ones() {
    let table = PriceTable::with(vec![
        row("claude-*", Some("2026-06-01"), 7.0),
        row("claude-opus-4-5", Some("2026-07-01"), 8.0),
        row("local", None, 0.0),
    ]);
    let cost = |model: &str, moment: &str| {
        let price = table.schedule(model).at(at(moment))?;
        Some(price.cost(&usage(1_000_000, 0, 0, 0)).dollars())
    };
    let opus = "claude-opus-4-5";
    // Until the user's own price holds, the list price does.
    assert_eq!(cost(opus, "2026-05-01T00:00:00Z"), Some(5.0));
    assert_eq!(cost(opus, "2026-06-01T00:00:00Z"), Some(7.0));
    assert_eq!(cost(opus, "2026-07-01T00:00:00Z"), Some(8.0));
    assert_eq!(cost("claude-new", "2026-07-01T00:00:00Z"), Some(7.0));
    assert_eq!(cost("local", "1990-01-01T00:00:00Z"), Some(0.0));
    assert_eq!(cost("unheard-of", "2026-07-01T00:00:00Z"), None);
}

#[test]
fn variants_of_a_model_have_their_own_price() {
    let table = PriceTable::default();
    let input = |model: &str| {
        let price = table.schedule(model).at(at("2026-11-01T00:00:00Z"))?;
        Some(price.cost(&usage(1_000_000, 0, 0, 0)).dollars())
    };
    assert_eq!(input("gpt-5"), Some(1.25));
    assert_eq!(input("gpt-5-2025-08-07"), Some(1.25));
    assert_eq!(input("gpt-5-mini"), Some(0.25));
    assert_eq!(input("claude-sonnet-4-5-20250929"), Some(3.0));
    assert_eq!(input("anthropic/claude-sonnet-4-5"), Some(3.0));
    assert_eq!(input("models/gemini-2.5-pro"), Some(1.25));
    // Another seller's price is not known.
    assert_eq!(input("bedrock/claude-sonnet-4-5"), None);
    assert_eq!(input("claude-opus-5[1m]"), Some(5.0));
    assert_eq!(input("claude-opus-5-5"), Some(4.0));
    assert_eq!(input("gpt-5-turbo-max"), None);
}

#[test]
fn the_built_in_list_is_sound() {
    let list: PriceList = toml::from_str(BUILT_IN).unwrap();
    assert_eq!(list.provider.len(), providers().len());
    let mut seen = std::collections::BTreeSet::new();
    for provider in providers() {
        assert!(
            provider.source.starts_with("https://"),
            "{}: {}",
            provider.name,
            provider.source
        );
        for listed in &provider.prices {
            assert!(listed.input > 0.0 && listed.output > listed.input);
            let cached = listed.cache_read.unwrap_or(0.0);
            assert!(cached < listed.input, "{:?}", listed.models);
            assert!(
                listed
                    .cache_written
                    .is_none_or(|price| price >= listed.input)
            );
            for model in &listed.models {
                assert!(
                    seen.insert((model.clone(), listed.since)),
                    "{model} has two prices on {}",
                    listed.since
                );
            }
        }
        let newest = provider.prices.iter().map(|listed| listed.since).max();
        // A date after the list was taken is a change that the provider announced.
        assert!(newest.is_some_and(|newest| newest.year() <= provider.noted.year() + 1));
    }
}
