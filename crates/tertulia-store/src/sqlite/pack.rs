//! Compressed sessions. The first entry of a block holds the lines of all its entries, compressed, as a
//! blob; the others are empty. Every entry keeps its row, so that the search index finds it.
//!
//! A database gets format 2 with its first compressed session: earlier programs refuse it then.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use super::engine::SqliteEngine;
use super::open::{self, FORMAT};
use super::rows::{Say, find};
use super::{Location, trouble};
use crate::{Compressed, Progress, StoreError, StoreResult, packed};
use tertulia_core::entry::Entry;
use tertulia_core::id::{Seq, SessionId};

/// Finds the blocks of a session, and so whether it is compressed.
pub(super) const SCHEMA: &str =
    "CREATE INDEX entry_packed ON entry(session, seq) WHERE typeof(line) = 'blob';";

/// The file is rewritten if compression frees more than one of so many bytes.
const FREED_PART: u64 = 8;

/// Returns the format of a database.
pub(super) fn format(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Returns true if a session is compressed.
fn is_packed(connection: &Connection, no: i64) -> rusqlite::Result<bool> {
    if format(connection)? < FORMAT {
        return Ok(false);
    }
    connection
        .prepare_cached("SELECT 1 FROM entry WHERE session = ?1 AND typeof(line) = 'blob' LIMIT 1")?
        .exists([no])
}

/// Returns the numbers of all compressed sessions.
pub(super) fn packed_sessions(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    if format(connection)? < FORMAT {
        return Ok(Vec::new());
    }
    connection
        .prepare("SELECT DISTINCT session FROM entry WHERE typeof(line) = 'blob'")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Reads the lines of entries, from blocks where they are compressed.
pub(super) struct Lines<'a> {
    connection: &'a Connection,
    /// The session, first entry and lines of the block that was read last.
    block: Option<(i64, Seq, Vec<Vec<u8>>)>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(connection: &'a Connection) -> Lines<'a> {
        Lines {
            connection,
            block: None,
        }
    }

    /// Returns the line of an entry, given the value in its row; empty if its block is damaged.
    pub(super) fn line(
        &mut self,
        no: i64,
        seq: Seq,
        value: ValueRef<'_>,
    ) -> rusqlite::Result<Vec<u8>> {
        match value {
            ValueRef::Blob(block) if packed::is_block(block) => {
                self.block = Some((no, seq, lines_in(block)));
            }
            ValueRef::Text(line) if !line.is_empty() => return Ok(line.to_vec()),
            ValueRef::Text(_) if !self.has(no, seq) => self.find(no, seq)?,
            ValueRef::Text(_) => {}
            other => return Ok(other.as_bytes_or_null()?.unwrap_or_default().to_vec()),
        }
        let line = self.block.as_ref().and_then(|(_, first, lines)| {
            let at = usize::try_from(seq.0.checked_sub(first.0)?).ok()?;
            lines.get(at)
        });
        Ok(line.cloned().unwrap_or_default())
    }

    fn has(&self, no: i64, seq: Seq) -> bool {
        self.block.as_ref().is_some_and(|(session, first, lines)| {
            *session == no && *first <= seq && seq.0 - first.0 < lines.len() as u64
        })
    }

    /// Reads the block of an entry that is empty itself.
    fn find(&mut self, no: i64, seq: Seq) -> rusqlite::Result<()> {
        self.block = self
            .connection
            .prepare_cached(
                "SELECT seq, line FROM entry WHERE session = ?1 AND seq <= ?2 AND typeof(line) = 'blob'
                 ORDER BY seq DESC LIMIT 1",
            )?
            .query_row(params![no, seq.0], |row| {
                let first = Seq(row.get::<_, i64>(0)?.cast_unsigned());
                Ok((no, first, lines_in(row.get_ref(1)?.as_blob()?)))
            })
            .optional()?;
        Ok(())
    }
}

/// Returns the lines in a block; none if it is damaged.
pub(super) fn lines_in(block: &[u8]) -> Vec<Vec<u8>> {
    let plain = packed::unpack(block).unwrap_or_default();
    let lines = plain.strip_suffix(b"\n").map(|text| {
        text.split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    });
    lines.unwrap_or_default()
}

/// Makes a compressed session plain again.
pub(super) fn unpack(transaction: &Connection, say: &Say, no: i64) -> StoreResult<()> {
    if !is_packed(transaction, no).map_err(say.of("cannot unpack a session"))? {
        return Ok(());
    }
    let plain = own_lines(transaction, no).map_err(say.of("cannot unpack a session"))?;
    if plain.iter().any(|(_, line)| line.is_empty()) {
        return Err(StoreError::damaged(
            say.0.display().to_string(),
            "a compressed session; repair the store before going on with it",
        ));
    }
    let write = || -> rusqlite::Result<()> {
        let mut update = transaction
            .prepare_cached("UPDATE entry SET line = ?3 WHERE session = ?1 AND seq = ?2")?;
        for (seq, line) in &plain {
            // A line is valid UTF-8, or it could not have been compressed.
            let line = String::from_utf8_lossy(line);
            update.execute(params![no, seq.0, line])?;
        }
        Ok(())
    };
    write().map_err(say.of("cannot unpack a session"))
}

/// Returns the own lines of a session.
fn own_lines(connection: &Connection, no: i64) -> rusqlite::Result<Vec<(Seq, Vec<u8>)>> {
    let mut select =
        connection.prepare_cached("SELECT seq, line FROM entry WHERE session = ?1 ORDER BY seq")?;
    let mut rows = select.query([no])?;
    let mut lines = Lines::new(connection);
    let mut own = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = Seq(row.get::<_, i64>(0)?.cast_unsigned());
        own.push((seq, lines.line(no, seq, row.get_ref(1)?)?));
    }
    Ok(own)
}

/// Returns true if the lines are consecutive entries without damage.
fn is_sound(lines: &[(Seq, Vec<u8>)]) -> bool {
    let decode = |(seq, line): &(Seq, Vec<u8>)| {
        let entry = Entry::decode(line).ok()?;
        (entry.seq == *seq).then_some(entry)
    };
    let entries: Option<Vec<Entry>> = lines.iter().map(decode).collect();
    entries.is_some_and(|entries| {
        let mut pairs = entries.windows(2);
        pairs.all(|pair| pair[1].follows(&pair[0].head()))
    })
}

impl SqliteEngine {
    pub(super) fn compress_sessions(
        &mut self,
        ids: &[SessionId],
        progress: &Progress,
    ) -> StoreResult<Compressed> {
        let mut done = Compressed::default();
        if ids.is_empty() {
            return Ok(done);
        }
        self.allow_compressed()?;
        let total = ids.len() as u64;
        for (at, id) in ids.iter().enumerate() {
            progress.at("compressing", at as u64, total);
            done.add(*id, self.compress_session(*id))?;
        }
        progress.at("compressing", total, total);
        if done.sessions > 0 {
            self.shrink(done.before.saturating_sub(done.after));
        }
        Ok(done)
    }

    /// Raises the format, and makes sure that earlier programs see it: they look at the file alone.
    fn allow_compressed(&mut self) -> StoreResult<()> {
        let say = self.say();
        if format(&self.connection).map_err(say.of("cannot compress"))? < FORMAT {
            self.write(|transaction, say| {
                let raised = format(transaction).and_then(|found| match found >= FORMAT {
                    true => Ok(()),
                    false => transaction
                        .execute_batch(&format!("{SCHEMA} PRAGMA user_version={FORMAT};")),
                });
                raised.map_err(say.of("cannot compress"))
            })?;
        }
        let Location::File(path) = &self.location else {
            return Ok(());
        };
        if open::identify(path)? < FORMAT {
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            self.connection
                .query_row(checkpoint, [], |_| Ok(()))
                .map_err(say.of("cannot compress"))?;
        }
        match open::identify(path)? < FORMAT {
            true => Err(StoreError::locked(path)),
            false => Ok(()),
        }
    }

    /// Compresses one session in one transaction. Returns its size before and after, or `None` if
    /// there is nothing to gain.
    fn compress_session(&mut self, id: SessionId) -> StoreResult<Option<(u64, u64)>> {
        if self.claims.is_open(id) {
            return Err(StoreError::Refused("a program has it open".into()));
        }
        self.write(|transaction, say| {
            let found = find(transaction, say, id)?.ok_or(StoreError::NotFound(id))?;
            if is_packed(transaction, found.no).map_err(say.of("cannot compress"))? {
                return Ok(None);
            }
            let lines = own_lines(transaction, found.no).map_err(say.of("cannot compress"))?;
            if !is_sound(&lines) {
                let reason = "it is damaged; `tertulia doctor` says more";
                return Err(StoreError::Refused(reason.into()));
            }
            let first = lines.first().map_or(Seq::START, |(seq, _)| *seq);
            let plain: Vec<&[u8]> = lines.iter().map(|(_, line)| &line[..]).collect();
            let before = plain.iter().map(|line| line.len() as u64 + 1).sum();
            let mut blocks = Vec::new();
            let mut seq = first;
            for block in packed::blocks(&plain) {
                let bytes = packed::pack(block)
                    .map_err(|error| StoreError::failed("cannot compress", error))?;
                let next = Seq(seq.0 + block.len() as u64);
                blocks.push((seq, next, bytes));
                seq = next;
            }
            let after = blocks.iter().map(|(_, _, bytes)| bytes.len() as u64).sum();
            if after >= before {
                return Ok(None);
            }
            let write = || -> rusqlite::Result<()> {
                for (first, next, bytes) in &blocks {
                    transaction
                        .prepare_cached("UPDATE entry SET line = '' WHERE session = ?1 AND seq > ?2 AND seq < ?3")?
                        .execute(params![found.no, first.0, next.0])?;
                    transaction
                        .prepare_cached("UPDATE entry SET line = ?3 WHERE session = ?1 AND seq = ?2")?
                        .execute(params![found.no, first.0, bytes])?;
                }
                Ok(())
            };
            write().map_err(say.of("cannot compress"))?;
            Ok(Some((before, after)))
        })
    }

    /// Rewrites the file without what compression has freed, if that is a large part of it. Most of
    /// it is no free page but room within pages. If rewriting fails, new entries take the room.
    fn shrink(&mut self, freed: u64) {
        let size = |name: &str| -> rusqlite::Result<u64> {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .map(i64::cast_unsigned)
        };
        let Ok(bytes) = size("page_count").and_then(|pages| Ok(pages * size("page_size")?)) else {
            return;
        };
        if freed * FREED_PART < bytes {
            return;
        }
        let path = self.path.clone();
        let _ = self.outside_transaction(|connection| {
            connection
                .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
                .map_err(|error| trouble(&path, "cannot shrink", error))
        });
    }
}
