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
