//! Test fixture: a home of its own for each test, and the program in it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::Value;
use tempfile::TempDir;
use tertulia_store::Store;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_testkit::ask::now as block_on;
use tertulia_testkit::waiting::wait_for_exit;
pub use tertulia_testkit::waiting::{DEADLINE, wait_for as until};

/// Which store the sessions of a test are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The default: a database below the home.
    Sqlite,
    /// `--store files:DIR`.
    Files,
}

/// An empty home with a project in it.
pub struct Home {
    _dir: TempDir,
    path: PathBuf,
    backend: Backend,
}

/// Runs a check with each backend: damage, repair, locks, kills, paths on disk. Everything else runs
/// on one store, because the conformance suite proves the backends equal.
pub fn both(check: impl Fn(&Home)) {
    for backend in [Backend::Sqlite, Backend::Files] {
        check(&Home::with(backend));
    }
}

impl Home {
    /// Creates a home with the default store.
    pub fn new() -> Home {
        Home::with(Backend::Sqlite)
    }

    pub fn with(backend: Backend) -> Home {
        let dir = tempfile::tempdir().unwrap();
        // Ends the search for a repository, whatever is above.
        fs::create_dir(dir.path().join(".git")).unwrap();
        let path = dir.path().join("home");
        fs::create_dir_all(path.join("project")).unwrap();
        let home = Home {
            _dir: dir,
            path,
            backend,
        };
        home.settings("");
        home
    }

    pub fn backend(&self) -> Backend {
        self.backend
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder in which commands are run.
    pub fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    /// Creates another folder, which is another project.
    pub fn folder(&self, name: &str) -> PathBuf {
        let folder = self.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Returns the database file.
    pub fn database(&self) -> PathBuf {
        self.path().join(".local/share/tertulia/tertulia.db")
    }

    /// Returns the folder of the files store.
    pub fn files_folder(&self) -> PathBuf {
        self.path().join("talks")
    }

    /// Returns the URL of the store.
    pub fn store_url(&self) -> String {
        match self.backend {
            Backend::Sqlite => format!("sqlite:{}", self.database().display()),
            Backend::Files => format!("files:{}", self.files_folder().display()),
        }
    }

    /// Writes the user's settings. Unless they choose an agent, selects the demo agent: otherwise
    /// the default would depend on this machine (an Ollama, an installed program).
    pub fn settings(&self, toml: &str) {
        if toml.lines().any(|line| line.starts_with("agent = ")) {
            self.settings_as_they_are(toml);
        } else {
            self.settings_as_they_are(&format!("agent = \"demo\"\n{toml}"));
        }
    }

    /// Writes the user's settings unchanged.
    pub fn settings_as_they_are(&self, toml: &str) {
        let folder = self.folder(".config/tertulia");
        fs::write(folder.join("config.toml"), toml).unwrap();
    }

    /// Adds an agent that is a shell script, and may write files.
    pub fn script_agent(&self, name: &str, script: &str) {
        let old = fs::read_to_string(self.path().join(".config/tertulia/config.toml"));
        let script = Value::from(script);
        self.settings(&format!(
            "{}[agents.{name}]\ntype = \"command\"\ncommand = \"sh\"\nargs = [\"-c\", {script}]\nconfine = false\n",
            old.unwrap_or_default()
        ));
    }

    /// Prepares a command line in this home.
    pub fn prepare<S: AsRef<OsStr>>(&self, args: &[S]) -> Prepared<'_> {
        let mut all: Vec<OsString> = Vec::new();
        if self.backend == Backend::Files {
            all.extend(["--store".into(), self.store_url().into()]);
        }
        all.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        Prepared {
            home: self,
            args: all,
            folder: self.project(),
            stdin: Vec::new(),
            env: Vec::new(),
            umask: None,
        }
    }

    /// Runs a command line with empty input.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        self.prepare(args).run()
    }

    /// Runs one turn in a new session and returns its id.
    pub fn say(&self, words: &str) -> String {
        let output = self.run(&["chat", "--output-format", "json", "-p", words]);
        let document = output.ok().json();
        document["session_id"].as_str().unwrap().to_owned()
    }

    /// Runs one more turn in a session.
    pub fn say_in(&self, id: &str, words: &str) {
        // The session may come from another home.
        self.run(&["chat", "-r", id, "--here", "-p", words]).ok();
    }

    /// Returns the object of `show --json`.
    pub fn show(&self, reference: &str) -> Value {
        self.run(&["show", reference, "--json"]).ok().json()
    }

    /// Returns the texts of a session's messages, in order.
    pub fn said(&self, reference: &str) -> Vec<String> {
        messages(&self.show(reference))
            .iter()
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the objects of `list --all --json`.
    pub fn all(&self) -> Vec<Value> {
        let listing = self.run(&["list", "--all", "--json"]).ok().json();
        listing["sessions"].as_array().unwrap().clone()
    }

    /// Returns the number of entries of a session.
    pub fn entries(&self, reference: &str) -> usize {
        self.show(reference)["entries"].as_array().unwrap().len()
    }
}

/// Returns the messages among a session's entries.
pub fn messages(session: &Value) -> Vec<Value> {
    let entries = session["entries"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["type"] == "message")
        .cloned()
        .collect()
}

/// Returns the short id.
pub fn short(id: &str) -> String {
    id[id.len() - 8..].to_owned()
}

/// A command line before it runs.
pub struct Prepared<'a> {
    home: &'a Home,
    args: Vec<OsString>,
    folder: PathBuf,
    stdin: Vec<u8>,
    env: Vec<(String, OsString)>,
    umask: Option<&'static str>,
}

impl Prepared<'_> {
    pub fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = bytes.as_ref().to_owned();
        self
    }

    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    pub fn umask(mut self, umask: &'static str) -> Self {
        self.umask = Some(umask);
        self
    }

    /// Builds the command with a cleared environment; the caller connects its streams.
    pub fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_tertulia");
        let mut command = match self.umask {
            None => Command::new(program),
            Some(umask) => {
                let mut shell = Command::new("sh");
                let script = format!("umask {umask}; exec \"$0\" \"$@\"");
                shell.args(["-c", &script, program]);
                shell
            }
        };
        command
            .args(&self.args)
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("TZ", "UTC")
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the command and kills it when one of its threads makes a system call of this kind for
    /// the `number`th time. Returns false if it ended before.
    pub fn killed_at(self, calls: &str, number: usize) -> bool {
        let command = self.command();
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-qq", "-o", "/dev/null", "-e"])
            .arg(format!("trace={calls}"))
            .arg("-e")
            .arg(format!("inject={calls}:signal=SIGKILL:when={number}"))
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(&self.folder)
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = strace
            .spawn()
            .expect("strace is missing: run ./test, or install it");
        // strace ends as its program does.
        wait_for_exit(&mut child, "a program under strace").signal() == Some(9)
    }

    /// Runs the command. Returns its output, and how many bytes it read from files in the home whose
    /// names end so.
    pub fn counting_reads(self, end: &str) -> (Output, u64) {
        let log = self.home.path().join("reads");
        let command = self.command();
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-qq", "-y", "-s", "0", "-e"])
            .arg("trace=read,readv,pread64,preadv,preadv2")
            .arg("-o")
            .arg(&log)
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(&self.folder)
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = strace
            .spawn()
            .expect("strace is missing: run ./test, or install it");
        let output = finish(child, &format!("{:?} under strace", self.args));
        let text = fs::read_to_string(&log).unwrap();
        fs::remove_file(&log).unwrap();
        let home = format!("<{}/", self.home.path().display());
        let end = format!("{end}>");
        let mut bytes = 0;
        // Threads whose call has begun, and is continued in a later line.
        let mut begun = HashSet::new();
        for line in text.lines() {
            let thread = line.split(' ').next().unwrap();
            let is_counted = match line.contains("resumed>") {
                true => begun.remove(thread),
                false => line.contains(&home) && line.contains(&end),
            };
            if is_counted && line.ends_with("<unfinished ...>") {
                begun.insert(thread);
            } else if is_counted {
                let result = line.rsplit(" = ").next().unwrap();
                bytes += result.parse::<u64>().unwrap_or_default();
            }
        }
        (output, bytes)
    }

    pub fn run(self) -> Output {
        let mut command = self.command();
        let stdin = if self.stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        };
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if let Some(mut pipe) = child.stdin.take() {
            let bytes = self.stdin;
            // A program that fails early need not read all input.
            std::thread::spawn(move || pipe.write_all(&bytes));
        }
        finish(child, &format!("{:?}", self.args))
    }
}

/// Waits for a child to exit and returns its output; kills and fails one that hangs.
pub fn finish(mut child: Child, what: &str) -> Output {
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    let status = wait_for_exit(&mut child, what);
    let text = |reader: Option<JoinHandle<Vec<u8>>>| {
        let bytes = reader.map(|reader| reader.join().unwrap());
        String::from_utf8(bytes.unwrap_or_default()).unwrap()
    };
    Output {
        what: what.to_owned(),
        status,
        stdout: text(stdout),
        stderr: text(stderr),
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}

/// Opens the store that a URL names, beside the program.
pub fn open_store(url: &str) -> Arc<dyn Store> {
    match url.split_once(':').unwrap() {
        ("sqlite", path) => Arc::new(SqliteStore::open(path.as_ref()).unwrap()),
        ("files", path) => Arc::new(FilesStore::open(path.as_ref()).unwrap()),
        (other, _) => panic!("{other}"),
    }
}

/// Waits until the draft of a session has these words: from then on they survive a kill. How soon
/// this is, `./bench serve` measures.
#[track_caller]
pub fn until_kept(url: &str, session: &str, words: &str) {
    let (store, id) = (open_store(url), session.parse().unwrap());
    until(&format!("{words:?} is kept"), || {
        // The session is not there before its first message is saved.
        let draft = block_on(store.draft(id)).ok()??;
        draft.content.contains(words).then_some(())
    });
}

/// Waits until a database holds the draft of a half-written answer.
pub fn until_draft(database: &Path) {
    until("the half-written answer is saved", || {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = rusqlite::Connection::open_with_flags(database, flags).ok()?;
        let query = "SELECT count(*) FROM draft";
        let drafts = connection.query_row(query, [], |row| row.get::<_, i64>(0));
        (drafts.ok()? > 0).then_some(())
    });
}

/// Output of a command.
#[derive(Debug)]
#[expect(
    dead_code,
    reason = "`what` is there for the message of a failed assertion"
)]
pub struct Output {
    what: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Checks for success.
    #[track_caller]
    pub fn ok(self) -> Output {
        self.code(0)
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn code(self, expected: i32) -> Output {
        assert_eq!(self.status.code(), Some(expected), "{self:#?}");
        self
    }

    /// Checks the exit code of a repair: 1 if it says that something is lost.
    #[track_caller]
    pub fn repaired(self) -> Output {
        let has_lost = self.stdout.lines().any(|line| line.starts_with("lost: "));
        self.code(i32::from(has_lost))
    }

    /// Checks that stdout contains a text.
    #[track_caller]
    pub fn says(self, words: &str) -> Output {
        assert!(self.stdout.contains(words), "no {words:?} in {self:#?}");
        self
    }

    /// Checks that stderr contains a text.
    #[track_caller]
    pub fn notes(self, words: &str) -> Output {
        assert!(self.stderr.contains(words), "no {words:?} in {self:#?}");
        self
    }

    /// Checks that neither stdout nor stderr contains a text.
    #[track_caller]
    pub fn lacks(self, words: &str) -> Output {
        let both = format!("{}{}", self.stdout, self.stderr);
        assert!(!both.contains(words), "{words:?} in {self:#?}");
        self
    }

    /// Parses stdout as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("{error} in {self:#?}"),
        }
    }

    /// Parses stdout as one JSON document per line.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    /// Returns the error object that `--json` prints to stderr.
    #[track_caller]
    pub fn error(&self) -> Value {
        let line = self.stderr.lines().next_back().unwrap_or_default();
        match serde_json::from_str::<Value>(line) {
            Ok(mut value) => value["error"].take(),
            Err(error) => panic!("{error} in {self:#?}"),
        }
    }
}

/// Returns the sorted keys of a JSON object.
pub fn keys(value: &Value) -> Vec<String> {
    let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    keys
}

/// Returns all files below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}
