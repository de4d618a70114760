//! Plots as SVG.

use std::fmt::Write;

use tertulia_core::stats::Group;

use super::figures::{compact, money};
use super::html::escaped;

/// Space for two labels side by side.
const LABELS: usize = 150;
/// Number of bars that fill the width.
const FEW: usize = 14;
/// Width of a plot, in units of its view box.
const WIDTH: usize = 720;
/// Height of the bars by time.
const HEIGHT: usize = 160;
/// Space below the bars for labels.
const FOOT: usize = 20;
/// Days of the week in the heat map.
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Draws groups of time as upright bars: tokens, or messages where no tokens are known.
pub(super) fn timeline(groups: &[Group]) -> String {
    let by_tokens = groups.iter().any(|group| group.amount.tokens() > 0);
    let height_of = |group: &Group| match by_tokens {
        true => group.amount.tokens(),
        false => group.amount.messages,
    };
    let most = groups.iter().map(height_of).max().unwrap_or(0).max(1);
    let total = HEIGHT + FOOT;
    let what = if by_tokens { "Tokens" } else { "Messages" };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {total}\" role=\"img\" aria-label=\"{what} over time\">\n"
    );
    // A few bars do not fill the page.
    let count = groups.len().max(FEW);
    for (place, group) in groups.iter().enumerate() {
        let (from, to) = (place * WIDTH / count, (place + 1) * WIDTH / count);
        let gap = usize::from(to - from > 3);
        let height = scaled(height_of(group), most, HEIGHT);
        let key = escaped(group.key.as_deref().unwrap_or_default());
        let cost = money(&group.amount).unwrap_or_else(|| "no price".to_owned());
        let _ = writeln!(
            svg,
            "<rect class=\"bar\" x=\"{from}\" y=\"{}\" width=\"{}\" height=\"{height}\"><title>{key}: {} tokens, {} messages, {}</title></rect>",
            HEIGHT - height,
            (to - from).saturating_sub(gap).max(1),
            compact(group.amount.tokens()),
            group.amount.messages,
            escaped(&cost),
        );
    }
    let label = |x: usize, anchor: &str, group: Option<&Group>| {
        let key = group.and_then(|group| group.key.as_deref());
        format!(
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>\n",
            total - 5,
            escaped(key.unwrap_or_default())
        )
    };
    svg.push_str(&label(0, "start", groups.first()));
    let end = groups.len() * WIDTH / count;
    if end >= LABELS {
        svg.push_str(&label(end, "end", groups.last()));
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws the messages of a week by day and hour.
pub(super) fn heat_map(heat: &[[u64; 24]; 7]) -> String {
    let (cell, left, top) = (28, 40, 18);
    let (width, height) = (left + 24 * cell, top + 7 * cell);
    let most = heat.iter().flatten().copied().max().unwrap_or(0).max(1);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Messages by weekday and hour\">\n"
    );
    for hour in (0..24).step_by(3) {
        let x = left + hour * cell;
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"12\">{hour:02}</text>");
    }
    for (row, (day, hours)) in WEEKDAYS.iter().zip(heat).enumerate() {
        let y = top + row * cell;
        let _ = writeln!(svg, "<text x=\"0\" y=\"{}\">{day}</text>", y + 18);
        for (hour, count) in hours.iter().enumerate() {
            // Few messages must still be visible.
            let shade = match count {
                0 => 0,
                count => 15 + scaled(*count, most, 85),
            };
            let _ = writeln!(
                svg,
                "<rect class=\"heat\" x=\"{}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill-opacity=\"{}\"><title>{day} {hour:02}:00: {count} messages</title></rect>",
                left + hour * cell,
                opacity(shade),
                side = cell - 2,
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws a share as a lying bar, for a table cell.
pub(super) fn share(part: u64, most: u64) -> String {
    let width = scaled(part, most.max(1), 100);
    format!(
        "<svg class=\"share\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"bar\" width=\"{width}\" height=\"8\"/></svg>"
    )
}

/// Scales a part of `most` to a length, at least one if there is anything.
fn scaled(part: u64, most: u64, length: usize) -> usize {
    let exact = u128::from(part) * length as u128 / u128::from(most);
    let exact = usize::try_from(exact).unwrap_or(length).min(length);
    exact.max(usize::from(part > 0))
}

fn opacity(percent: usize) -> String {
    match percent {
        100.. => "1".to_owned(),
        percent => format!("0.{percent:02}"),
    }
}
