//! Two sessions one below the other, as in a unified diff.

use tertulia_core::align::Step;
use tertulia_core::diff::words::words;
use tertulia_core::diff::{Comparison, Item};

use super::marked::{MarkedLine, Printing};
use crate::ui::{ADDED, BOLD, DIM, REMOVED};

/// Calls `print` with each part of the difference.
pub fn print(comparison: &Comparison<'_>, printing: Printing, mut print: impl FnMut(&str)) {
    let mut equal = 0;
    for step in &comparison.steps {
        if let Step::Equal(..) = step {
            equal += 1;
            continue;
        }
        if equal > 0 {
            print(&equal_items(
                comparison,
                printing,
                std::mem::take(&mut equal),
            ));
        }
        print(&match *step {
            Step::OnlyA(a) => only(printing, '-', &comparison.a[a]),
            Step::OnlyB(b) => only(printing, '+', &comparison.b[b]),
            Step::Changed(a, b) => changed(printing, &comparison.a[a], &comparison.b[b]),
            Step::Equal(..) => String::new(),
        });
    }
    if equal > 0 {
        print(&equal_items(comparison, printing, equal));
    }
}

fn equal_items(comparison: &Comparison<'_>, printing: Printing, count: usize) -> String {
    let text = format!("= {count} equal {}", comparison.scope.items(count));
    format!("\n{}\n", printing.styled(DIM, &text))
}

fn only(printing: Printing, mark: char, item: &Item<'_>) -> String {
    let style = if mark == '-' { REMOVED } else { ADDED };
    let heading = format!("{mark} {}", printing.heading(item));
    let mut text = format!("\n{}\n", printing.styled(style.bold(), &heading));
    for line in printing
        .safe(&item.text())
        .trim_end_matches('\n')
        .split('\n')
    {
        let line = format!("{mark} {line}");
        text.push_str(&printing.styled(style, line.trim_end()));
        text.push('\n');
    }
    text
}

fn changed(printing: Printing, a: &Item<'_>, b: &Item<'_>) -> String {
    let heading = format!("~ {}  →  {}", printing.heading(a), printing.heading(b));
    let mut text = format!("\n{}\n", printing.styled(BOLD, &heading));
    let (text_a, text_b) = (a.text(), b.text());
    for line in printing.changed_lines(&words(&text_a, &text_b), |_| true) {
        let line = match line {
            MarkedLine::Unchanged(count) => printing.styled(DIM, &unchanged(count)),
            MarkedLine::Words(spans) => {
                let spans = spans.iter();
                spans
                    .map(|span| printing.styled(span.style, &span.text))
                    .collect()
            }
        };
        text.push_str(format!("  {line}").trim_end());
        text.push('\n');
    }
    text
}

/// Describes lines that are left out.
pub fn unchanged(count: usize) -> String {
    match count {
        1 => "⋯ 1 line without a change".to_owned(),
        count => format!("⋯ {count} lines without a change"),
    }
}
