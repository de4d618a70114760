//! Ends processes left running by a program that was killed before it could end them.

use std::collections::HashMap;
use std::time::Duration;

use rustix::process::Signal;

use super::MARKER_VAR;
use super::tree::{Stat, environ, processes, send, target};

/// Maximum number of scans: processes that are being ended may start others meanwhile.
const LOOKS: u32 = 20;
/// Pause between two scans.
const PAUSE: Duration = Duration::from_millis(25);

/// Ends every process whose marker begins with `prefix`, with its descendants, and returns how many
/// there were. Blocks. The caller must know that no other program uses the prefix.
pub fn end_orphans(prefix: &str) -> usize {
    if prefix.is_empty() {
        return 0;
    }
    end_marked(|marker| marker.starts_with(prefix.as_bytes()))
}

/// Ends every process that the guarded run `run` has left, with its descendants.
pub(super) fn end_run(run: &str) -> usize {
    let part = format!(":{run}.").into_bytes();
    end_marked(|marker| marker.windows(part.len()).any(|window| window == part))
}

fn end_marked(is_marked: impl Fn(&[u8]) -> bool) -> usize {
    // Remembered, since a process whose parent has been killed can no longer be traced to it.
    let mut known: HashMap<i32, u64> = HashMap::new();
    let variable = format!("{MARKER_VAR}=").into_bytes();
    let carries = |pid: i32| {
        environ(pid).is_ok_and(|environ| {
            let mut entries = environ.split(|byte| *byte == 0);
            entries.any(|entry| entry.strip_prefix(&variable[..]).is_some_and(&is_marked))
        })
    };
    for _ in 0..LOOKS {
        let all = processes(0);
        let marked = all
            .iter()
            .filter(|(pid, stat)| stat.alive && carries(**pid));
        known.extend(marked.map(|(pid, stat)| (*pid, stat.start)));
        add_related(&mut known, &all);
        let left: Vec<(i32, u64)> = known
            .iter()
            .filter(|(pid, start)| {
                let now = all.get(pid);
                now.is_some_and(|stat| stat.alive && stat.start == **start)
            })
            .map(|(pid, start)| (*pid, *start))
            .collect();
        if left.is_empty() {
            break;
        }
        for (pid, start) in left {
            if let Some(target) = target(pid) {
                // Fails if the process has ended, or may not be signalled.
                let _ = send(target, start, Signal::KILL);
            }
        }
        std::thread::sleep(PAUSE);
    }
    known.len()
}

/// Adds descendants of known processes, and members of a group or session that one of them leads.
fn add_related(known: &mut HashMap<i32, u64>, all: &HashMap<i32, Stat>) {
    loop {
        let is_known = |pid: &i32| {
            let start = known.get(pid);
            start.is_some_and(|start| all.get(pid).is_none_or(|stat| stat.start == *start))
        };
        let new: Vec<(i32, u64)> = all
            .iter()
            .filter(|(pid, stat)| {
                stat.alive && !known.contains_key(pid) && stat.relatives().iter().any(is_known)
            })
            .map(|(pid, stat)| (*pid, stat.start))
            .collect();
        if new.is_empty() {
            return;
        }
        known.extend(new);
    }
}
