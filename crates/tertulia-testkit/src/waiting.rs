//! Waiting for events. Everything that tests poll is polled here, so that no test waits for a time
//! to pass and hopes that something has happened.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long an event may take on a busy machine. A test that waits for longer hangs.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Pause between two looks.
const GLANCE: Duration = Duration::from_millis(5);

/// Looks until there is a value.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            begun.elapsed() < DEADLINE,
            "{what}: not within {DEADLINE:?}"
        );
        std::thread::sleep(GLANCE);
    }
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// Waits until a condition holds, while other tasks go on.
pub async fn wait_until_async(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            begun.elapsed() < DEADLINE,
            "{what}: not within {DEADLINE:?}"
        );
        tokio::time::sleep(GLANCE).await;
    }
}

/// Waits for a process to exit. Kills one that hangs, and fails.
#[track_caller]
pub fn wait_for_exit(child: &mut Child, what: &str) -> ExitStatus {
    let begun = Instant::now();
    wait_for(what, || {
        if begun.elapsed() > DEADLINE - GLANCE * 10 {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{what} does not end");
        }
        child.try_wait().unwrap()
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_condition_that_holds_later_is_waited_for() {
        let mut looks = 0;
        wait_until("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    fn the_exit_of_a_process_is_its_status() {
        let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let status = wait_for_exit(&mut child, "a shell");
        assert_eq!(status.code(), Some(7));
    }
}
