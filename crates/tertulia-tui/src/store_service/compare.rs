//! Compares two sessions: the last common entry, and a diff of the rest.

use std::time::Duration;

use tertulia_core::entry::Body;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Row;
use tertulia_core::text_diff::TextDiff;
use tertulia_engine::error::ErrorKind;
use tertulia_engine::text::ago;
use tertulia_engine::text::{fit, harmless};

use super::StoreService;
use super::reading::Reader;
use crate::error::{TuiError, TuiResult};
use crate::item::{Item, Used, What};

/// Maximum number of items compared per session.
const MOST_THINGS: usize = 200;
/// Maximum number of bytes compared per session.
const MOST_BYTES: usize = 256_000;
/// Time limit for a minimal diff; after that any diff will do.
const PATIENCE: Duration = Duration::from_millis(500);
/// Maximum number of compared lines of a tool's output.
const OUTPUT_LINES: usize = 20;

impl StoreService {
    pub(super) async fn compare(&self, session: SessionId, with: &str) -> TuiResult<Vec<String>> {
        let one = self.row(session).await?;
        let other = self.host.find(with).await?;
        if one.meta.id == other.meta.id {
            let words = format!("'{with}' is this session itself");
            return Err(TuiError::new(ErrorKind::Usage, words)
                .hint("name another one: /tree shows its forks"));
        }
        let shared = self.shared(&one, &other).await?;
        let mut lines = vec![self.headline('-', &one), self.headline('+', &other)];
        lines.push(parting(shared, &one, &other));
        lines.push(String::new());
        let (one, more) = self.said_after(&one, shared).await?;
        let (other, more_of_other) = self.said_after(&other, shared).await?;
        lines.extend(differences(&one, &other));
        if more || more_of_other {
            lines.push(String::new());
            lines.push("… what follows is too much to compare".to_owned());
        }
        Ok(lines)
    }

    /// Returns the last common entry. Hashes are chained, so an equal entry at the same position
    /// proves that all earlier entries are equal too; this allows a binary search.
    async fn shared(&self, one: &Row, other: &Row) -> TuiResult<Seq> {
        let line = async |row: &Row, seq: u64| {
            let store = self.workspace().sessions.store();
            let line = store.read(row.meta.id, Seq(seq).back(1), 1).await?.pop();
            TuiResult::Ok(line.filter(|line| line.seq == Seq(seq)))
        };
        let last = one.meta.head.seq.min(other.meta.head.seq).0;
        let (mut shared, mut apart) = (0, last + 1);
        while shared + 1 < apart {
            let middle = shared + (apart - shared) / 2;
            let line_of_one = line(one, middle).await?;
            if line_of_one.is_some() && line_of_one == line(other, middle).await? {
                shared = middle;
            } else {
                apart = middle;
            }
        }
        Ok(Seq(shared))
    }

    fn headline(&self, mark: char, row: &Row) -> String {
        let meta = &row.meta;
        let now = self.workspace().sessions.clock().now();
        format!(
            "{mark} {}  {}  ({} messages, {})",
            meta.id.short(),
            fit(meta.title_or_untitled(), 50),
            meta.messages,
            ago(meta.updated_at, now)
        )
    }

    /// Items after an entry as lines, and whether there are more.
    async fn said_after(&self, row: &Row, shared: Seq) -> TuiResult<(Vec<String>, bool)> {
        let reader = Reader::of(self.workspace(), row).at_most(MOST_BYTES);
        let mut piece = reader.on(shared, MOST_THINGS).await?;
        let more = piece.upto < reader.head;
        // The fork itself is already shown above.
        piece
            .log
            .entries
            .retain(|entry| !matches!(entry.body, Body::Forked(_)));
        let items = reader.items(piece).await?;
        Ok((items.iter().flat_map(lines_of).collect(), more))
    }
}

/// Describes where two sessions diverge.
fn parting(shared: Seq, one: &Row, other: &Row) -> String {
    if shared == Seq::START {
        return "They have nothing in common: each began by itself.".to_owned();
    }
    let entries = match shared.0 {
        1 => "entry 1".to_owned(),
        last => format!("entries 1 to {last}"),
    };
    let ends = [one, other].map(|row| (row.meta.head.seq == shared).then_some(row));
    match ends {
        [Some(row), _] | [_, Some(row)] => format!(
            "Both have {entries}, and {} ends there.",
            row.meta.id.short()
        ),
        _ => format!("Both have {entries}, and part there."),
    }
}

/// Diff of the lines of both sessions.
fn differences(one: &[String], other: &[String]) -> Vec<String> {
    let one: Vec<&str> = one.iter().map(String::as_str).collect();
    let other: Vec<&str> = other.iter().map(String::as_str).collect();
    let diff = TextDiff::new(one, other, Some(PATIENCE));
    diff.changes()
        .map(|(change, line)| format!("{} {line}", change.sign()).trim_end().to_owned())
        .collect()
}

fn lines_of(item: &Item) -> Vec<String> {
    let text = match &item.what {
        What::Said(said) => {
            let cut_off = if said.interrupted {
                " (interrupted)"
            } else {
                ""
            };
            format!("{}{cut_off}:\n{}\n", said.speaker.display_name, said.text)
        }
        What::Used(used) => used_tool(used),
        What::Thought { text, .. } | What::Notice { text, .. } | What::Summary { text, .. } => {
            text.clone()
        }
        What::Restored { .. } => return Vec::new(),
    };
    let text = harmless(&text);
    text.split('\n').map(str::to_owned).collect()
}

fn used_tool(used: &Used) -> String {
    let call = fit(&used.call.arguments.to_string(), 200);
    let mut text = format!("→ {} {call}\n", used.call.name);
    let output = used.output.as_ref().map_or("", |(output, _)| output);
    for line in output.lines().take(OUTPUT_LINES) {
        text.push_str(&format!("  {line}\n"));
    }
    let more = output.lines().count().saturating_sub(OUTPUT_LINES);
    if more > 0 {
        text.push_str(&format!("  … {more} more lines\n"));
    }
    text
}
