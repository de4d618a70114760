//! Whatever is done to sessions in whatever order and frontend, tools run only under the policy that the user
//! set last in the live session, by the session's agent, in the session's folder, and what was cancelled
//! never runs.

use std::fs;
use std::path::PathBuf;
use std::process::Child;

use proptest::prelude::*;
use serde_json::{Value, json};
use tertulia_testkit::soak::soak;

use crate::home::{Home, until};
use crate::pty::{CTRL_D, Terminal};
use crate::serve::stage::{Client, string};

/// Question of line mode about a command.
const QUESTION: &str = "Allow it?";
const PROMPT: &str = "you> ";
const POLICIES: [&str; 5] = ["none", "low", "ask", "edits", "all"];
const FOLDERS: [&str; 2] = ["one", "two"];

/// What is done next. `session` and `policy` are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    /// A single run that goes on with a session, from a folder.
    Run {
        session: usize,
        policy: Option<usize>,
        folder: usize,
    },
    /// A new session with the other agent, in a folder.
    New {
        policy: Option<usize>,
        folder: usize,
    },
    /// Line mode: opens a session, then gives commands.
    Lines {
        session: usize,
        policy: Option<usize>,
        commands: Vec<Typed>,
    },
    /// A fork by the command, from the end or from before the first answer.
    Fork { session: usize, at_the_end: bool },
    /// A prompt over the protocol, after a change of the policy.
    Served {
        session: usize,
        policy: Option<usize>,
        forks: bool,
    },
    /// A message that waits behind a question, and is cancelled with it.
    Cancelled { session: usize },
    /// The server is killed.
    Kill,
}

/// A command in line mode.
#[derive(Clone, Copy, Debug)]
enum Typed {
    Approve(usize),
    Fork,
    Rewind,
    New,
    Probe,
}

fn any_step() -> impl Strategy<Value = Step> {
    let policy = || proptest::option::of(0..POLICIES.len());
    let typed = prop_oneof![
        (0..POLICIES.len()).prop_map(Typed::Approve),
        Just(Typed::Fork),
        Just(Typed::Rewind),
        Just(Typed::New),
        Just(Typed::Probe),
    ];
    let session = || 0..8_usize;
    prop_oneof![
        3 => (session(), policy(), 0..2_usize)
            .prop_map(|(session, policy, folder)| Step::Run { session, policy, folder }),
        1 => (policy(), 0..2_usize).prop_map(|(policy, folder)| Step::New { policy, folder }),
        2 => (session(), policy(), proptest::collection::vec(typed, 1..5))
            .prop_map(|(session, policy, commands)| Step::Lines { session, policy, commands }),
        2 => (session(), any::<bool>())
            .prop_map(|(session, at_the_end)| Step::Fork { session, at_the_end }),
        3 => (session(), policy(), any::<bool>())
            .prop_map(|(session, policy, forks)| Step::Served { session, policy, forks }),
        1 => session().prop_map(|session| Step::Cancelled { session }),
        1 => Just(Step::Kill),
    ]
}

/// A session, and what is true of it for ever.
#[derive(Clone, Debug)]
struct Session {
    id: String,
    agent: &'static str,
    folder: usize,
    /// The user's latest word in the live session that the server has, if it has it.
    word: Option<&'static str>,
}

/// The program, and what is known of its sessions.
struct Play {
    home: Home,
    folders: [PathBuf; 2],
    sessions: Vec<Session>,
    server: Option<(Client, Child)>,
    /// Number of prompts so far: each wants to create a file of its own.
    probes: usize,
    /// Files that must never be there.
    ghosts: Vec<String>,
}

impl Play {
    fn new() -> Play {
        let home = Home::new();
        home.settings("agent = \"demo\"\n[agents.other]\ntype = \"demo\"\n");
        let folders = FOLDERS.map(|name| home.folder(name));
        let mut play = Play {
            home,
            folders,
            sessions: Vec::new(),
            server: None,
            probes: 0,
            ghosts: Vec::new(),
        };
        play.begin(None, 0);
        play
    }

    fn probe(&mut self) -> (String, String) {
        self.probes += 1;
        let file = format!("probe-{}", self.probes);
        let words = format!(
            "use shell {}",
            json!({ "command": format!("touch {file}") })
        );
        (file, words)
    }

    fn newest(&self) -> String {
        string(&self.home.all()[0], "id")
    }

    /// Checks what a prompt to a session has done. `word` is the user's latest word.
    fn check(&self, session: &Session, file: &str, word: Option<&str>, what: &dyn std::fmt::Debug) {
        let ran: Vec<usize> = (0..2)
            .filter(|folder| self.folders[*folder].join(file).exists())
            .collect();
        assert!(!self.home.project().join(file).exists(), "{what:?}");
        if !ran.is_empty() {
            assert_eq!(word, Some("all"), "it ran: {what:?}");
            assert_eq!(ran, [session.folder], "in another folder: {what:?}");
        }
        for ghost in &self.ghosts {
            let is_there = self
                .folders
                .iter()
                .any(|folder| folder.join(ghost).exists());
            assert!(!is_there, "cancelled, and run: {what:?}");
        }
        let shown = self.home.show(&session.id);
        let entries = shown["entries"].as_array().unwrap().iter().rev();
        let mut speakers = entries.map(|entry| &entry["speaker"]);
        let ai = speakers.find(|speaker| speaker["type"] == "ai");
        if let Some(ai) = ai {
            assert_eq!(ai["name"], session.agent, "{what:?}");
        }
        let folder = self.folders[session.folder].to_str().unwrap();
        assert_eq!(shown["cwd"], folder, "{what:?}");
    }

    fn begin(&mut self, policy: Option<usize>, folder: usize) {
        let (file, words) = self.probe();
        let word = policy.map(|policy| POLICIES[policy]);
        let mut args = vec!["-p", &words, "--agent", "other"];
        args.extend(word.iter().flat_map(|word| ["--approve", word]));
        self.home
            .prepare(&args)
            .folder(&self.folders[folder])
            .run()
            .ok();
        let session = Session {
            id: self.newest(),
            agent: "other",
            folder,
            word: None,
        };
        self.check(&session, &file, word, &args);
        if word == Some("all") {
            assert!(
                self.folders[folder].join(&file).exists(),
                "the user said so"
            );
        }
        self.sessions.push(session);
    }

    fn chosen(&self, session: usize) -> usize {
        session % self.sessions.len()
    }

    /// Lets other frontends open a session.
    fn leave_server(&mut self, session: usize) {
        let id = self.sessions[session].id.clone();
        if let Some((client, _)) = &mut self.server {
            client.answer(json!({ "type": "stop", "session_id": id }));
        }
        self.sessions[session].word = None;
        until("the session is closed", || {
            let all = self.home.all();
            let row = all.iter().find(|row| row["id"] == id.as_str()).unwrap();
            (row["open"] == false).then_some(())
        });
    }

    fn kill(&mut self) {
        if let Some((_, mut child)) = self.server.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for session in &mut self.sessions {
            session.word = None;
        }
    }

    fn client(&mut self) -> &mut Client {
        let home = &self.home;
        let (client, _) = self
            .server
            .get_or_insert_with(|| Client::over_stdio(home, &[]));
        client
    }

    fn run(&mut self, session: usize, policy: Option<usize>, folder: usize) {
        let at = self.chosen(session);
        self.leave_server(at);
        let (file, words) = self.probe();
        let word = policy.map(|policy| POLICIES[policy]);
        let session = self.sessions[at].clone();
        let mut args = vec!["-r", &session.id, "-p", &words];
        args.extend(word.iter().flat_map(|word| ["--approve", word]));
        self.home
            .prepare(&args)
            .folder(&self.folders[folder])
            .run()
            .ok();
        self.check(&session, &file, word, &args);
        if word == Some("all") {
            let file = self.folders[session.folder].join(&file);
            assert!(file.exists(), "the user said so: {args:?}");
        }
    }

    fn lines(&mut self, session: usize, policy: Option<usize>, commands: &[Typed]) {
        let at = self.chosen(session);
        self.leave_server(at);
        let mut word = policy.map(|policy| POLICIES[policy]);
        let mut session = self.sessions[at].clone();
        let opened = session.id.clone();
        let mut args = vec!["--plain", "-r", &opened];
        args.extend(word.iter().flat_map(|word| ["--approve", word]));
        let mut terminal = Terminal::open(&self.home, &args, &[]);
        let mut prompts = 1;
        terminal.sees(PROMPT, prompts);
        let mut is_new = false;
        for command in commands {
            let mut probed = None;
            let line = match command {
                Typed::Approve(policy) => {
                    word = Some(POLICIES[*policy]);
                    format!("/approve {}", POLICIES[*policy])
                }
                Typed::Fork if is_new => continue,
                Typed::Fork => "/fork".to_owned(),
                Typed::Rewind if is_new => continue,
                Typed::Rewind => "/rewind 1".to_owned(),
                Typed::New => "/new".to_owned(),
                Typed::Probe => {
                    let (file, words) = self.probe();
                    probed = Some(file);
                    words
                }
            };
            is_new = match command {
                Typed::New => true,
                Typed::Probe => false,
                _ => is_new,
            };
            let questions = terminal.shown().matches(QUESTION).count();
            terminal.types(format!("{line}\n"));
            prompts += 1;
            if probed.is_some() {
                until("it is answered, or asks", || {
                    let shown = terminal.shown();
                    let asks = shown.matches(QUESTION).count() > questions;
                    (asks || shown.matches(PROMPT).count() >= prompts).then_some(())
                });
                if terminal.shown().matches(QUESTION).count() > questions {
                    terminal.types("n\n");
                }
            }
            terminal.sees(PROMPT, prompts);
            let Some(file) = probed else { continue };
            session.id = self.newest();
            self.check(&session, &file, word, &(&args, commands));
            if self.sessions.iter().all(|known| known.id != session.id) {
                self.sessions.push(session.clone());
            }
        }
        terminal.types(CTRL_D);
        assert_eq!(terminal.ends().0, 0);
    }

    fn fork(&mut self, session: usize, at_the_end: bool) {
        let at = self.chosen(session);
        let session = self.sessions[at].clone();
        let place = match at_the_end {
            true => session.id.clone(),
            false => format!("{}:1", session.id),
        };
        let forked = self.home.run(&["fork", &place, "--json"]).ok().json();
        self.sessions.push(Session {
            id: string(&forked, "id"),
            word: None,
            ..session
        });
    }

    /// Asks the session on the server, and denies what it asks for.
    fn ask(&mut self, id: &str, words: &str) {
        let client = self.client();
        client.answer(json!({ "type": "session_load", "session_id": id }));
        let query = client.ask(json!({ "type": "query", "query": words }));
        loop {
            let reply = client.of(query);
            match reply["type"].as_str() {
                Some("tool_request") => client.send(&denied(&reply)),
                Some("complete") => return,
                _ => {}
            }
        }
    }

    fn served(&mut self, session: usize, policy: Option<usize>, forks: bool) {
        let at = self.chosen(session);
        let (file, words) = self.probe();
        if let Some(policy) = policy {
            let id = self.sessions[at].id.clone();
            let approve = POLICIES[policy];
            let change =
                json!({ "type": "session_configure", "session_id": id, "approve": approve });
            assert_eq!(self.client().answer(change)["type"], "session_configured");
            self.sessions[at].word = Some(approve);
        }
        let mut session = self.sessions[at].clone();
        if forks {
            let fork = json!({ "type": "session_fork", "session_id": session.id });
            session.id = string(&self.client().answer(fork), "session_id");
            self.sessions.push(session.clone());
        }
        self.ask(&session.id, &words);
        self.check(&session, &file, session.word, &(policy, forks));
    }

    fn cancelled(&mut self, session: usize) {
        let at = self.chosen(session);
        let session = self.sessions[at].clone();
        let (file, words) = self.probe();
        let (ghost, ghost_words) = self.probe();
        let client = self.client();
        let approve =
            json!({ "type": "session_configure", "session_id": session.id, "approve": "ask" });
        client.answer(approve);
        client.answer(json!({ "type": "session_load", "session_id": session.id }));
        let query = client.ask(json!({ "type": "query", "query": words }));
        while client.of(query)["type"] != "tool_request" {}
        let say = json!({
            "type": "say", "session_id": session.id, "text": ghost_words, "client_id": ghost,
        });
        assert_eq!(client.answer(say)["type"], "accepted");
        client.send(&json!({ "type": "cancel" }));
        while client.of(query)["type"] != "complete" {}
        self.sessions[at].word = Some("ask");
        self.ghosts.push(ghost);
        self.check(&session, &file, Some("ask"), &"cancelled");
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Run {
                session,
                policy,
                folder,
            } => self.run(*session, *policy, *folder),
            Step::New { policy, folder } => self.begin(*policy, *folder),
            Step::Lines {
                session,
                policy,
                commands,
            } => self.lines(*session, *policy, commands),
            Step::Fork {
                session,
                at_the_end,
            } => self.fork(*session, *at_the_end),
            Step::Served {
                session,
                policy,
                forks,
            } => self.served(*session, *policy, *forks),
            Step::Cancelled { session } => self.cancelled(*session),
            Step::Kill => self.kill(),
        }
    }
}

fn denied(request: &Value) -> Value {
    json!({ "type": "tool_approve", "tool_id": request["tool_id"], "approved": false })
}

impl Drop for Play {
    fn drop(&mut self) {
        if let Some((_, child)) = &mut self.server {
            let _ = child.kill();
            let _ = child.wait();
        }
        for folder in &self.folders {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if soak() { 100 } else { 3 },
        failure_persistence: None,
        max_shrink_iters: 40,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_the_user_said_holds(steps in proptest::collection::vec(any_step(), 8..16)) {
        let mut play = Play::new();
        for step in &steps {
            play.step(step);
        }
    }
}
