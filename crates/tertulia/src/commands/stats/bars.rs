//! Bars, shades and numbers of the terminal view.

use tertulia_core::stats::Amount;
use tertulia_formats::stats::{compact, money};

/// Parts of a block, in eighths.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
/// Shades, from a few to the most.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// Returns a bar of at most `width` columns, filled up with spaces. Anything above zero is visible.
pub fn bar(part: u64, most: u64, width: usize) -> String {
    let eighths = match most {
        0 => 0,
        most => {
            let exact = u128::from(part) * (width as u128) * 8 / u128::from(most);
            let exact = usize::try_from(exact).unwrap_or(usize::MAX);
            exact.max(usize::from(part > 0)).min(width * 8)
        }
    };
    let mut bar = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(EIGHTHS[eighths % 8]);
    }
    let used = eighths.div_ceil(8);
    bar.push_str(&" ".repeat(width.saturating_sub(used)));
    bar
}

/// Returns the shade of a count; `·` for zero.
pub fn shade(count: u64, most: u64) -> char {
    if count == 0 || most == 0 {
        return '·';
    }
    let steps = (u128::from(count) * SHADES.len() as u128).div_ceil(u128::from(most));
    let step = usize::try_from(steps).unwrap_or(SHADES.len());
    SHADES[step.clamp(1, SHADES.len()) - 1]
}

/// Formats the tokens of an amount; estimated ones have a `~`.
pub fn tokens(amount: &Amount) -> String {
    let about = if amount.usage.estimated { "~" } else { "" };
    format!("{about}{}", compact(amount.tokens()))
}

/// Formats the cost of an amount.
pub fn cost(amount: &Amount) -> String {
    match amount.tokens() {
        0 => String::new(),
        _ => money(amount).unwrap_or_else(|| "no price".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_scaled() {
        for (part, most, width, expected) in [
            (0, 10, 4, "    "),
            (10, 10, 4, "████"),
            (5, 10, 4, "██  "),
            (1, 1000, 4, "▏   "),
            (9, 16, 2, "█▏"),
            (3, 0, 2, "  "),
            (u64::MAX, u64::MAX, 3, "███"),
            (5, 10, 0, ""),
        ] {
            assert_eq!(bar(part, most, width), expected, "{part} {most} {width}");
        }
    }

    #[test]
    fn shades_go_from_none_to_most() {
        let shades: String = (0..=8).map(|count| shade(count, 8)).collect();
        assert_eq!(shades, "·░░▒▒▓▓██");
        assert_eq!(shade(1, 1), '█');
        assert_eq!(shade(u64::MAX, u64::MAX), '█');
        assert_eq!(shade(1, 0), '·');
    }
}
