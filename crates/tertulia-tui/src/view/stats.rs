//! Draws the statistics.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{Look, counted, grouped, hints, write, write_right};
use crate::geometry::{row, rows};
use crate::stats::{Amount, Line, Measure, Stats};
use crate::text::{cut, width};
use crate::theme::Theme;

/// Maximum width of a name.
const NAME_COLUMNS: usize = 24;
/// Maximum width of a number.
const NUMBER_COLUMNS: usize = 15;
const EIGHTHS: [&str; 7] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const HEIGHTS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws the statistics.
pub fn draw(stats: &Stats, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let height = usize::from(area.height);
    let left = write_right(buffer, row(area, 0), &stats.figures().of, theme.dim());
    write(buffer, left, "Statistics", theme.heading());
    write(buffer, row(area, 1), &total(stats), theme.text());
    draw_sparkline(stats, theme, rows(area, 3, 2), buffer);
    let list = rows(area, 6, height.saturating_sub(7));
    let seen = usize::from(list.height);
    let top = stats.top(seen);
    for number in top..(top + seen).min(stats.lines()) {
        if let Some(line) = stats.line(number) {
            draw_line(
                &line,
                stats.measure(),
                theme,
                row(list, number - top),
                buffer,
            );
        }
    }
    let other = match stats.measure() {
        Measure::Messages => "tokens",
        Measure::Tokens => "messages",
    };
    let keys = [("Tab", other), ("↑↓", "scroll"), ("Esc", "back")];
    if height > 2 {
        hints(buffer, row(area, height - 1), theme, &keys);
    }
}

fn total(stats: &Stats) -> String {
    let total = stats.total();
    let mark = if total.tokens.estimated { "about " } else { "" };
    format!(
        "{} · {} · {mark}{} tokens read, {} written",
        counted(stats.figures().sessions, "session"),
        counted(total.messages, "message"),
        grouped(total.tokens.input),
        grouped(total.tokens.output),
    )
}

fn draw_sparkline(stats: &Stats, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let count = usize::from(area.width).min(90);
    let days = stats.last_days(count);
    let Some(most) = days.iter().max().filter(|most| **most > 0) else {
        return;
    };
    let line: String = days.iter().map(|day| spark(*day, *most)).collect();
    write(buffer, row(area, 0), &line, theme.speaker(0));
    let unit = unit(stats.measure());
    let words = format!(
        "the last {count} days, at most {} {unit} a day",
        grouped(*most)
    );
    write(buffer, row(area, 1), &words, theme.dim());
}

/// Vertical bar, one column wide. Any number above zero is visible.
fn spark(number: u64, most: u64) -> &'static str {
    if number == 0 {
        return " ";
    }
    let height = (u128::from(number) * 8).div_ceil(u128::from(most.max(1)));
    HEIGHTS[usize::try_from(height).unwrap_or(8).clamp(1, 8) - 1]
}

/// Horizontal bar in eighths of a column. Any number above zero is visible.
fn bar(number: u64, most: u64, columns: usize) -> String {
    let eighths = u128::from(number) * columns as u128 * 8 / u128::from(most.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(usize::MAX);
    let eighths = eighths.min(columns * 8).max(usize::from(number > 0));
    let part = match eighths % 8 {
        0 => "",
        part => EIGHTHS[part - 1],
    };
    format!("{}{part}", "█".repeat(eighths / 8))
}

fn unit(measure: Measure) -> &'static str {
    match measure {
        Measure::Messages => "messages",
        Measure::Tokens => "tokens",
    }
}

fn draw_line(line: &Line<'_>, measure: Measure, theme: Theme, area: Rect, buffer: &mut Buffer) {
    match line {
        Line::Gap => {}
        Line::Heading(heading) => {
            let heading = format!("{heading}, in {}", unit(measure));
            write(buffer, area, &heading, theme.heading());
        }
        Line::Bar(name, amount, most) => {
            draw_bar((name, *amount, *most), measure, theme, area, buffer);
        }
    }
}

fn draw_bar(
    (name, amount, most): (&str, Amount, u64),
    measure: Measure,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let columns = usize::from(area.width);
    let names = NAME_COLUMNS.min(columns / 3);
    let name = cut(name, names);
    let gap = " ".repeat((names + 2).saturating_sub(width(&name)));
    let left = write(buffer, area, &name, theme.text());
    let left = write(buffer, left, &gap, theme.text());
    let number = amount.by(measure);
    let room = usize::from(left.width).saturating_sub(NUMBER_COLUMNS + 1);
    let left = write(buffer, left, &bar(number, most, room), theme.speaker(0));
    write(buffer, left, &format!(" {}", grouped(number)), theme.dim());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_nothing_is_seen() {
        assert_eq!(bar(0, 100, 10), "");
        assert_eq!(bar(1, 1_000_000, 10), "▏");
        assert_eq!(bar(100, 100, 3), "███");
        assert_eq!(bar(50, 100, 3), "█▌");
        assert_eq!(bar(u64::MAX, u64::MAX, 2), "██");
        assert_eq!(bar(5, 0, 2), "██");
        assert_eq!(
            [spark(0, 9), spark(1, 1_000_000), spark(9, 9)],
            [" ", "▁", "█"]
        );
    }
}
