//! Two sessions side by side.

use anstyle::Style;
use tertulia_core::diff::words::{WordOp, words};
use tertulia_core::diff::{Comparison, Item, SideBySide};
use tertulia_engine::text::columns::{Span, folded, row_width};

use super::marked::{MarkedLine, Printing};
use super::unified::unchanged;
use crate::ui::{ADDED, BOLD, DIM, REMOVED};

/// Separator of the two sides.
const BETWEEN: &str = " │ ";

/// One line of a side.
type Line = Vec<Span<Style>>;

/// Calls `print` with each part of the difference, in `width` columns.
pub fn print(
    comparison: &Comparison<'_>,
    printing: Printing,
    width: usize,
    mut print: impl FnMut(&str),
) {
    print("\n");
    let side = (width - BETWEEN.chars().count()) / 2;
    for row in comparison.rows() {
        let (left, right) = match row {
            SideBySide::Equal(count) => {
                let text = format!(" {count} equal {} ", comparison.scope.items(count));
                let rule = "─".repeat(width.saturating_sub(text.len()) / 2);
                let line = printing.styled(DIM, &format!("{rule}{text}{rule}"));
                print(&format!("{line}\n"));
                continue;
            }
            SideBySide::Only(a, b) => (
                only(printing, "- ", REMOVED, a),
                only(printing, "+ ", ADDED, b),
            ),
            SideBySide::Changed(a, b) => changed(printing, a, b),
        };
        print(&beside(printing, &left, &right, side));
    }
}

fn span(style: Style, text: impl Into<String>) -> Span<Style> {
    Span {
        style,
        text: text.into(),
    }
}

fn only(printing: Printing, mark: &str, style: Style, item: Option<&Item<'_>>) -> Vec<Line> {
    let Some(item) = item else {
        return Vec::new();
    };
    let heading = format!("{mark}{}", printing.heading(item));
    let mut lines = vec![vec![span(style.bold(), heading)]];
    let text = printing.safe(&item.text()).replace('\t', "    ");
    let text = text.trim_end_matches('\n').split('\n');
    lines.extend(text.map(|line| vec![span(style, format!("{mark}{line}"))]));
    lines
}

fn changed(printing: Printing, a: &Item<'_>, b: &Item<'_>) -> (Vec<Line>, Vec<Line>) {
    let (text_a, text_b) = (a.text(), b.text());
    let parts = words(&text_a, &text_b);
    let side = |item: &Item<'_>, own: WordOp| {
        let heading = format!("~ {}", printing.heading(item));
        let mut lines = vec![vec![span(BOLD, heading)]];
        let marked = printing.changed_lines(&parts, |op| op == WordOp::Equal || op == own);
        lines.extend(marked.into_iter().map(|line| match line {
            MarkedLine::Unchanged(count) => vec![span(DIM, format!("  {}", unchanged(count)))],
            MarkedLine::Words(mut spans) => {
                spans.insert(0, span(Style::new(), "  "));
                spans
            }
        }));
        lines
    };
    (side(a, WordOp::Delete), side(b, WordOp::Insert))
}

/// Sets the lines of both sides side by side, each folded to `side` columns.
fn beside(printing: Printing, left: &[Line], right: &[Line], side: usize) -> String {
    let fold = |lines: &[Line]| -> Vec<Line> {
        lines.iter().flat_map(|line| folded(line, side)).collect()
    };
    let (left, right) = (fold(left), fold(right));
    let styled = |row: Option<&Line>| -> String {
        let spans = row.into_iter().flatten();
        spans
            .map(|span| printing.styled(span.style, &span.text))
            .collect()
    };
    let mut text = String::new();
    for at in 0..left.len().max(right.len()) {
        let padding = side - left.get(at).map_or(0, |row| row_width(row)).min(side);
        let line = format!(
            "{}{}{}{}",
            styled(left.get(at)),
            " ".repeat(padding),
            printing.styled(DIM, BETWEEN),
            styled(right.get(at))
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let empty = " ".repeat(side) + &printing.styled(DIM, BETWEEN);
    text.push_str(empty.trim_end());
    text.push('\n');
    text
}
