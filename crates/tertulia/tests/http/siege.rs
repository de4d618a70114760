//! Many clients that ask again and again.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::stage::WebServer;
use crate::home::until;

/// Number of clients that keep trying.
const ATTACKERS: usize = 300;
/// Pause of such a client between two requests: they need not use up the machine, too.
const PACE: Duration = Duration::from_millis(100);

/// Runs a check while many clients at an address do something again and again, each of them at least once.
pub fn besieged(server: &WebServer, address: &str, request: &str, check: impl FnOnce()) {
    let (is_over, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
    let attack = || {
        let mut has_begun = false;
        while !is_over.load(Ordering::Relaxed) {
            let Ok(mut stream) = server.try_connect_from(address) else {
                continue;
            };
            // The server may hang up at any time.
            if stream.write_all(request.as_bytes()).is_ok() && !has_begun {
                begun.fetch_add(1, Ordering::Relaxed);
                has_begun = true;
            }
            // After an answer it pauses, unless the server hangs up.
            stream.set_read_timeout(Some(PACE)).unwrap();
            let mut is_answered = false;
            while !is_over.load(Ordering::Relaxed) {
                match stream.read(&mut [0; 4096]) {
                    Ok(1..) => is_answered = true,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        if is_answered && stream.write_all(request.as_bytes()).is_err() {
                            break;
                        }
                        is_answered = false;
                    }
                    _ => break,
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..ATTACKERS {
            scope.spawn(attack);
        }
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until("the attack has begun", || {
                (begun.load(Ordering::Relaxed) == ATTACKERS).then_some(())
            });
            check();
        }));
        is_over.store(true, Ordering::Relaxed);
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
