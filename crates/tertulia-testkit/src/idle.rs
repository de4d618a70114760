//! Whether a process is idle: what its threads wait for, as the kernel tells. This needs no time in
//! which nothing happens, so a busy machine changes nothing.

use std::fs;
use std::time::Duration;

/// System calls that end by themselves: number, position of the limit among the arguments, and its
/// kind.
#[cfg(target_arch = "x86_64")]
const LIMITED: &[(u64, usize, Limit)] = &[
    (7, 2, Limit::Millis),    // poll
    (23, 4, Limit::Pointer),  // select
    (35, 0, Limit::Pointer),  // nanosleep
    (128, 2, Limit::Pointer), // rt_sigtimedwait
    (202, 3, Limit::Pointer), // futex
    (230, 2, Limit::Pointer), // clock_nanosleep
    (232, 3, Limit::Millis),  // epoll_wait
    (270, 4, Limit::Pointer), // pselect6
    (271, 2, Limit::Pointer), // ppoll
    (281, 3, Limit::Millis),  // epoll_pwait
    (441, 3, Limit::Pointer), // epoll_pwait2
];
#[cfg(not(target_arch = "x86_64"))]
const LIMITED: &[(u64, usize, Limit)] = &[
    (22, 3, Limit::Millis),   // epoll_pwait
    (72, 4, Limit::Pointer),  // pselect6
    (73, 2, Limit::Pointer),  // ppoll
    (98, 3, Limit::Pointer),  // futex
    (101, 0, Limit::Pointer), // nanosleep
    (115, 2, Limit::Pointer), // clock_nanosleep
    (137, 2, Limit::Pointer), // rt_sigtimedwait
    (441, 3, Limit::Pointer), // epoll_pwait2
];

#[derive(Clone, Copy)]
enum Limit {
    /// Milliseconds; none if negative.
    Millis,
    /// Address of a time that cannot be read from here; none if null.
    Pointer,
}

/// Returns true if no thread of a process runs, and none wakes up by itself within `span`.
pub fn is_idle(pid: u32, span: Duration) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    let calls = tasks.flatten().map(|task| {
        // The thread may have ended meanwhile.
        fs::read_to_string(task.path().join("syscall")).ok()
    });
    calls.flatten().all(|call| sleeps(&call, span))
}

/// Reads a line of `/proc/PID/task/TID/syscall`.
fn sleeps(call: &str, span: Duration) -> bool {
    let mut words = call.split_whitespace();
    // A thread that runs has a word here, one that is stopped a negative number.
    let Some(number) = words.next().and_then(|number| number.parse::<u64>().ok()) else {
        return false;
    };
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let arguments: Vec<u64> = words.map_while(hex).collect();
    let limited = LIMITED.iter().find(|(limited, ..)| *limited == number);
    let Some((_, place, limit)) = limited else {
        return true;
    };
    let Some(argument) = arguments.get(*place) else {
        return false;
    };
    match limit {
        // An `int`: the upper half of the register is undefined.
        Limit::Millis => match i64::from(*argument as u32 as i32) {
            none if none < 0 => true,
            millis => Duration::from_millis(millis.unsigned_abs()) >= span,
        },
        Limit::Pointer => *argument == 0,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::waiting::wait_until;

    const SECOND: Duration = Duration::from_secs(1);

    /// A process that is killed at the end of its test.
    struct Process(Child);

    impl Process {
        fn run(script: &str) -> Process {
            Process::start(Command::new("sh").args(["-c", script]))
        }

        fn start(command: &mut Command) -> Process {
            Process(command.stdin(Stdio::piped()).spawn().unwrap())
        }

        /// Waits until its first thread is in this call.
        fn until_in(&self, number: u64) {
            let path = format!("/proc/{}/syscall", self.0.id());
            wait_until("it is in its call", || {
                let call = fs::read_to_string(&path).unwrap();
                call.starts_with(&format!("{number} "))
            });
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Numbers of the calls in which a process waits for input, and `sleep` for its time.
    const READ: u64 = if cfg!(target_arch = "x86_64") { 0 } else { 63 };
    const CLOCK_NANOSLEEP: u64 = if cfg!(target_arch = "x86_64") {
        230
    } else {
        115
    };

    #[test]
    fn a_process_that_waits_for_input_is_idle() {
        let process = Process::run("read line");
        wait_until("it waits", || is_idle(process.0.id(), SECOND));
    }

    #[test]
    fn a_process_that_computes_is_never_idle() {
        let process = Process::run("while :; do :; done");
        let pid = process.0.id();
        wait_until("it computes", || {
            let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap();
            call.starts_with("running")
        });
        assert!((0..1000).all(|_| !is_idle(pid, SECOND)));
    }

    #[test]
    fn a_process_that_wakes_up_by_itself_is_not_idle() {
        let process = Process::run("exec sleep 1000");
        process.until_in(CLOCK_NANOSLEEP);
        // The kernel does not tell for how long.
        assert!(!is_idle(process.0.id(), SECOND));
    }

    #[test]
    fn a_process_that_is_gone_is_not_idle() {
        let mut process = Process::run("exit");
        process.0.wait().unwrap();
        assert!(!is_idle(process.0.id(), SECOND));
    }

    #[test]
    fn one_busy_thread_makes_a_process_busy() {
        let script = "import threading\ndef compute():\n    while True: pass\n\
                      threading.Thread(target=compute, daemon=True).start()\ninput()";
        let python = Process::start(Command::new("python3").args(["-c", script]));
        let pid = python.0.id();
        wait_until("its other thread has begun", || {
            fs::read_dir(format!("/proc/{pid}/task")).unwrap().count() == 2
        });
        // Its first thread waits for input, as that of an idle process would.
        python.until_in(READ);
        assert!((0..1000).all(|_| !is_idle(pid, SECOND)));
    }

    /// Returns what the kernel says of a thread in this call with these arguments.
    fn line(number: u64, arguments: [u64; 6]) -> String {
        let words: Vec<String> = arguments.iter().map(|word| format!("{word:#x}")).collect();
        format!(
            "{number} {} 0x7ffd00000000 0x7f0000000000\n",
            words.join(" ")
        )
    }

    #[test]
    fn a_limit_counts_if_it_is_within_the_span() {
        for (number, place, limit) in LIMITED {
            let with = |value: u64| {
                // Whatever the other arguments are, they are no limit.
                let mut arguments = [1; 6];
                arguments[*place] = value;
                sleeps(&line(*number, arguments), SECOND)
            };
            match limit {
                Limit::Millis => {
                    assert!(with(u64::from(u32::MAX)), "{number}: -1 is no limit");
                    assert!(with(0xdead_beef_ffff_ffff), "{number}: of 32 bits");
                    assert!(with(1000) && with(60_000), "{number}");
                    assert!(!with(999) && !with(0), "{number}");
                }
                Limit::Pointer => {
                    assert!(with(0), "{number}: null is no limit");
                    assert!(!with(0x7ffd_0000_1000), "{number}");
                }
            }
        }
    }

    #[test]
    fn what_runs_or_is_stopped_is_awake() {
        assert!(!sleeps("running\n", SECOND));
        assert!(!sleeps("-1 0x7ffd00000000 0x7f0000000000\n", SECOND));
        assert!(!sleeps("", SECOND));
        // Reading ends with an event only.
        assert!(sleeps(&line(READ, [0; 6]), SECOND));
    }
}
