//! Evaluates how an answer ended, and explains an agent's errors to the user.

use serde_json::Value;

use crate::{AgentError, AgentEvent, FailureKind, Outcome, failure};

/// JSON-RPC code of "authentication required".
const AUTH_REQUIRED: i64 = -32000;

/// Converts an agent's error from its code, message and data.
pub(super) fn of_error(code: i64, message: &str, data: &Value) -> AgentError {
    let words = words(message, data);
    let word = |key: &str| data[key].as_str().unwrap_or_default();
    let named = format!("{} {}", word("errorKind"), word("errorName"));
    let kind = (code == AUTH_REQUIRED)
        .then_some(FailureKind::Auth)
        .or_else(|| by_status(code))
        .or_else(|| failure::of_words(&named))
        .or_else(|| failure::of_words(&words))
        .or_else(|| numbers(&words).find_map(by_status));
    let words = failure::one_line(&failure::without_trace(&words));
    let error = AgentError::new(kind.unwrap_or(FailureKind::Failed), words);
    match failure::advice(error.kind) {
        Some(advice) => error.hint(advice),
        None => error,
    }
}

/// Converts the text that an agent sent in place of an answer when it failed without an error.
pub(super) fn of_text(text: &str) -> AgentError {
    match text {
        "" => AgentError::new(FailureKind::Failed, "the agent says that it failed"),
        text => of_error(0, text, &Value::Null),
    }
}

fn by_status(code: i64) -> Option<FailureKind> {
    let status = u64::try_from(code).ok()?;
    failure::of_status(status).filter(|kind| *kind != FailureKind::Failed)
}

/// Returns the statuses that stand alone in a text. A port or an id is longer, or part of a word.
fn numbers(text: &str) -> impl Iterator<Item = i64> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() == 3)
        .filter_map(|word| word.parse().ok())
}

/// Unwraps the message: some agents send the provider's JSON, some hide the cause in the data.
fn words(message: &str, data: &Value) -> String {
    let plain = message.strip_prefix("Internal error: ").unwrap_or(message);
    let inner: Option<Value> = serde_json::from_str(plain.trim()).ok();
    let inner = inner.as_ref().map(|inner| &inner["error"]["message"]);
    let plain = inner.and_then(Value::as_str).unwrap_or(plain).trim();
    let details = data["details"]
        .as_str()
        .or(data.as_str())
        .unwrap_or_default();
    match (plain, details.trim()) {
        (plain, "") => plain.to_owned(),
        ("" | "Internal error", details) => details.to_owned(),
        (plain, details) if plain.contains(details) => plain.to_owned(),
        (plain, details) => format!("{plain}: {details}"),
    }
}

/// Events of the turn besides the agent's stop reason.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn<'a> {
    /// The user cancelled the turn.
    pub(super) stopped: bool,
    /// Permission for a tool was denied.
    pub(super) refused: bool,
    /// The agent's text about its own failure.
    pub(super) broken: Option<&'a str>,
}

/// Evaluates the stop reason: a remark for the user, if any, and the result.
pub(super) fn stop(
    reason: &str,
    turn: Turn<'_>,
) -> (Option<AgentEvent>, Result<Outcome, AgentError>) {
    let remark = |words: &str| Some(AgentEvent::Remark(words.to_owned()));
    if turn.stopped {
        return (None, Err(AgentError::cancelled()));
    }
    if let Some(text) = turn.broken {
        return (None, Err(of_text(text)));
    }
    match reason {
        "end_turn" => (None, Ok(Outcome::Done)),
        "max_tokens" => (
            remark("the answer was cut: it reached the agent's token limit"),
            Ok(Outcome::Done),
        ),
        "max_turn_requests" => (
            remark("the agent stopped: it reached its limit of requests in one turn"),
            Ok(Outcome::Done),
        ),
        "refusal" => (
            None,
            Err(AgentError::new(
                FailureKind::Refused,
                "the agent does not want to answer this",
            )),
        ),
        // Some agents end the turn when a tool is denied, as if it had been cancelled.
        "cancelled" if turn.refused => (
            remark("the agent stopped because a tool was refused"),
            Ok(Outcome::Done),
        ),
        "cancelled" => (None, Err(AgentError::cancelled())),
        other => (
            remark(&format!(
                "the agent stopped for a reason that is not known here: {other}"
            )),
            Ok(Outcome::Done),
        ),
    }
}

/// Adds the agent's login methods as a hint to an authentication failure.
pub(super) fn with_logins(error: AgentError, methods: &Value) -> AgentError {
    if error.kind != FailureKind::Auth {
        return error;
    }
    let methods = methods.as_array().map(Vec::as_slice).unwrap_or_default();
    let named: Vec<String> = methods
        .iter()
        .filter_map(|method| {
            let name = method["name"].as_str().or(method["id"].as_str())?;
            Some(match method["description"].as_str() {
                Some(more) if !more.is_empty() && more != name => format!("{name} ({more})"),
                _ => name.to_owned(),
            })
        })
        .collect();
    match named[..] {
        [] => error.hint("log in with the agent's own program, or set its key in `env`"),
        _ => error.hint(format!("the agent offers: {}", named.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(code: i64, message: &str, data: Value) -> FailureKind {
        of_error(code, message, &data).kind
    }

    #[test]
    fn errors_are_told_apart_by_code_kind_and_words() {
        use FailureKind::*;
        assert_eq!(kind(-32000, "Authentication required", json!(null)), Auth);
        assert_eq!(kind(429, "slow down", json!(null)), RateLimit);
        assert_eq!(
            kind(-32603, "API Error: 400 no", json!({"errorKind": "unknown"})),
            Failed
        );
        assert_eq!(
            kind(-32603, "x", json!({"errorKind": "server_error"})),
            Unavailable
        );
        assert_eq!(
            kind(-32603, "x", json!({"errorKind": "rate_limit"})),
            RateLimit
        );
        assert_eq!(
            kind(-32603, "x", json!({"errorName": "ContextOverflowError"})),
            TooLong
        );
        assert_eq!(kind(-32603, "Prompt is too long", json!(null)), TooLong);
        assert_eq!(kind(-32603, "API Error: 401 no", json!(null)), Auth);
        assert_eq!(
            kind(-32603, "at 127.0.0.1:50301 went wrong", json!(null)),
            Failed
        );
    }

    #[test]
    fn the_cause_is_taken_out_of_its_wrapping() {
        let message = |message: &str, data: Value| of_error(0, message, &data).message;
        assert_eq!(
            message("Internal error: no such model", json!(null)),
            "no such model"
        );
        assert_eq!(
            message(r#"{"error":{"code":400,"message":"bad"}}"#, json!(null)),
            "bad"
        );
        assert_eq!(
            message("Internal error", json!({"details": "no session"})),
            "no session"
        );
        assert_eq!(
            message("broke", json!({"details": "on line 3"})),
            "broke: on line 3"
        );
    }

    #[test]
    fn each_end_has_its_outcome() {
        let turn = Turn::default();
        assert_eq!(stop("end_turn", turn), (None, Ok(Outcome::Done)));
        assert!(matches!(
            stop("max_tokens", turn),
            (Some(AgentEvent::Remark(_)), Ok(_))
        ));
        let failed = |reason, turn| stop(reason, turn).1.map_err(|error| error.kind);
        assert_eq!(failed("refusal", turn), Err(FailureKind::Refused));
        assert_eq!(failed("cancelled", turn), Err(FailureKind::Cancelled));
        let refused = Turn {
            refused: true,
            ..turn
        };
        assert_eq!(failed("cancelled", refused), Ok(Outcome::Done));
        let stopped = Turn {
            stopped: true,
            ..refused
        };
        assert_eq!(failed("end_turn", stopped), Err(FailureKind::Cancelled));
        let broken = Turn {
            broken: Some("429 Too Many Requests"),
            ..turn
        };
        assert_eq!(failed("end_turn", broken), Err(FailureKind::RateLimit));
    }

    #[test]
    fn a_login_that_is_wanted_is_named() {
        let methods = json!([{"id": "a", "name": "API Key"}, {"id": "b", "name": "Log in", "description": "in a browser"}]);
        let error = with_logins(of_error(-32000, "no", &Value::Null), &methods);
        assert_eq!(
            error.hint.as_deref(),
            Some("the agent offers: API Key; Log in (in a browser)")
        );
        let other = with_logins(of_error(0, "broke", &Value::Null), &methods);
        assert_eq!(other.hint, None);
    }
}
