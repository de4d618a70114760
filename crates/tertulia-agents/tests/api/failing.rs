//! Failures of servers and streams.

use std::time::Duration;

use serde_json::json;
use tertulia_agents::api::{Api, Provider};
use tertulia_agents::{AgentEvent, FailureKind, Outcome, Patience};
use tertulia_testkit::waiting::DEADLINE;

use super::scripts::{end, error, garbage, stop, words};
use super::server::{Reply, Server};
use super::{Answer, KEY, agent, ask, ask_until, question};

fn retries(answer: &Answer) -> Vec<(u32, u32, Duration)> {
    let retries = answer.events.iter().filter_map(|event| match event {
        AgentEvent::Retrying(retry) => Some((retry.attempt, retry.of, retry.wait)),
        _ => None,
    });
    retries.collect()
}

/// The answer to a stream that breaks after some text, which must not be requested twice.
fn broken(provider: Provider, reply: Reply) -> Answer {
    let server = Server::play(vec![reply]);
    let answer = ask(&agent(provider, &server), &question("hi"));
    assert_eq!(answer.text(), "你好 so far", "{provider:?}");
    assert_eq!(server.requests().len(), 1, "{provider:?} was asked again");
    answer
}

#[test]
fn a_stream_that_breaks_is_not_taken_for_whole() {
    for provider in Provider::ALL {
        let said = words(provider, &["你好 ", "so far"]);
        let garbled = [said.as_bytes(), garbage(provider).as_bytes()].concat();
        let not_text = [said.as_bytes(), b"data: \xff\xff\n\n".as_slice()].concat();
        for (name, reply, kind) in [
            (
                "truncated",
                Reply::stream(said.clone()),
                FailureKind::Protocol,
            ),
            ("garbled", Reply::stream(garbled), FailureKind::Protocol),
            ("not text", Reply::stream(not_text), FailureKind::Protocol),
            (
                "dropped",
                Reply::stream(said.clone()).dropped(),
                FailureKind::Unavailable,
            ),
            (
                "error",
                Reply::stream(said.clone() + &error(provider)),
                FailureKind::Unavailable,
            ),
        ] {
            let answer = broken(provider, reply);
            assert_eq!(
                answer.error().kind,
                kind,
                "{provider:?} {name}: {:?}",
                answer.error()
            );
            if name == "error" {
                assert!(
                    answer.error().message.contains("Overloaded"),
                    "{provider:?}"
                );
            }
        }
    }
}

#[test]
fn a_page_where_a_stream_should_be_is_not_an_answer() {
    for provider in Provider::ALL {
        let server = Server::play(vec![Reply::plain(200, "<html>\n\nLog in\n\n</html>\n")]);
        let answer = ask(&agent(provider, &server), &question("hi"));
        assert_eq!(answer.error().kind, FailureKind::Protocol, "{provider:?}");
    }
}

#[test]
fn what_the_model_does_not_want_is_a_refusal() {
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
    let declined = json!({"choices": [{"delta": {"refusal": "I cannot"}, "finish_reason": null}]});
    for (provider, stream) in [
        (Provider::Anthropic, end(Provider::Anthropic, "refusal")),
        (Provider::OpenAi, end(Provider::OpenAi, "content_filter")),
        (
            Provider::OpenAi,
            format!("data: {declined}\n\n") + &stop(Provider::OpenAi),
        ),
        (Provider::Gemini, end(Provider::Gemini, "SAFETY")),
        (Provider::Gemini, format!("data: {blocked}\n\n")),
    ] {
        let server = Server::play(vec![Reply::stream(stream)]);
        let answer = ask(&agent(provider, &server), &question("hi"));
        assert_eq!(
            answer.error().kind,
            FailureKind::Refused,
            "{:?}",
            answer.error()
        );
    }
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    for provider in Provider::ALL {
        let busy = Reply::plain(429, r#"{"error": {"message": "slow down"}}"#);
        let server = Server::play(vec![
            busy.clone().header("retry-after", "0.02"),
            busy.header("retry-after-ms", "30"),
            Reply::plain(529, "{}"),
            Reply::stream(words(provider, &["x"]) + &stop(provider)),
        ]);
        let answer = ask(&agent(provider, &server), &question("hi"));
        assert_eq!(answer.result, Ok(Outcome::Done), "{provider:?}");
        // The third wait is tertulia's own: the first one, doubled twice.
        let waits = [(1, 3, 20), (2, 3, 30), (3, 3, 4)];
        let waits = waits.map(|(attempt, of, wait)| (attempt, of, Duration::from_millis(wait)));
        assert_eq!(retries(&answer), waits, "{provider:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), 4);
        assert_eq!(requests[0].body, requests[3].body);
    }
}

#[test]
fn what_passes_is_tried_again_until_it_is_enough() {
    for provider in Provider::ALL {
        let table = [
            vec![Reply::plain(503, "<html>"); 4],
            // No text has arrived yet: the stream may be requested again.
            vec![Reply::stream(error(provider)); 4],
            vec![Reply::stream("").dropped(); 4],
        ];
        for replies in table {
            let server = Server::play(replies);
            let answer = ask(&agent(provider, &server), &question("hi"));
            assert_eq!(
                answer.error().kind,
                FailureKind::Unavailable,
                "{provider:?}"
            );
            assert_eq!(
                retries(&answer).len(),
                3,
                "{provider:?} {:?}",
                answer.error()
            );
            assert_eq!(server.requests().len(), 4, "{provider:?}");
        }
    }
}

#[test]
fn nobody_there_is_told_with_the_address() {
    let server = Server::play(Vec::new());
    let api = Api {
        retries: 1,
        ..agent(Provider::Anthropic, &server)
    };
    let url = server.url();
    drop(server);
    let answer = ask(&api, &question("hi"));
    let error = answer.error();
    assert_eq!(error.kind, FailureKind::Unavailable);
    assert!(error.message.contains(&url), "{error:?}");
    assert_eq!(retries(&answer).len(), 1);
}

#[test]
fn a_key_that_is_not_accepted_is_not_shown() {
    for provider in Provider::ALL {
        let said = format!("Incorrect API key provided: {KEY}. Find yours on our page.\nBye");
        let body = json!({"error": {"message": said}}).to_string();
        let server = Server::play(vec![Reply::plain(401, &body)]);
        let mut api = agent(provider, &server);
        api.key = agent(Provider::OpenAi, &server).key;
        let answer = ask(&api, &question("hi"));
        let error = answer.error();
        assert_eq!(error.kind, FailureKind::Auth, "{provider:?}");
        assert!(
            error.message.contains("Incorrect API key provided: ***"),
            "{error:?}"
        );
        assert!(error.hint.as_ref().unwrap().contains("MY_KEY"));
        let shown = format!("{error:?} {error} {api:?} {:?}", answer.events);
        assert!(!shown.contains(KEY), "{shown}");
        assert_eq!(server.requests().len(), 1);
        assert!(server.requests()[0].headers.contains(KEY), "{provider:?}");
    }
}

#[test]
fn a_redirection_does_not_carry_the_key_away() {
    let other = Server::play(vec![Reply::plain(200, "{}")]);
    let moved = Reply::plain(307, "").header("location", &other.url());
    let server = Server::play(vec![moved]);
    let answer = ask(&agent(Provider::Anthropic, &server), &question("hi"));
    assert_eq!(answer.error().kind, FailureKind::Protocol);
    assert!(other.requests().is_empty());
}

#[test]
fn silence_and_slowness_have_their_limits() {
    for provider in Provider::ALL {
        let said = words(provider, &["你好 so far"]);
        let short = Duration::from_millis(150);
        let long = DEADLINE;
        for (idle, total, setting) in [(short, long, "idle_timeout"), (long, short, "`timeout`")] {
            for reply in [
                Reply::stream(said.clone()).held(),
                Reply::plain(200, "").held(),
            ] {
                let server = Server::play(vec![reply]);
                let api = Api {
                    patience: Patience { idle, total },
                    ..agent(provider, &server)
                };
                let answer = ask(&api, &question("hi"));
                assert_eq!(answer.error().kind, FailureKind::Timeout, "{provider:?}");
                assert!(answer.error().hint.as_ref().unwrap().contains(setting));
                // The server ends only after the connection has ended.
                drop(server);
            }
        }
    }
}

#[test]
fn a_cancelled_answer_lets_go_of_the_connection() {
    for provider in Provider::ALL {
        let said = words(provider, &["你好 so far"]);
        let server = Server::play(vec![Reply::stream(said).held()]);
        let heard = |event: &AgentEvent| matches!(event, AgentEvent::Text(_));
        let answer = ask_until(&agent(provider, &server), &question("hi"), heard);
        assert_eq!(answer.error().kind, FailureKind::Cancelled, "{provider:?}");
        server.wait_until_gone();
    }
}

#[test]
fn a_wait_ends_when_it_is_cancelled() {
    let busy = Reply::plain(429, "{}").header("retry-after", "90");
    let server = Server::play(vec![busy]);
    let waits = |event: &AgentEvent| matches!(event, AgentEvent::Retrying(_));
    let answer = ask_until(&agent(Provider::Gemini, &server), &question("hi"), waits);
    assert_eq!(answer.error().kind, FailureKind::Cancelled);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_wait_beyond_all_patience_is_not_begun() {
    let busy = Reply::plain(429, "{}").header("retry-after", "3600");
    let server = Server::play(vec![busy]);
    let answer = ask(&agent(Provider::Anthropic, &server), &question("hi"));
    assert_eq!(answer.error().kind, FailureKind::RateLimit);
    assert_eq!(answer.error().retry_after, Some(Duration::from_secs(3600)));
    assert!(retries(&answer).is_empty());
}
