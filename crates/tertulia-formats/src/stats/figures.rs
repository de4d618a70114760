//! Numbers as people read them.

use tertulia_core::stats::Amount;

/// Formats a number with at most four characters of digits: `950`, `34k`, `1.2M`.
pub fn compact(number: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ];
    // Rounding may reach the next unit: 999 950 is 1.0M, not 1000k.
    let Some((unit, sign)) = UNITS
        .into_iter()
        .find(|(unit, _)| number >= unit - unit / 2000 && number >= 1000)
    else {
        return number.to_string();
    };
    let tenths = (u128::from(number) * 10 + u128::from(unit) / 2) / u128::from(unit);
    match tenths {
        0..=99 => format!("{}.{}{sign}", tenths / 10, tenths % 10),
        _ => format!("{}{sign}", (tenths + 5) / 10),
    }
}

/// Formats an amount of dollars: `$0.00`, `<$0.01`, `$3.41`, `$1234`.
pub fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0.00".to_owned(),
        amount if amount < 0.005 => "<$0.01".to_owned(),
        amount if amount < 999.995 => format!("${amount:.2}"),
        amount => format!("${amount:.0}"),
    }
}

/// Formats the cost of an amount: with a `+` if some of its usage has no price, `None` if none of
/// it has.
pub fn money(amount: &Amount) -> Option<String> {
    let more = if amount.unpriced.is_empty() { "" } else { "+" };
    Some(format!("{}{more}", dollars(amount.dollars()?)))
}
