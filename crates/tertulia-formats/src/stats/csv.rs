//! One table, for spreadsheets.

use tertulia_core::stats::{By, Report};

use super::json::usd;

/// Returns the rows of the chosen grouping as CSV, with headings. A cost without a price is empty.
pub fn csv(report: &Report) -> String {
    let mut table = Table(String::new());
    match report.by {
        By::Tool => {
            table.row([
                "tool",
                "sessions",
                "calls",
                "ok",
                "failed",
                "denied",
                "unfinished",
            ]);
            for tool in &report.tools {
                let counts = [
                    tool.sessions,
                    tool.calls,
                    tool.ok,
                    tool.failed,
                    tool.denied,
                    tool.unfinished,
                ];
                table.row(counted(&tool.name, counts));
            }
        }
        By::File => {
            table.row(["file", "sessions", "reads", "writes", "last"]);
            for file in &report.files {
                let mut row = counted(&file.path, [file.sessions, file.reads, file.writes]);
                row.push(file.last.to_string());
                table.row(row);
            }
        }
        by => groups(report, by, &mut table),
    }
    table.0
}

fn groups(report: &Report, by: By, table: &mut Table) {
    let mut headings = vec![by.name()];
    headings.extend((by == By::Session).then_some("title"));
    headings.extend([
        "sessions",
        "messages",
        "input",
        "output",
        "cache_read",
        "cache_written",
        "cost_usd",
    ]);
    table.row(headings);
    for group in &report.rows {
        let (amount, usage) = (&group.amount, &group.amount.usage);
        let mut row = vec![group.key.clone().unwrap_or_default()];
        row.extend((by == By::Session).then(|| group.title.clone().unwrap_or_default()));
        let counts = [
            amount.sessions,
            amount.messages,
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_written,
        ];
        row.extend(counts.iter().map(u64::to_string));
        row.push(usd(amount).map_or_else(String::new, |usd| usd.to_string()));
        table.row(row);
    }
}

fn counted<const N: usize>(name: &str, counts: [u64; N]) -> Vec<String> {
    let counts = counts.iter().map(u64::to_string);
    std::iter::once(name.to_owned()).chain(counts).collect()
}

struct Table(String);

impl Table {
    fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        for (column, cell) in cells.into_iter().enumerate() {
            if column > 0 {
                self.0.push(',');
            }
            self.0.push_str(&quoted(cell.as_ref()));
        }
        self.0.push('\n');
    }
}

/// Quotes a cell as RFC 4180 asks for.
fn quoted(cell: &str) -> String {
    match cell.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}
