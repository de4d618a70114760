//! The documents that match a query: by their words, their speaker and their time.

use std::cmp::Reverse;

use rusqlite::params;

use super::Index;
use crate::StoreResult;
use tertulia_core::entry::{Entry, Role};
use tertulia_core::query::{HitFilter, SearchQuery};
use tertulia_core::search_text::{Phrase, SearchTerms};

/// What a search can ask of an entry besides its words.
pub(super) struct Facts {
    pub(super) at: i64,
    pub(super) role: Option<&'static str>,
    /// Keys of the speaker's id, name and display name; repeated ones are left out.
    pub(super) names: [Option<i64>; 3],
}

impl Facts {
    pub(super) fn of(entry: &Entry) -> Facts {
        let speaker = entry.message().map(|message| &message.speaker);
        let keys = speaker.map(|speaker| {
            let [id, name, shown] =
                [&speaker.id, &speaker.name, &speaker.display_name].map(|name| name_key(name));
            let name = Some(name).filter(|name| *name != id);
            let shown = Some(shown).filter(|shown| *shown != id && Some(*shown) != name);
            [Some(id), name, shown]
        });
        Facts {
            at: entry.at.as_microsecond(),
            role: entry.message().map(|message| role_key(message.role)),
            names: keys.unwrap_or_default(),
        }
    }
}

fn role_key(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    }
}

/// Returns the key by which a speaker's name is found, in any case.
fn name_key(name: &str) -> i64 {
    let hash = blake3::hash(name.to_ascii_lowercase().as_bytes());
    let mut key = [0; 8];
    key.copy_from_slice(&hash.as_bytes()[..8]);
    i64::from_be_bytes(key)
}

impl Index {
    /// Returns the documents that match a query, newest first. The sessions of the documents are not
    /// known here.
    pub(crate) fn matching(&self, query: &SearchQuery) -> StoreResult<Vec<u64>> {
        let expression = match_expression(&query.words);
        let HitFilter {
            session: _,
            speaker,
            role,
            since,
            until,
        } = &query.said;
        let read = || {
            let sql = match query.said.admits_all() {
                true => "SELECT rowid FROM words WHERE words MATCH ?1",
                false => {
                    "SELECT document FROM words CROSS JOIN facts ON document = words.rowid
                     WHERE words MATCH ?1 AND at >= ?2 AND at < ?3 AND (?4 IS NULL OR role = ?4)
                     AND (?5 IS NULL OR ?5 IN (id, name, shown))"
                }
            };
            let mut select = self.connection.prepare_cached(sql)?;
            let number = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0).map(i64::cast_unsigned);
            let rows = match query.said.admits_all() {
                true => select.query_map(params![expression], number)?,
                false => select.query_map(
                    params![
                        expression,
                        since.map_or(i64::MIN, |since| since.as_microsecond()),
                        until.map_or(i64::MAX, |until| until.as_microsecond()),
                        role.map(role_key),
                        speaker.as_deref().map(name_key),
                    ],
                    number,
                )?,
            };
            rows.collect::<rusqlite::Result<Vec<u64>>>()
        };
        let mut documents = read().map_err(|error| self.trouble(error))?;
        documents.sort_unstable_by_key(|document| Reverse(*document));
        Ok(documents)
    }
}

/// Writes a query in FTS5's syntax. Tokens contain no quotes, so quoting them is enough to keep FTS5
/// from reading operators in them.
fn match_expression(query: &SearchTerms) -> String {
    let joined = |phrases: &[Phrase], operator: &str| {
        let quoted = phrases.iter().map(|phrase| {
            let star = if phrase.prefix { " *" } else { "" };
            format!("\"{}\"{star}", phrase.tokens.join(" "))
        });
        quoted.collect::<Vec<_>>().join(operator)
    };
    let wanted = joined(query.wanted(), " AND ");
    match query.unwanted() {
        [] => wanted,
        unwanted => format!("({wanted}) NOT ({})", joined(unwanted, " OR ")),
    }
}
