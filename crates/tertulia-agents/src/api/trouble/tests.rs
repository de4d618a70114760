//! Tests of what failures mean to a person.

use super::*;
use serde_json::json;

const SECRET: &str = "sk-very-secret";

fn explained(trouble: &Trouble) -> AgentError {
    let key = Key::Value {
        secret: Secret::new(SECRET),
        variable: "MY_KEY".to_owned(),
    };
    trouble.explain(Asked {
        whence: &Whence::settings("mine"),
        provider: Provider::OpenAi,
        root: "http://127.0.0.1:1/v1/",
        key: &key,
        secret: Some(&Secret::new(SECRET)),
    })
}

fn status(status: u16, body: &str) -> Trouble {
    Trouble::Status {
        status,
        body: body.to_owned(),
        asked: None,
        retry_forbidden: false,
    }
}

#[test]
fn a_status_means_what_a_person_does_about_it() {
    use FailureKind::{Auth, Failed, Protocol, RateLimit, Refused, TooLong, Unavailable};
    let quota = r#"{"error": {"message": "no credit", "code": "insufficient_quota"}}"#;
    let gemini_rate = r#"{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details.", "status": "RESOURCE_EXHAUSTED"}}"#;
    let gemini_key = r#"{"error": {"code": 400, "message": "API key not valid. Please…"}}"#;
    let long = r#"{"error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 8"}}"#;
    let claude_long = r#"{"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}"#;
    let policy = r#"{"error": {"message": "flagged", "code": "content_policy_violation"}}"#;
    for (code, body, kind, retryable, hint) in [
        (401, "{}", Auth, false, "MY_KEY"),
        (403, "", Auth, false, "MY_KEY"),
        (402, "", Auth, false, "credit"),
        (400, gemini_key, Auth, false, "MY_KEY"),
        (429, "", RateLimit, true, ""),
        (429, quota, RateLimit, false, "credit"),
        (429, gemini_rate, RateLimit, true, ""),
        (413, "", TooLong, false, "less"),
        (400, long, TooLong, false, "less"),
        (400, claude_long, TooLong, false, "less"),
        (500, long, TooLong, false, "less"),
        (400, policy, Refused, false, ""),
        (
            400,
            r#"{"error": {"message": "bad field"}}"#,
            Failed,
            false,
            "",
        ),
        (
            404,
            r#"{"error": {"message": "no model x"}}"#,
            Unavailable,
            false,
            "agents models mine",
        ),
        (404, "<html>", Unavailable, false, "base_url"),
        (500, "", Unavailable, true, ""),
        (501, "", Unavailable, false, ""),
        (502, "<html>bad gateway</html>", Unavailable, true, ""),
        (529, "", Unavailable, true, ""),
        (301, "", Protocol, false, "base_url"),
        (418, "", Failed, false, ""),
    ] {
        let trouble = status(code, body);
        let error = explained(&trouble);
        assert_eq!(error.kind, kind, "{code} {body}");
        assert_eq!(trouble.is_retryable(), retryable, "{code} {body}");
        let told = error.hint.unwrap_or_default();
        assert!(told.contains(hint), "{code} {body}: {told}");
    }
}

#[test]
fn an_error_in_the_stream_counts_by_its_type() {
    for (body, status) in [
        (
            json!({"type": "error", "error": {"type": "overloaded_error"}}),
            529,
        ),
        (json!({"error": {"type": "rate_limit_error"}}), 429),
        (json!({"type": "server_error", "message": "x"}), 500),
        (
            json!({"code": "context_length_exceeded", "type": "invalid_request_error"}),
            400,
        ),
        (
            json!({"error": {"code": 503, "status": "UNAVAILABLE"}}),
            503,
        ),
        (json!({"error": {"status": "RESOURCE_EXHAUSTED"}}), 429),
        (json!({"error": "model runner has stopped"}), 500),
        (json!("nonsense"), 500),
    ] {
        assert_eq!(status_of(&body), status, "{body}");
    }
    assert!(Trouble::Event(json!({"type": "server_error"})).is_retryable());
}

#[test]
fn the_providers_words_are_found_in_every_shape() {
    for (body, said) in [
        (
            r#"{"type":"error","error":{"type":"x","message":"one"}}"#,
            Some("one"),
        ),
        (r#"[{"error":{"code":400,"message":"two"}}]"#, Some("two")),
        (r#"{"error":"three"}"#, Some("three")),
        (r#"{"detail":"four"}"#, Some("four")),
        (r#"{"message":"five"}"#, Some("five")),
        (r#""six""#, Some("six")),
        (r#"{"error":{"message":" "}}"#, None),
        ("<html></html>", None),
        ("", None),
    ] {
        assert_eq!(message(body).as_deref(), said, "{body}");
    }
}

#[test]
fn words_are_short_and_hold_no_key() {
    // The key is placed where the text is cut, so that a part of it would be left.
    let said = format!(
        "{}{SECRET} \n\n and more {}",
        "é".repeat(290),
        "x".repeat(500)
    );
    let body = json!({"error": {"message": said}}).to_string();
    let error = explained(&status(401, &body));
    assert!(!error.message.contains("sk-"), "{}", error.message);
    assert!(!error.message.contains('\n'));
    assert!(error.message.chars().count() <= LONGEST + 1);
    let error = explained(&Trouble::Garbled(format!("at {SECRET}")));
    assert!(!error.message.contains("sk-"), "{}", error.message);
}

#[test]
fn when_to_come_back_is_handed_on() {
    let trouble = Trouble::Status {
        status: 429,
        body: String::new(),
        asked: Some(Duration::from_secs(9)),
        retry_forbidden: true,
    };
    assert_eq!(
        explained(&trouble).retry_after,
        Some(Duration::from_secs(9))
    );
    assert!(!trouble.is_retryable());
}

#[test]
fn faults_of_the_server_are_named_as_such() {
    let message = |code| explained(&status(code, r#"{"error": {"message": "no luck"}}"#)).message;
    let server = "the server at http://127.0.0.1:1/v1/";
    assert_eq!(
        message(503),
        format!("server error 503 of {server}: no luck")
    );
    assert_eq!(message(400), format!("{server} says (400): no luck"));
}
