//! OpenAI-compatible servers and Ollama with habits of their own: models without tools, thoughts in
//! the text, errors and calls in unusual forms.

use serde_json::{Value, json};
use tertulia_agents::api::Provider;
use tertulia_agents::{AgentEvent, FailureKind, Outcome};

use super::scripts::{end, stop, words};
use super::server::{Reply, Server};
use super::{Answer, agent, ask, question};

fn remarks(answer: &Answer) -> Vec<&str> {
    let remarks = answer.events.iter().filter_map(|event| match event {
        AgentEvent::Remark(words) => Some(words.as_str()),
        _ => None,
    });
    remarks.collect()
}

fn reasoning(answer: &Answer) -> String {
    let thoughts = answer.events.iter().filter_map(|event| match event {
        AgentEvent::Reasoning(words) => Some(words.as_str()),
        _ => None,
    });
    thoughts.collect()
}

#[test]
fn a_model_without_tools_is_asked_without_them() {
    for (provider, status, refusal) in [
        (
            Provider::Ollama,
            400,
            r#"{"error": "registry.ollama.ai/library/gemma:2b does not support tools"}"#,
        ),
        (
            Provider::OpenAi,
            400,
            r#"{"error": {"message": "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}}"#,
        ),
        (
            Provider::OpenAi,
            404,
            r#"{"error": {"message": "No endpoints found that support tool use.", "code": 404}}"#,
        ),
    ] {
        let stream = Reply::stream(words(provider, &["yes"]) + &stop(provider));
        let server = Server::play(vec![Reply::plain(status, refusal), stream.clone(), stream]);
        let api = agent(provider, &server);
        let mut question = question("hi");
        question.system = Some("Tools: glob.".to_owned());
        let answer = ask(&api, &question);
        assert_eq!(answer.result, Ok(Outcome::Done), "{provider:?}");
        assert_eq!(answer.text(), "yes", "{provider:?}");
        let said = ["some-model cannot use tools: asked again without them"];
        assert_eq!(remarks(&answer), said, "{provider:?}");
        // Once it is known, it is neither tried nor said again.
        let answer = ask(&api, &question);
        assert_eq!(remarks(&answer), [""; 0], "{provider:?}");
        let requests = server.requests();
        let has_tools: Vec<bool> = requests
            .iter()
            .map(|request| request.body.get("tools").is_some())
            .collect();
        assert_eq!(has_tools, [true, false, false], "{provider:?}");
        let told = requests[1].body.to_string();
        assert!(told.contains("You cannot use tools"), "{told}");
    }
}

#[test]
fn thoughts_in_the_text_are_reasoning() {
    for provider in [Provider::OpenAi, Provider::Ollama] {
        let pieces = ["<thi", "nk>\nhm", "?</", "think>\n", "\nyes"];
        let stream = words(provider, &pieces) + &stop(provider);
        let server = Server::play(vec![Reply::stream(stream)]);
        let answer = ask(&agent(provider, &server), &question("hi"));
        assert_eq!(answer.result, Ok(Outcome::Done), "{provider:?}");
        assert_eq!(answer.text(), "yes", "{provider:?}");
        assert_eq!(reasoning(&answer), "\nhm?", "{provider:?}");
    }
    let detail = json!([{"type": "reasoning.text", "text": "hm?"}]);
    let delta = json!({"choices": [{"delta": {"content": "", "reasoning_details": detail}}]});
    let stream = format!("data: {delta}\n\n") + &words(Provider::OpenAi, &["yes"]);
    let server = Server::play(vec![Reply::stream(stream + &stop(Provider::OpenAi))]);
    let answer = ask(&agent(Provider::OpenAi, &server), &question("hi"));
    assert_eq!(
        (answer.text(), reasoning(&answer)),
        ("yes".to_owned(), "hm?".to_owned())
    );
}

#[test]
fn an_error_event_ends_the_answer() {
    let error = "event: error\ndata: {\"message\": \"backend died\"}\n\ndata: [DONE]\n\n";
    let stream = words(Provider::OpenAi, &["half "]) + error;
    let server = Server::play(vec![Reply::stream(stream)]);
    let answer = ask(&agent(Provider::OpenAi, &server), &question("hi"));
    assert_eq!(answer.text(), "half ");
    assert_eq!(answer.error().kind, FailureKind::Unavailable);
    assert!(
        answer.error().message.contains("backend died"),
        "{:?}",
        answer.error()
    );
}

fn calls(pieces: &[Value], reason: &str) -> Answer {
    let frames: String = pieces
        .iter()
        .map(|call| {
            format!(
                "data: {}\n\n",
                json!({"choices": [{"delta": {"tool_calls": [call]}}]})
            )
        })
        .collect();
    let server = Server::play(vec![Reply::stream(frames + &end(Provider::OpenAi, reason))]);
    ask(&agent(Provider::OpenAi, &server), &question("hi"))
}

fn requested(answer: &Answer) -> Vec<(&str, &Value)> {
    match &answer.result {
        Ok(Outcome::Calls { calls, .. }) => calls
            .iter()
            .map(|call| (call.id.as_str(), &call.arguments))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn calls_with_one_index_are_several() {
    let call = |id: &str, arguments: Value| json!({"index": 0, "id": id, "function": {"name": "glob", "arguments": arguments}});
    let answer = calls(
        &[
            call("a", json!("{\"pattern\":\"x\"}")),
            call("b", json!("{}")),
            call("c", json!({"pattern": "y"})),
        ],
        "tool_calls",
    );
    let (x, y) = (json!({"pattern": "x"}), json!({"pattern": "y"}));
    assert_eq!(
        requested(&answer),
        [("a", &x), ("b", &json!({})), ("c", &y)]
    );
}

#[test]
fn a_call_that_was_cut_off_is_named() {
    let cut = json!({"index": 0, "id": "a", "function": {"name": "glob", "arguments": "{\"patt"}});
    let answer = calls(&[cut], "length");
    let error = answer.error();
    assert_eq!(error.kind, FailureKind::Failed);
    assert!(
        error.message.contains("in the middle of a call of `glob`"),
        "{error:?}"
    );
    assert!(
        error.hint.as_ref().unwrap().contains("max_tokens"),
        "{error:?}"
    );
}

#[test]
fn the_words_of_a_server_are_repeated() {
    let detail = r#"{"detail": [{"loc": ["body", "tools", 0], "msg": "Field required", "type": "missing"}]}"#;
    let server = Server::play(vec![Reply::plain(422, detail)]);
    let answer = ask(&agent(Provider::OpenAi, &server), &question("hi"));
    let words = "body.tools.0: Field required";
    assert!(
        answer.error().message.contains(words),
        "{:?}",
        answer.error()
    );
    let page = Server::play(vec![Reply::plain(200, "<html>\n\nLog in\n\n</html>\n")]);
    let answer = ask(&agent(Provider::OpenAi, &page), &question("hi"));
    let error = answer.error();
    let words = "sent no stream of events: an error, a web page or a whole answer";
    assert!(error.message.contains(words), "{error:?}");
    let hint = error.hint.as_ref().unwrap();
    assert!(
        hint.contains("curl") && hint.contains("/chat/completions"),
        "{hint}"
    );
}
