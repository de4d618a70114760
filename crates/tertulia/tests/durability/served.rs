//! Messages that a server reports as saved are saved.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tertulia_testkit::waiting::wait_until;

use super::full::{bring_back, may_mount, rescued, said, small_world};
use super::world::{Backend, Place, Ran, finish, world};

/// A server on the standard streams.
struct Served {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Served {
    fn start(mut command: Command) -> Served {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        Served {
            ask: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn at(place: &Place) -> Served {
        Served::start(place.command(&["serve", "--stdio"]))
    }

    /// Sends requests in one write.
    fn send(&mut self, requests: &[Value]) {
        let lines: String = requests.iter().map(|line| format!("{line}\n")).collect();
        self.ask.write_all(lines.as_bytes()).unwrap();
    }

    /// Returns the next reply of this type.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            let read = self.answers.read_line(&mut line).unwrap();
            assert!(read > 0, "the server ended before '{kind}'");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["type"] == kind {
                return answer;
            }
            assert_ne!(answer["type"], "error", "{answer}");
        }
    }

    fn query(&mut self, words: &str) -> Value {
        self.send(&[json!({ "type": "query", "query": words })]);
        self.until("complete")
    }

    fn save(&mut self) -> bool {
        self.send(&[json!({ "type": "session_save" })]);
        self.until("session_saved")["success"] == true
    }

    /// Closes the input and waits for the server to exit.
    fn end(self) -> Ran {
        drop(self.ask);
        let mut child = self.child;
        child.stdout = Some(self.answers.into_inner());
        finish(child, "a server")
    }
}

/// A `session_save` after three queries is answered once all of them are saved.
#[test]
fn words_that_wait_count_when_a_session_is_saved() {
    for backend in [Backend::Sqlite, Backend::Files] {
        let (_root, place) = world(backend);
        let mut served = Served::at(&place);
        let words = ["echo a", "echo b", "echo c"];
        let queries = words.map(|words| json!({ "type": "query", "query": words }));
        let save = json!({ "type": "session_save", "id": 9 });
        served.send(&[&queries[..], &[save]].concat());
        let saved = served.until("session_saved");
        served.child.kill().unwrap();
        served.child.wait().unwrap();
        assert_eq!(saved["id"], 9);
        assert_eq!(saved["success"], true);
        for words in words {
            assert_eq!(said(&place, words), 1, "{backend:?}: {words}");
        }
    }
}

fn room_returns(backend: Backend, test: &str) {
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = small_world(backend);
    let mut served = Served::at(&place);
    served.query("echo before");
    small.fill(0);
    let long = "word ".repeat(2000);
    let words = format!("echo {long}precious");
    served.query(&words);
    assert!(!served.save(), "nothing can be saved");
    small.make_room();
    assert!(served.save(), "there is room again");
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    assert_eq!(said(&place, &words), 1);
    place.assert_sound("with room again");
}

#[test]
fn sqlite_saves_what_was_held_when_asked() {
    let test = "served::sqlite_saves_what_was_held_when_asked";
    room_returns(Backend::Sqlite, test);
}

#[test]
fn files_save_what_was_held_when_asked() {
    let test = "served::files_save_what_was_held_when_asked";
    room_returns(Backend::Files, test);
}

#[test]
fn a_server_that_ends_with_unsaved_words_names_their_file() {
    if !may_mount("served::a_server_that_ends_with_unsaved_words_names_their_file") {
        return;
    }
    let (small, _root, place) = small_world(Backend::Sqlite);
    small.fill(0);
    let mut served = Served::at(&place);
    let words = format!("echo {}precious", "word ".repeat(2000));
    served.query(&words);
    let ran = served.end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let file = rescued(&place, &ran);
    small.make_room();
    bring_back(&place, &file);
    assert_eq!(said(&place, &words), 1);
}

/// Unused sessions are closed to make room for new ones.
#[test]
fn one_client_begins_many_sessions_at_once() {
    let (_root, place) = world(Backend::Sqlite);
    let mut served = Served::at(&place);
    for number in 0..80 {
        served.send(&[json!({ "type": "session_create" })]);
        served.until("session_created");
        let complete = served.query(&format!("echo {number}"));
        assert_eq!(complete["status"], "completed", "{number}: {complete}");
    }
    assert_eq!(served.end().code, Some(0));
    assert_eq!(place.sessions().len(), 20, "the first page");
    assert_eq!(said(&place, "echo 79"), 1);
}

/// Many clients, one after the other, each with one query.
#[test]
fn many_clients_that_come_and_go_are_all_answered() {
    let (_root, place) = world(Backend::Sqlite);
    let socket = place.home.join("t.sock");
    let mut command = place.command(&["serve", "--socket"]);
    command.arg(&socket);
    let mut server = command.spawn().unwrap();
    // Between its creation and listening, the socket refuses.
    wait_until("the server listens", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
    let refused: Vec<Value> = (0..80).filter_map(|_| ask_once(&socket)).collect();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(refused, Vec::<Value>::new());
}

/// Sends one query over a socket. Returns the reply if it is not an answer.
fn ask_once(socket: &Path) -> Option<Value> {
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    stream
        .write_all(b"{\"type\":\"query\",\"query\":\"echo hello\"}\n")
        .unwrap();
    let answers = BufReader::new(stream).lines();
    for line in answers {
        let answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
        match answer["type"].as_str() {
            Some("complete") => return None,
            Some("error") => return Some(answer),
            _ => {}
        }
    }
    Some(Value::Null)
}
