//! Prompts that make agents call tools, and the processes that these start.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::home::until;

/// Returns a prompt that makes the demo agent use a tool.
pub fn wanted(tool: &str, arguments: &Value) -> String {
    format!("use {tool} {arguments}")
}

/// The same for a shell command.
pub fn wanted_command(command: &str) -> String {
    wanted("shell", &serde_json::json!({ "command": command }))
}

/// Returns a number of seconds that no other process sleeps, far longer than any test takes.
pub fn unique_seconds() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::SeqCst);
    format!("1000.{:09}{count:04}", std::process::id())
}

/// Returns the processes that sleep for `seconds`.
pub fn sleepers(seconds: &str) -> Vec<Pid> {
    let argument = format!("sleep\0{seconds}\0");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|pid| pid.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line) == argument {
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

/// Waits until `count` processes sleep.
pub fn wait_for_sleepers(seconds: &str, count: usize) {
    until("the command runs", || {
        (sleepers(seconds).len() == count).then_some(())
    });
}

/// Kills processes that nothing else would end.
pub fn end_sleepers(seconds: &str) {
    for pid in sleepers(seconds) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Writes an executable shell script. Done by another process: if a concurrent test forks while
/// this process has the file open for writing, executing it would fail as "busy".
pub fn write_program(path: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf "%s" "$1" > "$0"; chmod 755 "$0""#]);
    shell.arg(path).arg(format!("#!/bin/sh\n{script}\n"));
    assert!(shell.status().unwrap().success());
}
