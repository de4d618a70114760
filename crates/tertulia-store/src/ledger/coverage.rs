//! Finds the imported entries that a program wrote while tertulia waited for its answer: the session
//! that ran the program has them, and counts them. The two have no ids in common, because programs
//! name neither requests nor messages while they answer, or only some do. What both tell is the
//! program's own session, and the time.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::facts::Event;

/// Programs record milliseconds, which may seem to be before the prompt.
const MILLISECOND: i64 = 1_000;

/// Notes the program's sessions that a session ran or was imported from.
pub(super) fn note_natives(
    connection: &Connection,
    session: i64,
    natives: &mut HashSet<String>,
) -> rusqlite::Result<()> {
    let mut select = connection.prepare_cached(
        "SELECT native FROM link WHERE session = ?1
         UNION SELECT original FROM session WHERE no = ?1 AND original IS NOT NULL",
    )?;
    for native in select.query_map([session], |row| row.get::<_, String>(0))? {
        natives.insert(native?);
    }
    Ok(())
}

/// Decides again which imported entries of a program's session are covered, and notes the events
/// for which that changed.
pub(super) fn cover(
    connection: &Connection,
    native: &str,
    changed: &mut HashSet<Event>,
) -> rusqlite::Result<()> {
    let mut imports = connection.prepare_cached("SELECT no FROM session WHERE original = ?1")?;
    let imports = imports.query_map([native], |row| row.get::<_, i64>(0))?;
    let imports: Vec<i64> = imports.collect::<rusqlite::Result<_>>()?;
    let mut select = connection
        .prepare_cached("SELECT seq, at, event, covered FROM entry WHERE session = ?1")?;
    let mut update = connection
        .prepare_cached("UPDATE entry SET covered = ?3 WHERE session = ?1 AND seq = ?2")?;
    for import in imports {
        let turns = turns(connection, native, import)?;
        let rows = select.query_map([import], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, Event>(2)?,
                row.get::<_, bool>(3)?,
            ))
        })?;
        for (seq, at, event, was) in rows.collect::<rusqlite::Result<Vec<_>>>()? {
            let covered = turns.iter().any(|turn| turn.from <= at && at <= turn.to);
            if covered != was {
                update.execute(params![import, seq, covered])?;
                changed.insert(event);
            }
        }
    }
    Ok(())
}

/// The time from a prompt to the end of the answer.
struct Turn {
    from: i64,
    to: i64,
}

/// Returns the turns that other sessions than `import` ran in a program's session.
fn turns(connection: &Connection, native: &str, import: i64) -> rusqlite::Result<Vec<Turn>> {
    let mut select = connection.prepare_cached(
        "SELECT l.session, l.seq, l.agent,
           (SELECT min(n.seq) FROM link n WHERE n.session = l.session AND n.agent = l.agent
              AND n.seq > l.seq)
         FROM link l WHERE l.native = ?1 AND l.session <> ?2",
    )?;
    let links = select.query_map(params![native, import], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, i64>(1)?,
            row.get::<_, i64>(2)?,
            row.get::<_, Option<i64>>(3)?,
        ))
    })?;
    let mut all = Vec::new();
    for (session, seq, agent, next) in links.collect::<rusqlite::Result<Vec<_>>>()? {
        let mut turns: Vec<Turn> = Vec::new();
        let mut prompt: Option<i64> = connection
            .prepare_cached(
                "SELECT at FROM entry WHERE session = ?1 AND seq < ?2 AND prompt
                 ORDER BY seq DESC LIMIT 1",
            )?
            .query_row(params![session, seq], |row| row.get(0))
            .optional()?;
        let mut select = connection.prepare_cached(
            "SELECT at, agent, prompt FROM entry WHERE session = ?1 AND seq > ?2 AND seq < ?3
             ORDER BY seq",
        )?;
        let values = params![session, seq, next.unwrap_or(i64::MAX)];
        let rows = select.query_map(values, |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Option<i64>>(1)?,
                row.get::<_, bool>(2)?,
            ))
        })?;
        for (at, speaker, is_prompt) in rows.collect::<rusqlite::Result<Vec<_>>>()? {
            if is_prompt || speaker.is_some_and(|speaker| speaker != agent) {
                prompt = Some(at);
            } else if let Some(from) = prompt.take_if(|_| speaker.is_some()) {
                let from = from - MILLISECOND;
                turns.push(Turn { from, to: at });
            } else if prompt.is_none()
                && let Some(turn) = turns.last_mut()
            {
                turn.to = turn.to.max(at);
            }
        }
        all.extend(turns);
    }
    Ok(all)
}
