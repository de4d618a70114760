//! Test fixture: a session that runs in another process.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::home::{Home, Output, Prepared, finish, until};

/// Prints a line every 200 ms for longer than any test waits, also into the file `lines`.
pub const SLOW: &str = "i=0; while [ $i -lt 4000 ]; do echo \"line $i\"; echo \"line $i\" >> lines; \
     i=$((i+1)); sleep 0.2; done";

/// Prints `begun`, waits for the file `go` in the home (with a limit), and prints `done`.
pub const WAITING: &str = "echo begun; i=0; while [ ! -e ../go ] && [ $i -lt 1200 ]; do \
     sleep 0.05; i=$((i+1)); done; echo done";

/// A running program whose events are read as they come.
pub struct Running {
    child: Option<Child>,
    out: Option<BufReader<ChildStdout>>,
    begun: Instant,
}

impl Running {
    /// Starts a command line with `--output-format stream-json`.
    pub fn start(home: &Home, args: &[&str]) -> Running {
        let mut all = vec!["chat", "--output-format", "stream-json"];
        all.extend(args);
        Running::of(&home.prepare(&all))
    }

    /// Starts a prepared command line that has this option.
    pub fn of(prepared: &Prepared<'_>) -> Running {
        let mut child = prepared
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running {
            child: Some(child),
            out: Some(out),
            begun: Instant::now(),
        }
    }

    /// Returns the next event.
    pub fn event(&mut self) -> Value {
        let mut line = String::new();
        let out = self.out.as_mut().unwrap();
        assert!(out.read_line(&mut line).unwrap() > 0, "it has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Returns the next event of a type.
    pub fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.event();
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Reads text until the agent has been answering for so long.
    pub fn speaking_for(&mut self, span: Duration) -> String {
        let mut heard = String::new();
        let mut since = None;
        loop {
            let event = self.until("text");
            heard.push_str(event["text"].as_str().unwrap());
            if since.get_or_insert_with(Instant::now).elapsed() > span {
                return heard;
            }
            assert!(self.begun.elapsed() < crate::home::DEADLINE);
        }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends a signal to the program alone.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.child.as_ref().unwrap());
        kill_process(pid, signal).unwrap();
    }

    /// Returns true if the program has exited.
    pub fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().unwrap();
        child.try_wait().unwrap().is_some()
    }

    /// Kills the program with SIGKILL.
    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Kills the program with SIGKILL, and first the guard process that would end its agents.
    #[allow(dead_code, reason = "not every test program kills helpers")]
    pub fn kill_with_guard(self) {
        let parent = Pid::from_child(self.child.as_ref().unwrap());
        let of_parent = format!("PPid:\t{}\n", parent.as_raw_nonzero());
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let (line, status) = (read("cmdline"), read("status"));
            if String::from_utf8_lossy(&line).contains("\0__guard\0")
                && String::from_utf8_lossy(&status).contains(&of_parent)
            {
                let pid = entry.file_name().to_str().unwrap().parse().unwrap();
                kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
            }
        }
        self.kill();
    }

    /// Waits for the program to exit. Its stdout is the output since the last event read.
    pub fn end(mut self) -> Output {
        let child = self.child.take().unwrap();
        // Remaining output must be read, or the program blocks on a full pipe.
        let mut out = self.out.take().unwrap();
        let rest = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = std::io::Read::read_to_string(&mut out, &mut text);
            text
        });
        let mut output = finish(child, "a running talk");
        output.stdout = rest.join().unwrap();
        output
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the processes of agents that were started in this home.
pub fn agents_of(home: &Home) -> Vec<Pid> {
    let own = format!("HOME={}\0", home.path().display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|pid| pid.parse().ok()) else {
            continue;
        };
        let Ok(environ) = std::fs::read(entry.path().join("environ")) else {
            continue;
        };
        let environ = String::from_utf8_lossy(&environ);
        if environ.contains(&own) && environ.contains("TERTULIA_RUN=") {
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

/// Kills processes that a killed program left behind.
pub fn sweep(home: &Home) {
    until("agents of a killed talk are ended", || {
        let left = agents_of(home);
        for pid in &left {
            let _ = kill_process(*pid, Signal::KILL);
        }
        left.is_empty().then_some(())
    });
}
