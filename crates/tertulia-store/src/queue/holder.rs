//! The holder of a lock: from the record that it writes, or from the operating system.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::place;

/// The record has a fixed size: a file that does not grow costs the next sync nothing.
const RECORD_BYTES: usize = 256;

/// The holder of a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Process id.
    pub pid: u32,
    /// Program name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Host name, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When it took the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}",
            self.program.as_deref().unwrap_or("another program")
        )?;
        write!(f, " (process {}", self.pid)?;
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        if let Some(since) = self.since {
            let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
            write!(f, ", since {since}")?;
        }
        f.write_str(")")
    }
}

/// Where the holder of a lock is recorded.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// In the lock file.
    Inside,
    /// In this file.
    At(PathBuf),
    /// Nowhere: only the operating system knows the holder.
    Nowhere,
}

impl Record {
    /// Records the holder; the time of the file says since when. The same holder as before costs
    /// no write, only a new time. Ignores failures, since the operating system may still know the
    /// holder.
    pub(crate) fn write(&self, lock: &File, holder: &LockHolder) {
        let _ = match self {
            Record::Inside => put(lock, holder),
            Record::At(path) => match place::lock_file(path) {
                Ok(file) => put(&file, holder),
                Err(_) => Ok(()),
            },
            Record::Nowhere => Ok(()),
        };
    }

    pub(crate) fn read(&self, lock: &File) -> Option<LockHolder> {
        match self {
            Record::Inside => get(lock),
            Record::At(path) => get(&File::open(path).ok()?),
            Record::Nowhere => None,
        }
    }

    /// Returns the holder: the process id from the operating system, the rest from the record. A
    /// record of another process is ignored: it stays when its writer releases the lock, and an
    /// older program writes none.
    pub(super) fn holder(&self, lock: &File) -> Option<LockHolder> {
        let written = self.read(lock);
        let Some(pid) = pid_with_lock(lock) else {
            return written;
        };
        match written {
            Some(written) if written.pid == pid => Some(written),
            _ => Some(LockHolder {
                pid,
                program: program_of(pid),
                ..LockHolder::default()
            }),
        }
    }
}

fn put(file: &File, holder: &LockHolder) -> io::Result<()> {
    let who = LockHolder {
        since: None,
        ..holder.clone()
    };
    let text = serde_json::to_vec(&who).unwrap_or_default();
    let mut record = [b' '; RECORD_BYTES];
    if text.len() < RECORD_BYTES {
        record[..text.len()].copy_from_slice(&text);
    }
    record[RECORD_BYTES - 1] = b'\n';
    let mut there = [0; RECORD_BYTES];
    if file.read_exact_at(&mut there, 0).is_err() || there != record {
        file.write_all_at(&record, 0)?;
    }
    match holder.since {
        Some(since) => file.set_modified(since.into()),
        None => Ok(()),
    }
}

fn get(file: &File) -> Option<LockHolder> {
    let mut record = [0; RECORD_BYTES];
    let read = file.read_at(&mut record, 0).ok()?;
    let who: LockHolder = serde_json::from_slice(&record[..read]).ok()?;
    let since = file.metadata().and_then(|found| found.modified()).ok();
    Some(LockHolder {
        since: since.and_then(|since| since.try_into().ok()),
        ..who
    })
}

/// Returns the process that holds the file's lock, if the operating system reports it.
fn pid_with_lock(file: &File) -> Option<u32> {
    let found = file.metadata().ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    pid_in(&locks, found.dev(), found.ino())
}

/// Looks a file up in `/proc/locks`. Some file systems show another device number there.
fn pid_in(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let device = format!(
        "{:02x}:{:02x}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let inode = inode.to_string();
    let held: Vec<(u32, bool)> = locks
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let kind = words.nth(1)?;
            let pid = words.nth(2)?.parse().ok()?;
            let (on, of) = words.next()?.rsplit_once(':')?;
            (kind == "FLOCK" && of == inode).then(|| (pid, on == device))
        })
        .filter(|(pid, _)| *pid > 0)
        .collect();
    let here = held.iter().find(|(_, here)| *here);
    here.or(held.first().filter(|_| held.len() == 1))
        .map(|(pid, _)| *pid)
}

/// Returns the program name of a process, if the operating system reports it.
fn program_of(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_knows_a_holder_that_wrote_nothing() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 08:01:99 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 4321 08:01:99 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 08:01:99 0 EOF\n";
        let device = rustix::fs::makedev(8, 1);
        assert_eq!(pid_in(locks, device, 99), Some(4321));
        assert_eq!(pid_in(locks, rustix::fs::makedev(0, 31), 99), Some(4321));
        assert_eq!(pid_in(locks, device, 98), None);
    }
}
