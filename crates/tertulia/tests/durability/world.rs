//! Test fixture: a home for the program under test, and ways to run it there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Time limit of any command; after it the program counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Files,
}

/// Where a program runs: its home, its working directory, its store.
#[derive(Clone, Debug)]
pub struct Place {
    pub home: PathBuf,
    pub work: PathBuf,
    pub backend: Backend,
    /// The store, if not at its default place in the home.
    pub store: Option<String>,
}

/// Result of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Returns the output of a command that must succeed.
    #[track_caller]
    pub fn ok(self, what: &str) -> String {
        assert_eq!(self.code, Some(0), "{what}: {self:?}");
        self.out
    }

    /// Returns true if the program crashed instead of failing properly.
    pub fn broke(&self) -> bool {
        self.code.is_none_or(|code| code == 101) || self.err.contains("panicked")
    }
}

/// Creates a temporary folder with a home and a working directory.
pub fn world(backend: Backend) -> (TempDir, Place) {
    let root = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(root.path()).unwrap();
    let place = Place {
        home: base.join("home"),
        work: base.join("work"),
        backend,
        store: None,
    };
    // Ends the search for a repository, whatever is above.
    fs::create_dir(base.join(".git")).unwrap();
    fs::create_dir(&place.home).unwrap();
    fs::create_dir(&place.work).unwrap();
    (root, place)
}

impl Place {
    /// Returns the same with another home.
    pub fn with_home(&self, home: &Path) -> Place {
        Place {
            home: home.to_owned(),
            ..self.clone()
        }
    }

    /// Returns the URL of the store.
    pub fn url(&self) -> String {
        match (&self.store, self.backend) {
            (Some(url), _) => url.clone(),
            (None, Backend::Sqlite) => format!("sqlite:{}", self.database().display()),
            (None, Backend::Files) => format!("files:{}", self.home.join("talks").display()),
        }
    }

    /// Returns the default path of the database.
    pub fn database(&self) -> PathBuf {
        self.home.join(".local/share/tertulia/tertulia.db")
    }

    /// Adds the store to the arguments, unless it is the default database.
    pub fn arguments(&self, args: &[&str]) -> Vec<String> {
        let mut all: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        if self.store.is_some() || self.backend == Backend::Files {
            all.extend(["--store".to_owned(), self.url()]);
        }
        all
    }

    /// Prepares a program with a cleared environment.
    pub fn bare(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", &self.home)
            // Otherwise the default agent would depend on this machine: an Ollama, an installed
            // program.
            .env("TERTULIA_AGENT", "demo")
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("TMPDIR", &self.work)
            .current_dir(&self.work)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Prepares the program under test.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bare(env!("CARGO_BIN_EXE_tertulia"));
        command.args(self.arguments(args));
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        finish(self.command(args).spawn().unwrap(), &format!("{args:?}"))
    }

    /// Runs one turn that must succeed, and returns its acknowledgements.
    #[track_caller]
    pub fn turn(&self, args: &[&str]) -> Vec<Ack> {
        let mut all = vec!["chat", "-p", "--output-format", "stream-json"];
        all.extend(args);
        acks(&self.run(&all).ok("a turn"))
    }

    /// Returns `show --json` of a session.
    pub fn show(&self, id: &str) -> Result<Value, Ran> {
        let ran = self.run(&["show", id, "--json"]);
        match ran.code {
            Some(0) => Ok(serde_json::from_str(&ran.out).unwrap()),
            _ => Err(ran),
        }
    }

    /// Returns the ids of all sessions.
    pub fn sessions(&self) -> Vec<String> {
        let out = self.run(&["list", "--all", "--json"]).ok("list");
        let list: Value = serde_json::from_str(&out).unwrap();
        let ids = list["sessions"].as_array().unwrap().iter();
        ids.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns `show --json` of every session.
    pub fn everything(&self) -> BTreeMap<String, Value> {
        let read = |id: String| {
            let shown = self.show(&id).unwrap();
            (id, shown)
        };
        self.sessions().into_iter().map(read).collect()
    }

    /// Describes which acknowledged messages the sessions lack.
    pub fn lacks(&self, acked: &[Ack]) -> Vec<String> {
        let mut by_session: BTreeMap<&str, Vec<&Ack>> = BTreeMap::new();
        for ack in acked {
            by_session.entry(&ack.session).or_default().push(ack);
        }
        let mut missing = Vec::new();
        for (session, acks) in by_session {
            let shown = match self.show(session) {
                Ok(shown) => shown,
                Err(ran) => {
                    missing.push(format!("session {session} cannot be shown: {ran:?}"));
                    continue;
                }
            };
            for ack in acks {
                if !ack.is_in(&shown) {
                    missing.push(format!("{ack:?} is not in session {session}"));
                }
            }
        }
        missing
    }

    #[track_caller]
    pub fn assert_has(&self, acked: &[Ack], when: &str) {
        let missing = self.lacks(acked);
        assert!(
            missing.is_empty(),
            "{when}: acknowledged words are lost: {missing:#?}"
        );
    }

    #[track_caller]
    pub fn assert_sound(&self, when: &str) {
        let ran = self.run(&["doctor"]);
        assert_eq!(ran.code, Some(0), "{when}: the doctor says {ran:?}");
    }
}

/// Waits for a command, and kills it after `PATIENCE`.
pub fn finish(child: Child, what: &str) -> Ran {
    let pid = rustix::process::Pid::from_child(&child);
    let (done, result) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let _ = done.send(child.wait_with_output().unwrap());
    });
    let Ok(output) = result.recv_timeout(PATIENCE) else {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        let _ = waiter.join();
        panic!("{what} hangs: it was killed after {PATIENCE:?}");
    };
    waiter.join().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A message that the program has acknowledged as durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    pub session: String,
    pub seq: u64,
    pub hash: String,
}

impl Ack {
    /// Returns true if a session as shown has the message, with the same hash.
    pub fn is_in(&self, shown: &Value) -> bool {
        let entries = shown["entries"].as_array().unwrap();
        entries
            .iter()
            .any(|entry| entry["seq"] == self.seq && entry["hash"] == self.hash)
    }
}

/// Returns the acknowledgements in a stream of events. Ignores an incomplete last line.
pub fn acks(stream: &str) -> Vec<Ack> {
    let mut session = String::new();
    let mut found = Vec::new();
    let whole = stream.rfind('\n').map_or("", |end| &stream[..end]);
    for line in whole.lines() {
        let event: Value = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("no event: {line:?}: {error}"));
        match event["type"].as_str() {
            Some("session.started") => session = event["session_id"].as_str().unwrap().to_owned(),
            Some("message") => found.push(Ack {
                session: session.clone(),
                seq: event["seq"].as_u64().unwrap(),
                hash: event["hash"].as_str().unwrap().to_owned(),
            }),
            _ => {}
        }
    }
    found
}

/// Copies a folder recursively.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// Reproducible random numbers (splitmix64).
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

/// Returns the seed of this run, and prints it so that a failure can be reproduced.
pub fn seed() -> u64 {
    let seed = number_in("TERTULIA_SEED").unwrap_or(20_261_115);
    eprintln!("TERTULIA_SEED={seed}");
    seed
}

pub fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
