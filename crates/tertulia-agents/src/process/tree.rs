//! The tree of processes that one run has started: finds and ends it.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::time::Duration;
use std::{fs, io, mem};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use super::MARKER_VAR;

/// Maximum time for which KILL is repeated; a process stuck in the kernel does not go away.
const KILL_BOUND: Duration = Duration::from_secs(3);
/// The same when the future is dropped, which blocks a thread.
const DROP_BOUND: Duration = Duration::from_millis(200);
/// Number of repetitions of a scan of /proc that found no process but was not conclusive.
const UNSURE_LOOKS: u32 = 10;
/// PF_KTHREAD among the flags in /proc/<pid>/stat.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// A process according to /proc/<pid>/stat; pid and start together are never reused.
#[derive(Clone, Copy)]
pub(super) struct Stat {
    parent: i32,
    group: i32,
    session: i32,
    pub(super) start: u64,
    pub(super) alive: bool,
}

impl Stat {
    /// Pids of the parent, and of the leaders of the group and the session.
    pub(super) fn relatives(&self) -> [i32; 3] {
        [self.parent, self.group, self.session]
    }
}

fn stat(pid: i32) -> Option<Stat> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // The name in parentheses may itself hold spaces and parentheses.
    let fields: Vec<&str> = text
        .get(text.rfind(')')? + 1..)?
        .split_ascii_whitespace()
        .collect();
    let number = |i: usize| fields.get(i)?.parse().ok();
    let threads: u32 = fields.get(17)?.parse().ok()?;
    let flags: u32 = fields.get(6)?.parse().ok()?;
    Some(Stat {
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
        // Kernel threads never belong to the run, and have no environment to check. With several
        // threads, only the first may have ended.
        alive: flags & KERNEL_THREAD == 0
            && (threads > 1 || !matches!(*fields.first()?, "Z" | "X" | "x")),
    })
}

/// The processes of one run. Without /proc only the process group is known.
pub(super) struct Tree {
    root: i32,
    /// When the root started: nothing older can descend from it.
    born: Option<u64>,
    /// Pid and start of every process seen to belong to the run. Remembered because a process whose
    /// parent has died can no longer be traced to the run.
    known: HashMap<i32, u64>,
    marker: Option<Vec<u8>>,
    armed: bool,
}

/// Result of one scan of /proc.
pub(super) struct Look {
    alive: Vec<(i32, u64)>,
    group: bool,
    /// Whether some process could not be checked: during exec its environment reads as empty.
    unsure: bool,
}

impl Tree {
    /// Tracks the tree of `child`; until disarmed, dropping it kills the tree.
    pub(super) fn of(child: &Child, marker: &str) -> Self {
        let root = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .unwrap_or(0);
        let born = stat(root).map(|stat| stat.start);
        let marker = (!marker.is_empty()).then(|| format!("{MARKER_VAR}={marker}").into_bytes());
        let known = born.map(|start| (root, start)).into_iter().collect();
        Self {
            root,
            born,
            known,
            marker,
            armed: true,
        }
    }

    /// Finds the run's processes: known ones, their descendants, members of a group or session that
    /// one of them leads, and (`deep`) processes that carry the marker.
    pub(super) fn look(&mut self, deep: bool) -> Look {
        let Some(born) = self.born else {
            let alive = self
                .group_alive()
                .then_some((self.root, 0))
                .into_iter()
                .collect();
            return Look {
                alive,
                group: true,
                unsure: false,
            };
        };
        let all = processes(born);
        let mut unsure = false;
        for (&pid, stat) in all.iter().filter(|_| deep) {
            match self.carries_marker(pid, stat) {
                Some(true) => drop(self.known.insert(pid, stat.start)),
                Some(false) => {}
                None => unsure |= stat.alive,
            }
        }
        loop {
            let ours = |pid: &i32| {
                let start = self.known.get(pid);
                start.is_some_and(|start| all.get(pid).is_none_or(|stat| stat.start == *start))
            };
            let related = |stat: &Stat| stat.relatives().iter().any(ours);
            let new: Vec<(i32, u64)> = all
                .iter()
                .filter(|(pid, stat)| !self.knows(**pid, stat) && related(stat))
                .map(|(pid, stat)| (*pid, stat.start))
                .collect();
            if new.is_empty() {
                break;
            }
            self.known.extend(new);
        }
        let mut members = all.clone();
        members.retain(|pid, stat| stat.alive && self.knows(*pid, stat));
        // A pid is not reused while a group or session bears it; after that it is forgotten.
        let led: HashSet<i32> = members
            .values()
            .flat_map(|m| [m.group, m.session])
            .collect();
        self.known.retain(|pid, start| match all.get(pid) {
            Some(stat) => stat.start == *start,
            None => led.contains(pid),
        });
        let group = led.contains(&self.root) && self.known.contains_key(&self.root);
        let mut alive: Vec<(i32, u64)> = members
            .iter()
            .map(|(pid, stat)| (*pid, stat.start))
            .collect();
        // Parents first: a parent that loses a child before its own TERM would see a failure.
        alive.sort_by_key(|(pid, start)| (*start, *pid));
        Look {
            alive,
            group,
            unsure,
        }
    }

    /// Marks the tree as ended: dropping it does nothing.
    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }

    fn knows(&self, pid: i32, stat: &Stat) -> bool {
        self.known.get(&pid) == Some(&stat.start)
    }

    /// Returns whether the process carries the marker, or `None` if that is not known yet.
    fn carries_marker(&self, pid: i32, stat: &Stat) -> Option<bool> {
        if self.knows(pid, stat) {
            return Some(true);
        }
        let Some(marker) = &self.marker else {
            return Some(false);
        };
        let Ok(environ) = environ(pid) else {
            return Some(false);
        };
        let found = environ.split(|b| *b == 0).any(|entry| entry == marker);
        (found || environ.last() == Some(&0)).then_some(found)
    }

    fn group_alive(&self) -> bool {
        target(self.root).is_some_and(|pid| test_kill_process_group(pid).is_ok())
    }

    fn known_alive(&self) -> bool {
        let lives = |(pid, start): (&i32, &u64)| {
            stat(*pid).is_some_and(|stat| stat.alive && stat.start == *start)
        };
        if self.born.is_none() {
            self.group_alive()
        } else {
            self.known.iter().any(lives)
        }
    }

    /// Sends TERM to each process once (a second TERM makes some programs skip their clean-up), and
    /// KILL to those left after `grace`.
    pub(super) async fn end(&mut self, grace: Duration) {
        let began = Instant::now();
        let kill_at = began.checked_add(grace);
        let mut give_up: Option<Instant> = None;
        let (mut told, mut unsure_left) = (HashSet::new(), UNSURE_LOOKS);
        loop {
            let look = self.look(true);
            if look.alive.is_empty() {
                if !look.unsure || unsure_left == 0 {
                    return;
                }
                unsure_left -= 1;
                sleep(Duration::from_millis(5)).await;
                continue;
            }
            if kill_at.is_some_and(|at| Instant::now() >= at) {
                let bound = *give_up.get_or_insert_with(|| Instant::now() + KILL_BOUND);
                if Instant::now() >= bound {
                    return;
                }
                self.kill(&look);
                self.gone(Some(Instant::now() + Duration::from_millis(50)))
                    .await;
            } else {
                for id in look.alive.into_iter().filter(|id| told.insert(*id)) {
                    self.signal(id, Signal::TERM);
                    // A stopped process cannot act on TERM.
                    self.signal(id, Signal::CONT);
                }
                self.gone(kill_at).await;
            }
        }
    }

    /// Waits until no known process is left, or until `until`.
    async fn gone(&self, until: Option<Instant>) {
        let mut pause = Duration::from_millis(2);
        while self.known_alive() && until.is_none_or(|at| Instant::now() < at) {
            sleep(pause.min(until.map_or(pause, |at| at - Instant::now()))).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn kill(&self, look: &Look) {
        // The whole group first: signalled one by one, forking processes could outrun the loop.
        if let Some(group) = target(self.root).filter(|_| look.group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for id in &look.alive {
            self.signal(*id, Signal::KILL);
        }
    }

    /// Sends a signal. Failures are ignored: the process has ended, or may not be signalled.
    fn signal(&self, (pid, start): (i32, u64), signal: Signal) {
        if self.born.is_none() {
            let _ = target(self.root).map(|group| kill_process_group(group, signal));
        } else if let Some(pid) = target(pid).filter(|_| pid != me()) {
            let _ = send(pid, start, signal);
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !mem::take(&mut self.armed) {
            return;
        }
        let until = Instant::now() + DROP_BOUND;
        let mut unsure_left = UNSURE_LOOKS;
        while Instant::now() < until {
            let look = self.look(true);
            if look.alive.is_empty() {
                if !look.unsure || unsure_left == 0 {
                    return;
                }
                unsure_left -= 1;
            }
            self.kill(&look);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub(super) fn me() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Converts a pid, but never 0 or 1, which mean tertulia's own group, init or every process.
pub(super) fn target(pid: i32) -> Option<Pid> {
    // Checked first: `from_raw` panics on negative numbers.
    if pid > 1 { Pid::from_raw(pid) } else { None }
}

/// Returns all processes except init and this one that started at `born` or later.
pub(super) fn processes(born: u64) -> HashMap<i32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let theirs = pids.filter(|pid| *pid > 1 && *pid != me());
    theirs
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .filter(|(_, stat)| stat.start >= born)
        .collect()
}

/// Reads the environment of a process at once: an exec between two reads may replace it, and the
/// part that was read would look complete.
pub(super) fn environ(pid: i32) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(format!("/proc/{pid}/environ"))?;
    let mut bytes = vec![0; 128 * 1024];
    let count = file.read(&mut bytes)?;
    if count < bytes.len() {
        bytes.truncate(count);
    } else {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Signals the process that started at `start`, not a later one with the same pid.
#[cfg(target_os = "linux")]
pub(super) fn send(pid: Pid, start: u64, signal: Signal) -> Result<(), Errno> {
    use rustix::process::{PidfdFlags, kill_process, pidfd_open, pidfd_send_signal};
    // Opened before the check, so that the checked process is the one that gets the signal.
    let handle = pidfd_open(pid, PidfdFlags::empty());
    if stat(pid.as_raw_nonzero().get()).is_none_or(|stat| stat.start != start) {
        return Err(Errno::SRCH);
    }
    match handle.and_then(|handle| pidfd_send_signal(handle, signal)) {
        // Old kernels and some sandboxes have no pidfd.
        Err(error) if error != Errno::SRCH => kill_process(pid, signal),
        sent => sent,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn send(_: Pid, _: u64, _: Signal) -> Result<(), Errno> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The case of systems other than Linux: no /proc, only the group.
    #[tokio::test]
    async fn without_proc_the_group_is_ended() {
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", "trap '' TERM; echo up; sleep 300 & wait; sleep 300"]);
        command
            .process_group(0)
            .stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0; 3];
        let stdout = child.stdout.as_mut().unwrap();
        tokio::io::AsyncReadExt::read_exact(stdout, &mut line)
            .await
            .unwrap();
        let mut tree = Tree::of(&child, "");
        (tree.born, tree.known) = (None, HashMap::new());
        let ((), status) = tokio::join!(tree.end(Duration::from_millis(50)), child.wait());
        assert!(!status.unwrap().success());
        assert!(!tree.group_alive());
        tree.disarm();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn reads_our_own_stat() {
        let own = stat(me()).unwrap();
        assert!(own.alive && own.start > 0 && own.parent > 0);
        assert!(!processes(0).contains_key(&me()));
        assert!(target(0).is_none() && target(1).is_none() && target(-5).is_none());
    }
}
