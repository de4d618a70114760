//! Checks every byte of the store: hashes, order, file names, list rows, index.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::base;
use super::engine::{FilesEngine, open_log};
use super::file_stamp::FileStamp;
use super::fold::{last_known, session_opened, without_entry};
use super::log::{self, Anchor, Tail};
use super::log_file::LogFile;
use super::names::{Key, LogName, Walk};
use crate::{Progress, Report, StoreResult, chain, place};
use tertulia_core::entry::{Entry, Head, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::Line;

/// A check's report, and the logs that a repair must handle.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) report: Report,
    /// Logs that need a repair.
    pub(super) damaged: BTreeSet<Key>,
    /// Logs whose opening entry names another session than the file.
    pub(super) misnamed: Vec<(LogName, SessionId)>,
    /// Logs of an id that another file has already.
    pub(super) doubles: Vec<LogName>,
    /// Complete logs still under their temporary names, and their final names.
    pub(super) unnamed: Vec<(PathBuf, LogName)>,
}

/// The own lines of a log when it was read.
pub(super) struct Content {
    pub(super) stamp: FileStamp,
    pub(super) tail: Tail,
    pub(super) lines: Vec<Line>,
    pub(super) opening: Option<Entry>,
    pub(super) origin: Option<Origin>,
    /// The highest sequence number that the catalogue has ever seen.
    pub(super) known: Seq,
    /// Damage of a log without any line.
    without_entry: Option<String>,
}

impl FilesEngine {
    pub(super) fn look(&mut self, progress: &Progress) -> StoreResult<Findings> {
        let mut findings = Findings::default();
        let walk = Walk::of(&self.dir)?;
        self.names.take(&walk);
        for path in &walk.foreign {
            let note = format!("{} does not belong to the store", path.display());
            findings.report.notes.push(note);
        }
        for (folder, reason) in &walk.unreadable {
            let fault = format!("{} cannot be read: {reason}", folder.display());
            findings.report.faults.push(fault);
        }
        for double in walk.doubles {
            let fault = format!(
                "{} is a second log of session {}",
                double.path.display(),
                double.id
            );
            findings.report.faults.push(fault);
            findings.doubles.push(double);
        }
        for (path, log) in walk.unnamed {
            if is_being_made(&path) {
                continue;
            }
            if self.names.get(log.key()).is_some() || !is_whole_log(&path) {
                let note = format!(
                    "{} is left of a session that was being made",
                    path.display()
                );
                findings.report.notes.push(note);
                continue;
            }
            findings.report.notes.push(format!(
                "session {} was cut off while it was being made, but all of it is in {}: `tertulia doctor --repair` brings it in",
                log.id,
                path.display()
            ));
            findings.unnamed.push((path, log));
        }
        let total = walk.logs.len() as u64;
        for (done, log) in walk.logs.iter().enumerate() {
            progress.at("checking", done as u64, total);
            // An unreadable log must not hide the others.
            if let Err(error) = self.look_at(log, &mut findings) {
                let fault = format!("session {}: {error}", log.id);
                findings.report.faults.push(fault);
            }
        }
        progress.at("checking", total, total);
        let fault = self.catalogue()?.fault();
        findings.report.faults.extend(fault);
        let index = self.take_index()?;
        findings.report.faults.extend(index.fault());
        self.index = Some(index);
        Ok(findings)
    }

    fn look_at(&mut self, log: &LogName, findings: &mut Findings) -> StoreResult<()> {
        let content = self.content(log)?;
        let report = &mut findings.report;
        if content.tail.is_torn() {
            report.notes.push(format!(
                "{} ends with {} bytes of an append that was cut off; they do not count",
                log.path.display(),
                content.tail.size - content.tail.end
            ));
        }
        if content.lines.is_empty() {
            match content.without_entry {
                Some(damage) => {
                    report.faults.push(format!("session {}: {damage}", log.id));
                    findings.damaged.insert(log.key());
                }
                None => report.notes.push(format!(
                    "{} has no entry: it was cut off while it was being made",
                    log.path.display()
                )),
            }
            return Ok(());
        }
        report.sessions += u64::from(!log.is_shared_prefix());
        report.entries += content.lines.len() as u64;
        let start = match &content.origin {
            None => Head::START,
            Some(origin) => self.start_of(log, origin, findings)?,
        };
        // The catalogue may have seen entries that are missing now.
        let known = (!log.is_shared_prefix()).then_some(content.known);
        let mut read = chain::verify(log.id, start, &content.lines, known);
        if !read.damage.is_empty() {
            findings.damaged.insert(log.key());
        } else if !self.row_holds(log, &content)? {
            findings.report.faults.push(format!(
                "session {}: its row in the list is not what its log says",
                log.id
            ));
        }
        findings.report.damage.append(&mut read.damage);
        // A damaged entry proves nothing.
        let damaged = |entry: &&Entry| {
            findings
                .report
                .damage
                .iter()
                .any(|damage| damage.session == log.id && damage.seq == entry.seq)
        };
        // The last opening counts: a fork imported without its parent begins with the parent's
        // opening.
        let named = read
            .entries
            .iter()
            .rev()
            .filter(|entry| !damaged(entry))
            .find_map(session_opened);
        if let Some(named) = named
            && named != log.id
            && !log.is_shared_prefix()
        {
            findings.report.faults.push(format!(
                "{} is the log of session {named} by what it says",
                log.path.display()
            ));
            findings.misnamed.push((log.clone(), named));
        }
        Ok(())
    }

    /// Returns the head that a fork's own lines must continue; reports a fault if the base lacks
    /// it.
    fn start_of(
        &mut self,
        log: &LogName,
        origin: &Origin,
        findings: &mut Findings,
    ) -> StoreResult<Head> {
        let said = Head {
            seq: origin.seq,
            hash: origin.hash,
        };
        let base = self.base_path(origin)?;
        let head = match &base {
            Some(base) => self.head_at(base, origin.seq)?,
            None => None,
        };
        if head.is_none()
            && let Some(base) = base.as_deref().and_then(LogName::parse)
        {
            // The base ends too early: a repair fills it up to the start of the fork.
            findings.damaged.insert(base.key());
        }
        let fault = match head {
            Some(head) if head == said => return Ok(head),
            Some(_) => "the session that it continues is another at that place",
            None => "the beginning that it shares with another session is gone",
        };
        findings.damaged.insert(log.key());
        findings
            .report
            .faults
            .push(format!("session {}: {fault}", log.id));
        Ok(said)
    }

    /// Returns true if the list row agrees with the log. An outdated row is no fault.
    fn row_holds(&mut self, log: &LogName, content: &Content) -> StoreResult<bool> {
        let Some((_, stored)) = self.catalogue()?.record(log.id, log.shared_prefix)? else {
            return Ok(self
                .catalogue()?
                .number(log.id, log.shared_prefix)?
                .is_none());
        };
        if stored.stamp != content.stamp {
            return Ok(true);
        }
        let folded = self.fold(log, None)?;
        Ok(folded.is_some_and(|folded| {
            folded.record.meta == stored.meta && folded.record.damage == stored.damage
        }))
    }

    /// Reads all own lines of a log, while no append is in progress.
    pub(super) fn content(&mut self, log: &LogName) -> StoreResult<Content> {
        let say = |error| place::trouble(&log.path, "cannot read", error);
        let (file, _) = open_log(&log.path)?;
        let tail = self.tail_at_rest(&log.path, &file)?;
        let stamp = FileStamp::of(&file.file().metadata().map_err(say)?);
        let mut lines = Vec::new();
        if let Some(first) = log::first_place(&file, tail.end).map_err(say)? {
            let from = Anchor {
                offset: 0,
                before: first.back(1),
            };
            log::each_line(&file, from, tail.end, &mut |line| {
                lines.push(line);
                true
            })
            .map_err(say)?;
        }
        let opening = base::opening(&log.path, &file, tail.end).map_err(say)?;
        let mut origin = opening.origin;
        let stored = self.catalogue()?.record(log.id, log.shared_prefix)?;
        let mut known = last_known(log, stored.as_ref().map(|(_, stored)| stored));
        let last = lines.last().map_or(Seq::START, |line| line.seq);
        if last < known {
            let entries = lines.iter().rev();
            let named = entries.filter_map(|line| Entry::decode(&line.bytes).ok());
            let mut named = named.filter_map(|entry| session_opened(&entry));
            if named.next().is_some_and(|named| named != log.id) {
                // The catalogue's numbers belong to the log that should have this name.
                known = Seq::START;
            }
        }
        if opening.entry.is_none() && origin.is_none() {
            // The catalogue may still know the origin that the damaged line named.
            origin = stored.and_then(|(_, record)| record.base);
        }
        let without_entry = match lines.is_empty() {
            true => without_entry(&file, tail.size, known).map_err(say)?,
            false => None,
        };
        Ok(Content {
            known,
            without_entry,
            stamp,
            tail,
            lines,
            opening: opening.entry,
            origin,
        })
    }

    /// Finds the end of a log while no append is in progress.
    fn tail_at_rest(&mut self, path: &Path, file: &LogFile) -> StoreResult<Tail> {
        let locked = file.file().lock_shared().is_ok();
        let tail = self.tail_of(path, file);
        if locked {
            let _ = file.file().unlock();
        }
        tail
    }
}

/// Returns true if the process whose id ends the temporary file name is still running.
fn is_being_made(path: &Path) -> bool {
    let name = path.to_str().and_then(|path| path.rsplit_once(".new-"));
    let maker = name.and_then(|(_, number)| rustix::process::Pid::from_raw(number.parse().ok()?));
    maker.is_some_and(|maker| {
        !matches!(
            rustix::process::test_kill_process(maker),
            Err(rustix::io::Errno::SRCH)
        )
    })
}

/// Largest log under a temporary name that is brought in: it holds the first append of a session.
const LARGEST_UNNAMED: u64 = 1 << 30;

/// Returns true if a file holds only valid consecutive entries and ends with a complete append.
fn is_whole_log(path: &Path) -> bool {
    let Ok(bytes) = place::read_small(path, LARGEST_UNNAMED) else {
        return false;
    };
    let Some(lines) = bytes.strip_suffix(b"\n") else {
        return false;
    };
    let entries: Option<Vec<Entry>> = lines
        .split(|byte| *byte == b'\n')
        .map(|line| Entry::decode(line).ok())
        .collect();
    entries.is_some_and(|entries| {
        entries
            .windows(2)
            .all(|pair| pair[1].follows(&pair[0].head()))
            && entries.first().and_then(session_opened).is_some()
            && entries.last().is_some_and(|last| last.then == 0)
    })
}
