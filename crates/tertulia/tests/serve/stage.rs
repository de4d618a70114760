//! Test fixture: a running server and its clients. Every line that a client receives is validated
//! against the schema.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use jsonschema::Validator;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::home::{DEADLINE, Home, Output, finish, until};

/// Returns a validator for one direction of the project's protocol schema.
fn validator(definition: &str) -> Validator {
    let text = include_str!("../../../../schemas/protocol-1.json");
    let schema: Value = serde_json::from_str(text).unwrap();
    let one = json!({ "$ref": format!("#/$defs/{definition}"), "$defs": schema["$defs"] });
    jsonschema::validator_for(&one).unwrap()
}

pub static REPLY: LazyLock<Validator> = LazyLock::new(|| validator("Reply"));
pub static REQUEST: LazyLock<Validator> = LazyLock::new(|| validator("Request"));

/// How a client connects to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Stdio,
    Socket,
}

/// Runs a check over both transports.
pub fn both_ways(check: impl Fn(&Home, Client)) {
    for way in [Way::Stdio, Way::Socket] {
        let home = Home::new();
        match way {
            Way::Stdio => {
                let (client, child) = Client::over_stdio(&home, &[]);
                check(&home, client);
                finish(child, "a server on the standard streams").ok();
            }
            Way::Socket => {
                let server = Server::start(&home, &[]);
                check(&home, server.client());
                server.end().ok();
            }
        }
    }
}

/// A server on a socket.
pub struct Server {
    child: Option<Child>,
    pub path: PathBuf,
}

impl Server {
    /// Starts a server and waits until it listens.
    pub fn start(home: &Home, more: &[&str]) -> Server {
        Server::start_with(home, more, &[])
    }

    pub fn start_with(home: &Home, more: &[&str], env: &[(&str, &str)]) -> Server {
        let path = home.path().join("t.sock");
        let mut args = vec!["serve", "--socket", path.to_str().unwrap()];
        args.extend(more);
        let mut prepared = home.prepare(&args);
        for (name, value) in env {
            prepared = prepared.env(name, value);
        }
        let child = prepared
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let server = Server {
            child: Some(child),
            path,
        };
        until("the server listens", || {
            UnixStream::connect(&server.path).ok().map(drop)
        });
        server
    }

    /// Connects a new client.
    pub fn client(&self) -> Client {
        Client::over_socket(&self.path)
    }

    /// Returns the server's process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Kills the server with SIGKILL.
    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Sends SIGTERM and waits for the server to exit.
    pub fn end(self) -> Output {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Waits for the server to exit.
    pub fn wait(mut self) -> Output {
        finish(self.child.take().unwrap(), "a server")
    }

    /// Returns the peak memory of the server, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let pid = self.pid().as_raw_nonzero();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A client that reads replies in the background.
pub struct Client {
    write: Option<Box<dyn Write + Send>>,
    heard: Receiver<(Instant, Value)>,
    /// Replies received while waiting for another one.
    aside: Vec<Value>,
    stream: Option<UnixStream>,
    asked: i64,
    /// Whether replies are validated; too slow with many clients.
    checks: bool,
}

impl Client {
    pub fn over_stdio(home: &Home, more: &[&str]) -> (Client, Child) {
        let args = [&["serve", "--stdio"], more].concat();
        let mut child = home
            .prepare(&args)
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (write, read) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        (Client::new(Box::new(write), read, None), child)
    }

    pub fn over_socket(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        let (read, other) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        Client::new(Box::new(stream), read, Some(other))
    }

    fn new(
        write: Box<dyn Write + Send>,
        read: impl Read + Send + 'static,
        stream: Option<UnixStream>,
    ) -> Client {
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(read).lines() {
                let Ok(line) = line else { break };
                let reply: Value = serde_json::from_str(&line).unwrap();
                if tell.send((Instant::now(), reply)).is_err() {
                    break;
                }
            }
        });
        Client {
            write: Some(write),
            heard,
            aside: Vec::new(),
            stream,
            asked: 0,
            checks: true,
        }
    }

    /// Disables validation.
    pub fn trusting(mut self) -> Client {
        self.checks = false;
        self
    }

    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.write.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends a request.
    pub fn send(&mut self, request: &Value) {
        assert!(
            !self.checks || REQUEST.is_valid(request),
            "not a request: {request}"
        );
        let mut line = request.to_string();
        line.push('\n');
        let write = self.write.as_mut().unwrap();
        write.write_all(line.as_bytes()).unwrap();
        write.flush().unwrap();
    }

    /// Sends a request to a server that may have hung up.
    pub fn try_send(&mut self, request: &Value) {
        let _ = self
            .write
            .as_mut()
            .unwrap()
            .write_all(format!("{request}\n").as_bytes());
    }

    /// Sends a request with a new id and returns the id.
    pub fn ask(&mut self, mut request: Value) -> i64 {
        self.asked += 1;
        request["id"] = json!(self.asked);
        self.send(&request);
        self.asked
    }

    /// Returns the next reply, or `None` after `time`.
    pub fn next_within(&mut self, time: Duration) -> Option<(Instant, Value)> {
        match self.heard.recv_timeout(time) {
            Ok((at, reply)) => {
                if !self.checks {
                    return Some((at, reply));
                }
                let wrong: Vec<String> = REPLY.iter_errors(&reply).map(|e| e.to_string()).collect();
                assert!(wrong.is_empty(), "{reply} is no answer: {wrong:?}");
                Some((at, reply))
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Returns the next reply.
    #[track_caller]
    pub fn next(&mut self) -> Value {
        match self.next_within(DEADLINE) {
            Some((_, reply)) => reply,
            None => panic!("nothing more was heard"),
        }
    }

    /// Returns true if the server closes the connection.
    pub fn is_hung_up(&mut self) -> bool {
        let begun = Instant::now();
        loop {
            match self.heard.recv_timeout(Duration::from_millis(50)) {
                Err(RecvTimeoutError::Disconnected) => return true,
                _ if begun.elapsed() > DEADLINE => return false,
                _ => {}
            }
        }
    }

    /// Sends a request and returns the first reply to it; keeps other replies for later.
    #[track_caller]
    pub fn answer(&mut self, request: Value) -> Value {
        let id = self.ask(request);
        self.of(id)
    }

    /// Returns the next reply to this request.
    #[track_caller]
    pub fn of(&mut self, id: i64) -> Value {
        if let Some(at) = self.aside.iter().position(|reply| reply["id"] == id) {
            return self.aside.remove(at);
        }
        loop {
            let reply = self.next();
            if reply["id"] == id {
                return reply;
            }
            self.aside.push(reply);
        }
    }

    /// Returns all replies to a query, up to its completion.
    #[track_caller]
    pub fn story(&mut self, id: i64) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let reply = self.of(id);
            let kind = reply["type"].clone();
            all.push(reply);
            if kind == "complete" {
                return all;
            }
        }
    }

    /// Sends a prompt and waits for completion. Returns the answer and the final reply.
    #[track_caller]
    pub fn query(&mut self, words: &str) -> (String, Value) {
        let id = self.ask(json!({ "type": "query", "query": words }));
        let mut story = self.story(id);
        (text(&story), story.pop().unwrap())
    }

    /// Returns the next reply of a type, to any request.
    #[track_caller]
    pub fn until(&mut self, kind: &str) -> Value {
        loop {
            let reply = self.next();
            if reply["type"] == kind {
                return reply;
            }
        }
    }

    /// Returns the next event of a kind.
    #[track_caller]
    pub fn until_happening(&mut self, what: &str) -> Value {
        loop {
            let reply = self.until("happening");
            if reply["happening"]["what"] == what {
                return reply;
            }
        }
    }

    /// Closes the sending side and keeps receiving.
    pub fn hush(&mut self) {
        self.write = None;
        if let Some(stream) = &self.stream {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
    }

    /// Disconnects.
    pub fn leave(mut self) {
        self.write = None;
        if let Some(stream) = self.stream.take() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Returns the text of an answer.
pub fn text(story: &[Value]) -> String {
    let tokens = story.iter().filter(|reply| reply["type"] == "token");
    tokens
        .map(|token| token["text"].as_str().unwrap())
        .collect()
}

/// Returns the string value of a key.
#[track_caller]
pub fn string(value: &Value, key: &str) -> String {
    match value[key].as_str() {
        Some(text) => text.to_owned(),
        None => panic!("no {key} in {value}"),
    }
}
