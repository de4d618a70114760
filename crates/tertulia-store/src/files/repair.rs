//! Repairs damaged logs: rewrites each with its readable entries, and relinks its forks to it. The
//! damaged log stays beside it as `<log>.damaged-<seconds>`. A log that would have less than reading
//! gives of it is left as it is, and so are its forks.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use jiff::Timestamp;

use super::check::{Content, Findings};
use super::engine::{FilesEngine, as_lines};
use super::log_file::{self, is_there};
use super::names::{Key, LIVE, LogName, Walk};
use super::purge::remove;
use crate::salvage::{
    Known, all_lost, derived_id, in_words, left_alone, left_like_its_base, salvage,
};
use crate::{Progress, Report, StoreError, StoreResult, place};
use tertulia_core::entry::{Body, Entry, Forked, Head, NewEntry, Origin, Relation};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::session::Line;

/// All logs of a store, and which log each fork continues.
struct Family {
    logs: BTreeMap<Key, LogName>,
    /// The base of each fork.
    origins: BTreeMap<Key, (Key, Origin)>,
}

impl FilesEngine {
    pub(super) fn check_and_repair(
        &mut self,
        now: Timestamp,
        progress: &Progress,
    ) -> StoreResult<Report> {
        let _structure = self.hold_structure()?;
        let findings = self.look(progress)?;
        if findings.report.is_clean() && findings.unnamed.is_empty() {
            return Ok(findings.report);
        }
        let family = self.family()?;
        let touched = family.with_forks(&findings.damaged);
        let open = touched
            .iter()
            .copied()
            .chain(findings.misnamed.iter().map(|(log, _)| log.key()))
            .find(|(id, shared_prefix)| *shared_prefix == LIVE && self.claims.is_open(*id));
        if let Some(key) = open {
            let log = family.logs.get(&key);
            return Err(StoreError::locked(log.map_or(&self.dir, |log| &log.path)));
        }
        self.repair(findings, &family, touched, now, progress)
    }

    fn repair(
        &mut self,
        findings: Findings,
        family: &Family,
        touched: Vec<Key>,
        now: Timestamp,
        progress: &Progress,
    ) -> StoreResult<Report> {
        let mut report = findings.report;
        let total = touched.len() as u64;
        let mut left: HashSet<Key> = HashSet::new();
        for (done, key) in touched.into_iter().enumerate() {
            progress.at("salvaging", done as u64, total);
            let base = family.origins.get(&key).map(|(base, _)| base);
            if base.is_some_and(|base| left.contains(base)) {
                left.insert(key);
                report.lost.push(left_like_its_base(key.0));
            } else if !self.salvage_log(family, key, now, &mut report)? {
                left.insert(key);
            }
        }
        self.rename_all(&findings.misnamed, now, &mut report)?;
        for (path, log) in &findings.unnamed {
            fs::rename(path, &log.path)
                .map_err(|error| place::trouble(path, "cannot rename", error))?;
            place::sync_folder_of(&log.path)?;
            report.repaired.push(format!(
                "session {} was brought in from {}",
                log.id,
                path.display()
            ));
        }
        for double in &findings.doubles {
            set_aside(&double.path, now, &mut report)?;
        }
        self.forget_files();
        let rebuilt = self.derive_all_anew(progress)?;
        report.repaired.push(format!(
            "rebuilt the list rows of {} sessions and the search index",
            rebuilt.sessions
        ));
        Ok(report)
    }

    fn family(&mut self) -> StoreResult<Family> {
        let walk = Walk::of(&self.dir)?;
        let mut family = Family {
            logs: BTreeMap::new(),
            origins: BTreeMap::new(),
        };
        for log in walk.logs {
            let key = log.key();
            if let Ok(content) = self.content(&log)
                && let Some(origin) = content.origin
                && let Some(base) = self.base_path(&origin)?
                && let Some(base) = LogName::parse(&base)
            {
                family.origins.insert(key, (base.key(), origin));
            }
            family.logs.insert(key, log);
        }
        Ok(family)
    }

    /// Rewrites one log if it is damaged. Must run after its base was repaired. Returns false if
    /// the log is left as it is although it is damaged.
    fn salvage_log(
        &mut self,
        family: &Family,
        key: Key,
        now: Timestamp,
        report: &mut Report,
    ) -> StoreResult<bool> {
        let Some(log) = family.logs.get(&key) else {
            return Ok(true);
        };
        let Ok(content) = self.content(log) else {
            return Ok(false);
        };
        let (is, was) = match family.origins.get(&key) {
            None => {
                if content.origin.is_some() {
                    let lost = "the beginning that it shared is gone";
                    report.lost.push(format!("session {}: {lost}", log.id));
                }
                (Head::START, Head::START)
            }
            Some((base, origin)) => {
                let said = Head {
                    seq: origin.seq,
                    hash: origin.hash,
                };
                let head = match family.logs.get(base) {
                    Some(base) => self.head_at(&base.path, origin.seq)?,
                    None => None,
                };
                (head.unwrap_or(Head::START), said)
            }
        };
        let last = content.lines.last().map_or(Seq::START, |line| line.seq);
        let lines = self.lines_to_salvage(family, key, &content, is, report);
        let known = Known {
            session: log.id,
            parent: is,
            parent_was: was,
            base: family.base_to_name(key),
            last: last.max(family.last_wanted(key)).max(content.known),
            now,
        };
        let salvaged = salvage(&known, &lines);
        if let Some(seq) = salvaged.first_reduced(&content.lines) {
            report.lost.push(left_alone(log.id, seq));
            return Ok(false);
        }
        if salvaged.kept == 0 && is == Head::START && family.last_wanted(key) == Seq::START {
            // A log of placeholders alone is no session, unless it is a fork, which still has the
            // beginning that it shares.
            report
                .lost
                .push(all_lost(&format!("session {}", log.id), &salvaged));
            set_aside(&log.path, now, report)?;
            return Ok(true);
        }
        report.lost.extend(in_words(log.id, &salvaged));
        let bytes = as_lines(&salvaged.entries);
        if bytes == as_they_were(&content.lines) {
            return Ok(true);
        }
        let _held = self.lock_log(&log.path)?;
        let held_by = log_file::held_by(&log.path);
        let kept = place::damaged_name(&held_by, ".", now);
        place::keep_as(&held_by, &kept)?;
        place::write_over(&log.path, &bytes)?;
        // The repaired log is plain.
        remove(&log_file::packed_path(&log.path))?;
        place::sync_folder_of(&log.path)?;
        report.repaired.push(format!(
            "the log of session {} was salvaged; as it was, it is kept as {}",
            log.id,
            kept.display()
        ));
        Ok(true)
    }

    /// Returns the lines by sequence number. Recreates a fork's unreadable first line if its origin
    /// is known: without it the log would lose its shared prefix.
    fn lines_to_salvage(
        &self,
        family: &Family,
        key: Key,
        content: &Content,
        parent: Head,
        report: &mut Report,
    ) -> BTreeMap<Seq, Line> {
        let mut lines: BTreeMap<Seq, Line> = content
            .lines
            .iter()
            .map(|line| (line.seq, line.clone()))
            .collect();
        if content.opening.is_none()
            && let Some((_, origin)) = family.origins.get(&key)
            && parent.seq == origin.seq
            && let Some(opening) = opening_anew(family, key, origin, parent)
        {
            report.lost.push(format!(
                "session {}: entry {}, with which it began, could not be read; rewritten as a fork of {}",
                key.0, opening.seq, origin.id
            ));
            lines.insert(opening.seq, Line::from(&opening));
        }
        lines
    }

    /// Renames each log to the session id in its opening. Two logs may have each other's names, so
    /// all are moved to temporary names first.
    fn rename_all(
        &mut self,
        misnamed: &[(LogName, SessionId)],
        now: Timestamp,
        report: &mut Report,
    ) -> StoreResult<()> {
        let mut waiting = Vec::new();
        for (log, named) in misnamed {
            self.unpack(log.id, &log.path)?;
            // A temporary name that a later repair recognises, if this one is interrupted.
            let name = format!(".new-{}", std::process::id());
            let aside = place::with_suffix(&log.named(*named), &name);
            fs::rename(&log.path, &aside)
                .map_err(|error| place::trouble(&log.path, "cannot rename", error))?;
            waiting.push((log, *named, aside));
        }
        for (log, named, aside) in waiting {
            let path = log.named(named);
            self.names.take(&Walk::of(&self.dir)?);
            if self.names.get((named, log.shared_prefix)).is_some() || is_there(&path) {
                let kept = place::damaged_name(&log.path, ".", now);
                fs::rename(&aside, &kept)
                    .map_err(|error| place::trouble(&aside, "cannot rename", error))?;
                report.repaired.push(format!(
                    "{} was set aside as {}: there is another log of session {named}",
                    log.path.display(),
                    kept.display()
                ));
                continue;
            }
            fs::rename(&aside, &path)
                .map_err(|error| place::trouble(&aside, "cannot rename", error))?;
            report.repaired.push(format!(
                "{} was named after the session that it holds: {}",
                log.path.display(),
                path.display()
            ));
            place::sync_folder_of(&path)?;
        }
        self.names.forget();
        Ok(())
    }
}

impl Family {
    /// Returns these logs and all that continue them, bases first.
    fn with_forks(&self, damaged: &BTreeSet<Key>) -> Vec<Key> {
        let mut touched: HashSet<Key> = damaged.iter().copied().collect();
        loop {
            let more: Vec<Key> = self
                .origins
                .iter()
                .filter(|(key, (base, _))| touched.contains(base) && !touched.contains(*key))
                .map(|(key, _)| *key)
                .collect();
            if more.is_empty() {
                break;
            }
            touched.extend(more);
        }
        let mut ordered: Vec<Key> = touched.into_iter().collect();
        ordered.sort_by_key(|key| (self.depth(*key), *key));
        ordered
    }

    /// Returns the length of a log's chain of bases, itself included.
    fn depth(&self, key: Key) -> usize {
        let mut passed = vec![key];
        while let Some(last) = passed.last()
            && let Some((base, _)) = self.origins.get(last)
            && !passed.contains(base)
        {
            passed.push(*base);
        }
        passed.len()
    }

    /// Returns the id that a fork's altered opening is to name, if no log has the id that it names.
    fn base_to_name(&self, key: Key) -> Option<SessionId> {
        let (base, origin) = self.origins.get(&key)?;
        let is_there = self.logs.keys().any(|(id, _)| *id == origin.id);
        (!is_there).then_some(base.0)
    }

    /// Returns the last sequence number that a fork needs of a log.
    fn last_wanted(&self, key: Key) -> Seq {
        let wanted = self.origins.values().filter(|(base, _)| *base == key);
        wanted
            .map(|(_, origin)| origin.seq)
            .max()
            .unwrap_or(Seq::START)
    }
}

fn opening_anew(family: &Family, key: Key, origin: &Origin, parent: Head) -> Option<Entry> {
    let ms = i64::try_from(family.logs.get(&key)?.created_ms).ok()?;
    let new = NewEntry {
        id: EntryId::new(derived_id(&format!("{}:opening", key.0))),
        at: Timestamp::from_millisecond(ms).ok()?,
        body: Body::Forked(Forked {
            session: key.0,
            from: Origin {
                hash: parent.hash,
                ..origin.clone()
            },
            relation: Relation::Fork,
            title: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        }),
        redacted: BTreeMap::new(),
        author: None,
    };
    Entry::chain(&parent, vec![new]).ok()?.pop()
}

fn as_they_were(lines: &[Line]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend_from_slice(&line.bytes);
        bytes.push(b'\n');
    }
    bytes
}

fn set_aside(log: &Path, now: Timestamp, report: &mut Report) -> StoreResult<()> {
    let path = &log_file::held_by(log);
    let kept = place::damaged_name(path, ".", now);
    fs::rename(path, &kept).map_err(|error| place::trouble(path, "cannot set aside", error))?;
    report.repaired.push(format!(
        "{} was set aside as {}",
        path.display(),
        kept.display()
    ));
    place::sync_folder_of(&kept)
}
