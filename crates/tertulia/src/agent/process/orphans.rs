//! What was left running by a program that was killed before it could end it.

use std::time::Duration;

use rustix::process::Signal;

use super::MARKER_VAR;
use super::tree::{environ, me, processes, send, target};

/// How often one looks again: what is being ended may start others meanwhile.
const LOOKS: u32 = 20;
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(25);

/// Ends every process whose marker begins with `prefix`. How many there were. It blocks, and only
/// whoever knows that nobody else runs under that prefix may call it.
pub fn end_orphans(prefix: &str) -> usize {
    if prefix.is_empty() {
        return 0;
    }
    let marker = format!("{MARKER_VAR}={prefix}").into_bytes();
    let mut ended = std::collections::HashSet::new();
    for _ in 0..LOOKS {
        let mut left = false;
        for (pid, stat) in processes(0) {
            if pid == me() || !stat.alive || !carries(pid, &marker) {
                continue;
            }
            left = true;
            if let Some(target) = target(pid)
                && send(target, stat.start, Signal::KILL).is_ok()
            {
                ended.insert((pid, stat.start));
            }
        }
        if !left {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    ended.len()
}

fn carries(pid: i32, marker: &[u8]) -> bool {
    environ(pid).is_ok_and(|environ| {
        environ
            .split(|byte| *byte == 0)
            .any(|entry| entry.starts_with(marker))
    })
}
