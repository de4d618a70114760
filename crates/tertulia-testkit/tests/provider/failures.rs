//! Answers that fail as they were told to.

use genai::chat::StopReason;
use serde_json::Value;
use tertulia_testkit::provider::{Api, FakeProvider};
use tertulia_testkit::waiting::wait_until;

use super::client::{Heard, KEY, ask_for, ask_plainly, say};

/// The words that an API puts into an error.
fn message(api: Api, body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let message = match api {
        Api::Ollama => &body["error"],
        _ => &body["error"]["message"],
    };
    message.as_str().expect("words in an error").to_owned()
}

#[test]
fn a_status_comes_in_the_shape_of_the_api() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        for status in [400, 401, 403, 404, 413, 429, 500, 502, 503, 529] {
            let heard = say(&provider, api, &format!("[[fail:{status}]]"));
            let (body, after) = heard.status(status);
            assert!(!message(api, &body).is_empty());
            assert_eq!(after, None);
            assert_eq!(heard.text, "");
        }
        let (body, _) = say(&provider, api, "[[fail:overflow]]").status(400);
        assert!(!message(api, &body).is_empty());
        let (body, _) = say(&provider, api, "[[fail:html]]").status(502);
        assert!(body.contains("<html>"));
        let heard = say(&provider, api, "[[fail:429:retry_after=7]]");
        assert_eq!(heard.status(429).1.as_deref(), Some("7"));
    }
    let (body, _) = say(&provider, Api::Anthropic, "[[fail:529]]").status(529);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["error"]["type"], "overloaded_error");
}

#[test]
fn a_wrong_key_is_repeated() {
    let provider = FakeProvider::start();
    for api in [Api::Anthropic, Api::OpenAi, Api::Gemini] {
        let (body, _) = say(&provider, api, "[[fail:401]]").status(401);
        assert!(message(api, &body).contains(KEY), "{body}");
    }
}

#[test]
fn a_failure_may_pass() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        let words = "again [[fail:503:times=2]]";
        say(&provider, api, words).status(503);
        say(&provider, api, words).status(503);
        let text = say(&provider, api, words).whole().text;
        assert_eq!(text, format!("echo #1: {words}"));
        say(&provider, api, "other [[fail:503:times=2]]").status(503);
    }
}

/// genai swallows some of these for some APIs: what the fake does is seen in what was said before, and
/// in that the end of the message is missing.
#[test]
fn an_answer_breaks_where_it_was_told_to() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        for kind in ["drop", "truncate", "error_event"] {
            let words = format!("[[words:9]] [[fail:{kind}:after=3]]");
            let heard = say(&provider, api, &words);
            assert_eq!(heard.text, "word1 word2 word3", "{api:?} {kind}");
            let reason = heard.end.and_then(|end| end.captured_stop_reason);
            assert_eq!(reason, None, "{api:?} {kind}");
            let heard = say(
                &provider,
                api,
                &format!("[[words:2]] [[fail:{kind}:after=9]]"),
            );
            assert_eq!(heard.text, "word1 word2", "{api:?} {kind}");
            let reason = heard.end.and_then(|end| end.captured_stop_reason);
            assert_eq!(reason, None, "{api:?} {kind}");
        }
        let dropped = say(&provider, api, "[[words:9]] [[fail:drop]]");
        assert_eq!(dropped.text, "word1 word2");
        assert!(
            matches!(dropped.error, Some(genai::Error::WebStream { .. })),
            "{dropped:?}"
        );
        let garbled = say(&provider, api, "[[words:9]] [[fail:malformed:after=3]]");
        assert_eq!(garbled.text, "word1 word2 word3");
        assert!(
            matches!(garbled.error, Some(genai::Error::StreamParse { .. })),
            "{garbled:?}"
        );
        let page = say(&provider, api, "[[fail:portal]]");
        assert_eq!(page.text, "", "{page:?}");
        let nothing = say(&provider, api, "[[fail:drop0]]");
        assert!(
            nothing.error.is_some() && nothing.text.is_empty(),
            "{nothing:?}"
        );
    }
}

#[test]
fn its_own_hanging_up_is_not_the_clients() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        say(&provider, api, "[[fail:drop0]]");
        say(&provider, api, "[[fail:drop]]");
        say(&provider, api, "hello").whole();
    }
    assert_eq!(provider.client_gone(), 0);
}

#[test]
fn an_error_event_is_told() {
    let provider = FakeProvider::start();
    for api in [Api::Anthropic, Api::OpenAi, Api::Gemini] {
        let heard = say(&provider, api, "[[fail:error_event]]");
        let Some(genai::Error::ChatResponse { body, .. }) = &heard.error else {
            panic!("{heard:?}");
        };
        assert!(body.to_string().contains("message"), "{body}");
    }
}

#[test]
fn plain_answers_fail_too() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        for kind in [
            "500",
            "drop0",
            "drop",
            "truncate",
            "malformed",
            "error_event",
            "portal",
        ] {
            let words = format!("[[fail:{kind}]]");
            assert!(
                ask_plainly(&provider, api, &words).is_err(),
                "{api:?} {kind}"
            );
        }
    }
}

#[test]
fn a_model_may_not_want_to() {
    let provider = FakeProvider::start();
    let reason = |heard: &Heard| heard.end.as_ref().unwrap().captured_stop_reason.clone();
    for api in [Api::Anthropic, Api::OpenAi, Api::Gemini] {
        let heard = say(&provider, api, "[[words:5]] [[fail:refusal:after=2]]").whole();
        assert_eq!(heard.text, "word1 word2");
        let reason = reason(&heard);
        assert!(
            !matches!(reason, None | Some(StopReason::Completed(_))),
            "{api:?} {reason:?}"
        );
    }
    let heard = say(&provider, Api::Gemini, "[[fail:refusal]]");
    assert!(heard.error.is_some() && heard.text.is_empty(), "{heard:?}");
    let heard = say(&provider, Api::Ollama, "[[fail:refusal]]").whole();
    assert_eq!(heard.text, "I cannot help with that.");
}

/// Looks until the fake has noticed so many clients leave.
fn until_gone(provider: &FakeProvider, count: u64) {
    wait_until("a client has left", || provider.client_gone() >= count);
    assert_eq!(provider.client_gone(), count);
}

#[test]
fn it_notices_who_hangs_up() {
    for api in Api::ALL {
        let provider = FakeProvider::start();
        let stalled = ask_for(&provider, api, "[[words:9]] [[fail:stall:after=2]]", 2);
        assert_eq!(stalled.text, "word1 word2");
        until_gone(&provider, 1);
        // Many seconds until the last word.
        let slow = ask_for(&provider, api, "[[words:5000]] [[delay:1]]", 2);
        assert_eq!(slow.text, "word1 word2");
        until_gone(&provider, 2);
    }
}

#[test]
fn what_hangs_ends_with_it() {
    for words in [
        "[[fail:hang]]",
        "[[fail:stall:after=0]]",
        "[[delay:3600000]]",
    ] {
        let provider = FakeProvider::start();
        let url = format!("{}/api/chat", provider.base_url(Api::Ollama));
        let client = super::client::http();
        let body =
            serde_json::json!({"model": "m", "messages": [{"role": "user", "content": words}]});
        let asking = std::thread::spawn(move || {
            super::client::wait(async move {
                let answer = client.post(url).body(body.to_string()).send().await?;
                answer.text().await
            })
        });
        wait_until("the request comes", || !provider.requests().is_empty());
        drop(provider);
        let answer = asking.join().unwrap();
        assert!(answer.is_err(), "{words} {answer:?}");
    }
}
