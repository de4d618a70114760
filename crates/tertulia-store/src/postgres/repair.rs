//! Repairs damaged logs in place. The original lines of a log that changes are copied into
//! `tertulia_damaged` in the same transaction.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::check::derive_row;
use super::rows::{Base, Found, batches, find, find_log, head_at, insert_lines, own_lines};
use super::server::{Answer, Mode, Server, Value, execute};
use super::write::insert_row;
use crate::salvage::{
    Known, Salvaged, all_lost, derived_id, in_words, left_alone, left_like_its_base, salvage,
};
use crate::selection::PURGED;
use crate::{Progress, Report, StoreResult};
use tertulia_core::entry::{Body, Entry, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Line, SessionMeta};

/// What the repair of one log did.
enum Repaired {
    Unchanged,
    /// Number of entries that were kept, and the losses in words.
    Salvaged(usize, Vec<String>),
    Gone(String),
    /// A repair would lose what can be read, as it says.
    Left(String),
}

impl Server {
    pub(super) async fn check_and_repair(
        &self,
        now: Timestamp,
        progress: Progress,
    ) -> StoreResult<Report> {
        let mut report = self.look(progress.clone()).await?;
        if report.is_clean() {
            return Ok(report);
        }
        for (log, count) in self.orphans().await? {
            let found = self.adopt_orphan(log).await?;
            report.repaired.push(match found {
                Some(id) => {
                    format!("session {id}: its {count} entries have a row in the list again")
                }
                None => format!(
                    "{count} entries without a session are kept in tertulia_damaged, as {log}"
                ),
            });
        }
        let mut left = HashSet::new();
        if !report.damage.is_empty() || self.is_base_missing().await? {
            left = self.repair_logs(now, &progress, &mut report).await?;
        }
        let sessions = self.derive_rows(progress.clone()).await?;
        report
            .repaired
            .push(format!("rebuilt the list rows of {sessions} sessions"));
        let after = self.look_beside(&left, progress).await?;
        let damage = after.damage.iter().map(ToString::to_string);
        let rest = damage.chain(after.faults);
        let rest = rest.map(|fault| format!("{fault}; the repair could not change that"));
        report.lost.extend(rest);
        Ok(report)
    }

    async fn is_base_missing(&self) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM tertulia_session AS fork WHERE base IS NOT NULL AND NOT EXISTS
                   (SELECT 1 FROM tertulia_session WHERE log = fork.base) LIMIT 1";
        self.run("cannot check", None, Mode::Read, async |client, _| {
            Ok(!super::server::query(client, sql, &[]).await?.is_empty())
        })
        .await
    }

    /// Repairs all logs, bases before the forks that continue them: a base that changes has other
    /// hashes, and its forks are chained to it anew. Returns those that are left as they are.
    async fn repair_logs(
        &self,
        now: Timestamp,
        progress: &Progress,
        report: &mut Report,
    ) -> StoreResult<HashSet<Uuid>> {
        let mut order: Vec<Uuid> = Vec::new();
        let mut bases: HashMap<Uuid, Base> = HashMap::new();
        for log in self.all_logs().await? {
            let base = self
                .run("cannot repair", None, Mode::Write, async |client, _| {
                    super::rows::base_of(client, log).await
                })
                .await?;
            bases.insert(log, base);
        }
        let mut wanted: HashMap<Uuid, Seq> = HashMap::new();
        for (base, seq) in bases.values().flatten() {
            let last = wanted.entry(*base).or_insert(*seq);
            *last = (*last).max(*seq);
        }
        let mut placed: HashSet<Uuid> = HashSet::new();
        for log in bases.keys() {
            let mut chain = vec![*log];
            while let Some(Some(Some((base, _)))) = chain.last().map(|last| bases.get(last))
                && !placed.contains(base)
                && !chain.contains(base)
            {
                chain.push(*base);
            }
            let new = chain.into_iter().rev().filter(|log| placed.insert(*log));
            order.extend(new);
        }
        let total = order.len() as u64;
        let mut kept = (0_u64, 0_u64);
        let mut left = HashSet::new();
        for (done, log) in order.into_iter().enumerate() {
            progress.at("salvaging", done as u64, total);
            let what = "cannot repair";
            let wanted = wanted.get(&log).copied().unwrap_or(Seq::START);
            let done = self.transact(what, None, Mode::Write, async |client, _| {
                repair_log(client, log, wanted, &left, now).await
            });
            match done.await? {
                Repaired::Unchanged => {}
                Repaired::Salvaged(entries, mut lost) => {
                    kept = (kept.0 + 1, kept.1 + entries as u64);
                    report.lost.append(&mut lost);
                }
                Repaired::Gone(lost) => report.lost.push(lost),
                Repaired::Left(why) => {
                    left.insert(log);
                    report.lost.push(why);
                }
            }
        }
        self.metas.borrow_mut().clear();
        report.repaired.push(format!(
            "salvaged {} sessions with {} entries; the damaged originals are in the table tertulia_damaged",
            kept.0, kept.1
        ));
        Ok(left)
    }

    /// Gives entries without a row one again, by the opening of their log; else moves them away.
    async fn adopt_orphan(&self, log: Uuid) -> StoreResult<Option<SessionId>> {
        let what = "cannot repair";
        self.transact(what, None, Mode::Write, async |client, _| {
            let lines = own_lines(client, log, Seq::START, Seq(u64::MAX), usize::MAX).await?;
            let opening = lines
                .first()
                .and_then(|line| Entry::decode(&line.bytes).ok());
            let (id, from) = match opening.as_ref().map(|entry| &entry.body) {
                Some(Body::Created(created)) => (created.session, None),
                Some(Body::Forked(forked)) => (forked.session, Some(&forked.from)),
                _ => {
                    keep_original(client, log, 0).await?;
                    remove_lines(client, log).await?;
                    return Ok(None);
                }
            };
            let id = match find(client, id, false).await? {
                None => id,
                Some(_) => SessionId::new(derived_id(&format!("{id} {log}"))),
            };
            let base = match from {
                None => None,
                Some(from) => match find(client, from.id, false).await? {
                    None => None,
                    Some(found) => {
                        let place = (found.log, found.base);
                        let owner = super::rows::owner_of(client, place, from.seq).await?;
                        Some((owner, from.seq))
                    }
                },
            };
            insert_row(client, log, id, base, &SessionMeta::blank(id)).await?;
            derive_row(client, log).await?;
            Ok(Some(id))
        })
        .await
    }
}

/// Repairs one log, whose forks need its entries up to `wanted`. Logs that it may continue were
/// `left` as they are.
async fn repair_log(
    client: &Client,
    log: Uuid,
    wanted: Seq,
    left: &HashSet<Uuid>,
    now: Timestamp,
) -> Answer<Repaired> {
    let Some(found) = find_log(client, log, true).await? else {
        return Ok(Repaired::Unchanged);
    };
    let lines = own_lines(client, log, Seq::START, Seq(u64::MAX), usize::MAX).await?;
    let (base, parent) = match found.base {
        None => (None, Head::START),
        Some((base, seq)) => {
            let there = find_log(client, base, false).await?;
            let head = match &there {
                Some(there) => head_at(client, (there.log, there.base), seq).await?,
                None => None,
            };
            match head {
                Some(head) => (found.base, head),
                // Reading gives the beginning that they share, which a fork without a base lacks.
                None if left.contains(&base) => {
                    return Ok(Repaired::Left(left_like_its_base(found.name())));
                }
                None => (None, Head::START),
            }
        }
    };
    let last = found.stored.as_ref().map_or(Seq::START, |row| row.head.seq);
    let known = Known {
        session: found.name(),
        parent,
        parent_was: parent_at_fork(&lines, base).unwrap_or(parent),
        base: None,
        last: last.max(wanted),
        now,
    };
    let by_place: BTreeMap<Seq, Line> = lines
        .iter()
        .map(|line| (line.seq, line.clone()))
        .filter(|(seq, _)| *seq > parent.seq)
        .collect();
    let mut salvaged = salvage(&known, &by_place);
    if let Some(seq) = salvaged.first_reduced(by_place.values()) {
        return Ok(Repaired::Left(left_alone(found.name(), seq)));
    }
    let is_purged = i64::from(found.state) == PURGED;
    if !is_purged {
        salvaged.close_append(&known);
    }
    let is_same = base == found.base
        && salvaged.entries.len() == lines.len()
        && salvaged
            .entries
            .iter()
            .zip(&lines)
            .all(|(entry, line)| entry.line().as_bytes() == line.bytes);
    if is_same {
        return Ok(Repaired::Unchanged);
    }
    let at = now.as_microsecond();
    keep_original(client, log, at).await?;
    remove_lines(client, log).await?;
    rewrite(client, &found, base, salvaged).await
}

/// Writes a salvaged log in the place of the damaged one.
async fn rewrite(
    client: &Client,
    found: &Found,
    base: Base,
    salvaged: Salvaged,
) -> Answer<Repaired> {
    let id = found.name();
    let mut lost = in_words(id, &salvaged);
    if base != found.base {
        lost.push(format!(
            "session {id}: the beginning that it shared is gone"
        ));
        let sql = "UPDATE tertulia_session SET base = NULL, base_seq = NULL WHERE log = $1";
        execute(client, sql, &[(&found.log, Type::UUID)]).await?;
    }
    // A fork still has the beginning that it shares.
    if salvaged.kept == 0 && base.is_none() {
        let sql = "DELETE FROM tertulia_session WHERE log = $1";
        execute(client, sql, &[(&found.log, Type::UUID)]).await?;
        let title = found.meta.title.as_deref();
        let title = title.map_or(String::new(), |title| format!(" ({title:?})"));
        return Ok(Repaired::Gone(all_lost(
            &format!("session {id}{title}"),
            &salvaged,
        )));
    }
    for batch in batches(&salvaged.entries) {
        insert_lines(client, found.log, &batch).await?;
    }
    derive_row(client, found.log).await?;
    Ok(Repaired::Salvaged(salvaged.kept, lost))
}

/// Returns the head of the base when the session was forked, as its opening says.
fn parent_at_fork(lines: &[Line], base: Base) -> Option<Head> {
    let (_, seq) = base?;
    let opening = lines.first()?;
    let entry = Entry::decode(&opening.bytes).ok()?;
    match &entry.body {
        Body::Forked(forked) if forked.from.seq == seq => Some(Head {
            seq,
            hash: forked.from.hash,
        }),
        _ => None,
    }
}

/// Copies the lines of a log as they are.
async fn keep_original(client: &Client, log: Uuid, at: i64) -> Answer<()> {
    let values: [Value<'_>; 2] = [(&log, Type::UUID), (&at, Type::INT8)];
    for (part, table) in [("0", "tertulia_entry"), ("part", "tertulia_part")] {
        let sql = format!(
            "INSERT INTO tertulia_damaged(session, at, seq, part, line)
             SELECT session, $2, seq, {part}, line FROM {table} WHERE session = $1
             ON CONFLICT DO NOTHING"
        );
        execute(client, &sql, &values).await?;
    }
    Ok(())
}

async fn remove_lines(client: &Client, log: Uuid) -> Answer<()> {
    for table in ["tertulia_entry", "tertulia_part", "tertulia_snapshot"] {
        let sql = format!("DELETE FROM {table} WHERE session = $1");
        execute(client, &sql, &[(&log, Type::UUID)]).await?;
    }
    Ok(())
}
