//! Keys that a program prints.

use std::path::Path;

use tertulia_agents::api::{Api, Key, Provider};
use tertulia_agents::{Agent, FailureKind, Readiness};

use super::scripts::{stop, words};
use super::server::{Reply, Server};
use super::{KEY, agent, ask, question, wait_for};

fn shell(script: &str) -> Key {
    Key::Command {
        command: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        found: Some("/bin/sh".into()),
    }
}

/// A program that prints the key and logs that it did.
fn noting(log: &Path) -> Key {
    shell(&format!(
        "echo told >> {}; printf '  {KEY}\\n\\n'",
        log.display()
    ))
}

#[test]
fn a_program_is_asked_for_the_key_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let provider = Provider::Anthropic;
    let fine = Reply::stream(words(provider, &["x"]) + &stop(provider));
    let denied = Reply::plain(401, "{}");
    let looked = Reply::plain(404, "");
    let server = Server::play(vec![looked, fine.clone(), fine.clone(), denied, fine]);
    let api = Api {
        key: noting(&log),
        ..agent(provider, &server)
    };
    assert!(matches!(wait_for(api.readiness()), Readiness::Ready(_)));
    assert!(!log.exists(), "to be ready is not to ask for the key");
    let look = &server.requests()[0];
    assert!(look.line.starts_with("HEAD "), "{look:?}");
    let told = || std::fs::read_to_string(&log).unwrap().lines().count();
    ask(&api, &question("one")).result.unwrap();
    ask(&api, &question("two")).result.unwrap();
    assert_eq!(told(), 1);
    assert!(server.requests()[2].headers.contains(&format!("{KEY}\r\n")));
    // A key that is no longer accepted may have been renewed.
    assert_eq!(
        ask(&api, &question("three")).error().kind,
        FailureKind::Auth
    );
    ask(&api, &question("four")).result.unwrap();
    assert_eq!(told(), 2);
}

#[test]
fn a_program_that_tells_no_key_is_named_and_not_quoted() {
    let server = Server::play(Vec::new());
    for (key, words) in [
        (
            shell(&format!("echo {KEY}; echo {KEY} >&2; exit 3")),
            "exit status: 3",
        ),
        (shell("true"), "told no key"),
        (
            Key::Command {
                command: "/nonexistent/teller".into(),
                args: vec![KEY.to_owned()],
                found: None,
            },
            "/nonexistent/teller",
        ),
    ] {
        let api = Api {
            key,
            ..agent(Provider::OpenAi, &server)
        };
        let answer = ask(&api, &question("hi"));
        let error = answer.error();
        assert_eq!(error.kind, FailureKind::Auth);
        assert!(error.message.contains(words), "{error:?}");
        assert!(error.hint.as_ref().unwrap().contains("key_command"));
        let shown = format!("{error:?} {api:?}");
        assert!(!shown.contains(KEY), "{shown}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn who_lacks_a_server_or_the_program_for_the_key_is_not_ready() {
    let server = Server::play(Vec::new());
    let missing = Key::Command {
        command: "teller".into(),
        args: Vec::new(),
        found: None,
    };
    let api = Api {
        key: missing,
        ..agent(Provider::Anthropic, &server)
    };
    let why = "the program teller of `key_command` was not found".to_owned();
    assert_eq!(wait_for(api.readiness()), Readiness::NotReady(why));
    let url = server.url();
    drop(server);
    for provider in [Provider::OpenAi, Provider::Anthropic, Provider::Gemini] {
        let api = Api {
            base_url: Some(url.clone()),
            ..Api::new("mine", provider, Key::NotNeeded)
        };
        let Readiness::NotReady(why) = wait_for(api.readiness()) else {
            panic!("{provider:?} is ready");
        };
        assert!(
            why.contains(&format!("no server answers at {url}")),
            "{why}"
        );
    }
}

#[test]
fn a_key_that_is_missing_is_asked_for_by_its_variable() {
    let api = Api::new(
        "mine",
        Provider::Gemini,
        Key::Missing {
            variable: "GEMINI_API_KEY".to_owned(),
        },
    );
    let missing = "GEMINI_API_KEY is not set".to_owned();
    assert_eq!(wait_for(api.readiness()), Readiness::NotReady(missing));
    let answer = ask(&api, &question("hi"));
    assert_eq!(answer.error().kind, FailureKind::Auth);
    assert!(
        answer
            .error()
            .hint
            .as_ref()
            .unwrap()
            .contains("GEMINI_API_KEY")
    );
}
