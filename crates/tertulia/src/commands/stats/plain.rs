//! The view without a terminal: totals and one table, for `grep` and `awk`.

use tertulia_core::stats::{By, Report};
use tertulia_formats::stats::{compact, money};

use crate::ui::table_lines;

/// Returns the totals, an empty line, and the table of the chosen grouping.
pub fn text(report: &Report) -> String {
    let total = &report.total;
    let usage = &total.usage;
    let cost = money(total).unwrap_or_else(|| "no price".to_owned());
    let mut lines = vec![
        format!("scope: {}", report.scope.words()),
        format!("time: {}", report.span),
        format!("sessions: {}", total.sessions),
        format!("messages: {}", total.messages),
        format!("input tokens: {}", usage.input),
        format!("output tokens: {}", usage.output),
        format!("tokens read from cache: {}", usage.cache_read),
        format!("tokens written to cache: {}", usage.cache_written),
        format!("cost: {cost}"),
    ];
    lines.extend(super::view::unpriced(report).map(|words| format!("without a price: {words}")));
    let (headings, rows) = table(report);
    if !rows.is_empty() {
        lines.push(String::new());
        lines.extend(table_lines(&headings, &rows));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn table(report: &Report) -> (Vec<&'static str>, Vec<Vec<String>>) {
    match report.by {
        By::Tool => {
            let rows = report.tools.iter().map(|tool| {
                let counts = [
                    tool.calls,
                    tool.ok,
                    tool.failed,
                    tool.denied,
                    tool.unfinished,
                ];
                let counts = counts.iter().map(u64::to_string);
                std::iter::once(tool.name.clone()).chain(counts).collect()
            });
            let headings = vec!["TOOL", "CALLS", "OK", "FAILED", "DENIED", "UNFINISHED"];
            (headings, rows.collect())
        }
        By::File => {
            let rows = report.files.iter().map(|file| {
                let counts = [file.reads, file.writes, file.sessions];
                let counts = counts.iter().map(u64::to_string);
                std::iter::once(file.path.clone()).chain(counts).collect()
            });
            let headings = vec!["FILE", "READS", "WRITES", "SESSIONS"];
            (headings, rows.collect())
        }
        by => {
            let rows = report.rows.iter().map(|group| {
                let amount = &group.amount;
                let mut row = vec![super::view::label(group, by)];
                row.extend(
                    [amount.sessions, amount.messages]
                        .iter()
                        .map(u64::to_string),
                );
                row.push(compact(amount.usage.input));
                row.push(compact(amount.usage.output));
                row.push(super::bars::cost(amount));
                row
            });
            let name = match by {
                By::Day => "DAY",
                By::Week => "WEEK",
                By::Month => "MONTH",
                By::Hour => "HOUR",
                By::Model => "MODEL",
                By::Agent => "AGENT",
                By::Project => "PROJECT",
                By::Team => "TEAM",
                _ => "SESSION",
            };
            let headings = vec![name, "SESSIONS", "MESSAGES", "INPUT", "OUTPUT", "COST"];
            (headings, rows.collect())
        }
    }
}
