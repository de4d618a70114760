//! List of exported sessions.

use jiff::tz::TimeZone;
use tertulia_core::project;

use crate::exporter::Listed;

/// First line of a list of sessions, by which it is recognised.
const INDEX_MARK: &str = "<!-- exported by tertulia -->";

/// Returns a list of exported sessions, with times in a zone.
pub fn index(sessions: &[Listed<'_>], zone: &TimeZone) -> String {
    let mut text = format!(
        "{INDEX_MARK}\n# Sessions ({})\n\n| title | project | updated | messages | tokens |\n|---|---|---|---:|---:|\n",
        sessions.len()
    );
    for listed in sessions {
        let meta = listed.meta;
        let updated = meta.updated_at.to_zoned(zone.clone());
        text.push_str(&format!(
            "| [{}](<{}>) | {} | {} | {} | {} |\n",
            cell(meta.title_or_untitled()),
            listed.address(),
            cell(&project::name_of(meta)),
            updated.strftime("%Y-%m-%d %H:%M"),
            meta.messages,
            meta.tokens.input.saturating_add(meta.tokens.output)
        ));
    }
    text
}

/// Returns true if a text is a list of exported sessions.
pub fn is_index(text: &str) -> bool {
    text.starts_with(INDEX_MARK)
}

/// Escapes text for a cell of a table: everything that Markdown could read as more than text.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
    {
        if c.is_ascii_punctuation() {
            cell.push('\\');
        }
        cell.push(c);
    }
    cell
}
