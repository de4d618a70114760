//! A server's session in the TUI: it continues without the TUI, and nothing is missed.

use std::fs;
use std::process::{Child, Stdio};

use tertulia_testkit::terminal::Terminal;

use super::agents;
use super::stage::{open, ready, say, status_says, talk};
use crate::home::{Home, messages, until};

/// Adds an agent that prints text, waits for the file `go`, and prints more.
fn patient(home: &Home) {
    let go = home.path().join("go");
    let script = format!(
        "printf 'the beginning '; i=0; while [ ! -e '{}' ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i+1)); done; echo 'the end'",
        go.display()
    );
    home.script_agent("patient", &script);
    let path = home.path().join(".config/tertulia/config.toml");
    let settings = fs::read_to_string(&path).unwrap();
    let settings = settings.replace("agent = \"demo\"", "agent = \"patient\"");
    fs::write(path, settings).unwrap();
}

/// A server that ends with the test.
struct Server(Child);

impl Server {
    fn start(home: &Home) -> Server {
        let mut command = home.prepare(&["serve", "--socket"]).command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = Server(command.spawn().unwrap());
        let socket = home.prepare(&["ps", "--json"]);
        until("the server listens", || {
            let told = socket.command().output().unwrap();
            let told: serde_json::Value = serde_json::from_slice(&told.stdout).ok()?;
            told["server"].is_object().then_some(())
        });
        server
    }

    fn kill9(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the server's sessions.
fn talks(home: &Home) -> Vec<serde_json::Value> {
    let told = home.run(&["ps", "--json"]).ok().json();
    told["sessions"].as_array().unwrap().clone()
}

#[test]
fn who_leaves_misses_nothing() {
    let home = Home::new();
    patient(&home);
    let _server = Server::start(&home);
    let mut terminal = talk(&home, &["attach"]);
    terminal.type_text("speak\n");
    terminal.sees("the beginning");
    terminal.keys("^\\");
    assert_eq!(terminal.exit_code(), 0, "{}", terminal.contents());
    terminal.wait_for("how to come back", |screen| screen.has("tertulia attach"));
    // A client that attaches in the middle sees the answer so far.
    let mut terminal = open(&home, &["attach"]).with_clear_keys();
    terminal.sees("the beginning");
    status_says(&mut terminal, "speaking");
    terminal.keys("^\\");
    assert_eq!(terminal.exit_code(), 0);
    agents::go(&home);
    until("the answer is saved", || {
        let said = home.said("@");
        said.iter()
            .any(|words| words.contains("the end"))
            .then_some(())
    });
    let mut terminal = talk(&home, &["attach"]);
    terminal.sees("the beginning the end");
    status_says(&mut terminal, "restored 2");
    terminal.keys("^d");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_window_that_goes_away_stops_nothing() {
    let home = Home::new();
    patient(&home);
    let _server = Server::start(&home);
    let mut terminal = talk(&home, &["attach"]);
    terminal.type_text("speak\n");
    terminal.sees("the beginning");
    terminal.close();
    let mut terminal = talk_in_the_middle(&home);
    terminal.kill9();
    agents::go(&home);
    let mut terminal = open(&home, &["attach"]).with_clear_keys();
    terminal.sees("the beginning the end");
    ready(&mut terminal);
    let said = messages(&home.show("@"));
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[1]["interrupted"], false, "{said:?}");
}

fn talk_in_the_middle(home: &Home) -> Terminal {
    let mut terminal = open(home, &["attach"]).with_clear_keys();
    terminal.sees("the beginning");
    status_says(&mut terminal, "speaking");
    terminal
}

#[test]
fn two_screens_show_one_talk() {
    let home = Home::new();
    let _server = Server::start(&home);
    let mut one = talk(&home, &["attach"]);
    say(&mut one, "first words", "You said");
    let mut other = talk(&home, &["attach"]);
    other.sees("You said");
    one.type_text("use shell {\"command\": \"echo from the tool\"}\n");
    one.sees("echo from the tool");
    one.sees("Enter no");
    other.sees("Enter no");
    one.keys("y Enter");
    // The dialog closes for the user who did not answer.
    other.sees_no_more("Enter no");
    ready(&mut other);
    ready(&mut one);
    let said = messages(&home.show("@"));
    assert!(
        said.iter().any(|message| message["role"] == "tool"),
        "{said:?}"
    );
}

#[test]
fn a_new_session_says_who_answers_and_the_agent_is_switched() {
    let home = Home::new();
    home.script_agent("upper", "cat > /dev/null; echo I AM UPPER");
    let _server = Server::start(&home);
    let mut terminal = talk(&home, &["attach"]);
    terminal.sees("demo answers (demo-1, from the settings)");
    terminal.sees("A server runs this session");
    status_says(&mut terminal, "demo-1");
    terminal.type_text("/agents upper\n");
    terminal.sees("upper answers (your choice)");
    say(&mut terminal, "who are you?", "I AM UPPER");
    terminal.type_text("/agents missing\n");
    terminal.sees("there is no agent 'missing'");
    say(&mut terminal, "and now?", "I AM UPPER");
    terminal.keys("^d");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn it_is_stopped_and_ended_from_the_screen() {
    let home = Home::new();
    patient(&home);
    let _server = Server::start(&home);
    let mut terminal = talk(&home, &["attach"]);
    terminal.type_text("speak\n");
    terminal.sees("the beginning");
    terminal.keys("Esc");
    terminal.sees("interrupted");
    ready(&mut terminal);
    assert_eq!(talks(&home).len(), 1);
    terminal.type_text("/end\n");
    assert_eq!(terminal.exit_code(), 0);
    until("the talk has ended", || {
        talks(&home).is_empty().then_some(())
    });
}

#[test]
fn a_server_that_is_killed_takes_no_word_along() {
    let home = Home::new();
    patient(&home);
    let mut server = Server::start(&home);
    let mut terminal = talk(&home, &["attach"]);
    terminal.type_text("speak\n");
    terminal.sees("the beginning");
    // Text that was on the screen for a second is saved.
    terminal.sees(" 2 s ");
    server.kill9();
    assert_eq!(terminal.exit_code(), 1, "{}", terminal.contents());
    terminal.wait_for("why", |screen| screen.has("disconnected from the session"));
    let _again = Server::start(&home);
    let mut terminal = talk(&home, &["attach", "@"]);
    terminal.sees("the beginning");
    terminal.keys("^d");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn without_a_server_it_says_how_to_have_one() {
    let home = Home::new();
    let mut terminal = open(&home, &["attach"]);
    terminal.sees("tertulia serve");
    assert_ne!(terminal.exit_code(), 0);
    let piped = home.run(&["attach"]).code(2);
    assert!(piped.stderr.contains("terminal"), "{}", piped.stderr);
}

#[test]
fn who_attaches_and_says_nothing_leaves_nothing_behind() {
    let home = Home::new();
    let _server = Server::start(&home);
    let mut terminal = talk(&home, &["attach"]);
    terminal.keys("^d");
    assert_eq!(terminal.exit_code(), 0, "{}", terminal.contents());
    assert_eq!(home.all().len(), 0);
    let mut terminal = talk(&home, &["attach"]);
    say(&mut terminal, "echo first words", "first words");
    terminal.type_text("/new\n");
    terminal.sees("Every word is saved");
    terminal.keys("^d");
    assert_eq!(terminal.exit_code(), 0, "{}", terminal.contents());
    assert_eq!(home.all().len(), 1);
    assert_eq!(home.said("@").len(), 2);
}
