//! Successful answers.

use serde_json::json;
use tertulia_agents::api::{Api, Key, Provider, Thinking};
use tertulia_agents::{
    Agent, AgentEvent, AgentRequest, FailureKind, Outcome, PromptMessage, Readiness,
};
use tertulia_core::entry::{Role, ToolCall, Usage};

use super::scripts::{call, end, signed_thought, stop, words};
use super::server::{Reply, Server};
use super::{KEY, agent, ask, question, wait_for};

/// Characters of three and four bytes, joined ones, and one that reverses the writing direction.
const TEXT: [&str; 4] = [
    "你好，世界 ",
    "👩‍👩‍👧 and ",
    "🎉\u{202e}",
    "\n\"quoted\" \\ end",
];

#[test]
fn each_provider_is_heard_to_the_last_character() {
    for provider in Provider::ALL {
        let stream = words(provider, &TEXT) + &stop(provider);
        let server = Server::play(vec![Reply::stream(stream)]);
        let answer = ask(&agent(provider, &server), &question("hi"));
        assert_eq!(answer.result, Ok(Outcome::Done), "{provider:?}");
        assert_eq!(answer.text(), TEXT.concat(), "{provider:?}");
        let usage = Usage {
            estimated: false,
            input: 11,
            output: 7,
            ..Usage::default()
        };
        let used = answer
            .events
            .iter()
            .filter(|event| **event == AgentEvent::Usage(usage));
        assert_eq!(used.count(), 1, "{provider:?} {:?}", answer.events);
    }
}

#[test]
fn cached_tokens_are_counted_as_part_of_the_input() {
    for (provider, plain, cached, expected) in [
        (
            Provider::Anthropic,
            "\"input_tokens\":11",
            "\"input_tokens\":4,\"cache_read_input_tokens\":5,\"cache_creation_input_tokens\":2",
            (5, 2),
        ),
        (
            Provider::OpenAi,
            "\"prompt_tokens\":11",
            "\"prompt_tokens\":11,\"prompt_tokens_details\":{\"cached_tokens\":5}",
            (5, 0),
        ),
        (
            Provider::Gemini,
            "\"promptTokenCount\":11",
            "\"promptTokenCount\":11,\"cachedContentTokenCount\":5",
            (5, 0),
        ),
    ] {
        let stream = words(provider, &TEXT) + &stop(provider);
        assert!(stream.contains(plain), "{provider:?} {stream}");
        let server = Server::play(vec![Reply::stream(stream.replace(plain, cached))]);
        let answer = ask(&agent(provider, &server), &question("hi"));
        let usage = Usage {
            cache_read: expected.0,
            cache_written: expected.1,
            ..Usage::told(11, 7)
        };
        assert!(
            answer.events.contains(&AgentEvent::Usage(usage)),
            "{provider:?} {:?}",
            answer.events
        );
    }
}

#[test]
fn each_provider_is_asked_in_its_way() {
    for (provider, line, header) in [
        (Provider::Anthropic, "POST /v1/messages ", "x-api-key: "),
        (
            Provider::OpenAi,
            "POST /v1/chat/completions ",
            "authorization: Bearer ",
        ),
        (
            Provider::Gemini,
            "POST /v1beta/models/some-model:streamGenerateContent?alt=sse ",
            "x-goog-api-key: ",
        ),
        (Provider::Ollama, "POST /api/chat ", ""),
    ] {
        let server = Server::play(vec![Reply::stream(
            words(provider, &["x"]) + &stop(provider),
        )]);
        let api = Api {
            system: Some("be brief".to_owned()),
            max_tokens: Some(99),
            ..agent(provider, &server)
        };
        ask(&api, &question("hi")).result.unwrap();
        let request = &server.requests()[0];
        assert!(request.line.starts_with(line), "{}", request.line);
        if !header.is_empty() {
            let header = format!("{header}{KEY}").to_lowercase();
            assert!(
                request.headers.to_lowercase().contains(&header),
                "{provider:?}"
            );
        }
        let body = request.body.to_string();
        for part in ["be brief", "hi", "glob", "finds files", "99"] {
            assert!(body.contains(part), "{provider:?} lacks {part}: {body}");
        }
    }
}

#[test]
fn a_name_that_ends_like_a_level_stays_whole() {
    for (provider, model) in [
        (Provider::OpenAi, "qwen-max"),
        (Provider::OpenAi, "a::b-low"),
        (Provider::Anthropic, "other-high"),
        (Provider::Gemini, "gemini-2.5-medium"),
        (Provider::Ollama, "local-max"),
    ] {
        let server = Server::play(vec![Reply::stream(
            words(provider, &["x"]) + &stop(provider),
        )]);
        let api = Api {
            model: Some(model.to_owned()),
            ..agent(provider, &server)
        };
        ask(&api, &question("hi")).result.unwrap();
        let request = &server.requests()[0];
        let asked = format!("{} {}", request.line, request.body);
        assert!(asked.contains(model), "{provider:?} {asked}");
        for level in ["reasoning_effort", "thinkingBudget", "budget_tokens"] {
            assert!(!asked.contains(level), "{provider:?} {asked}");
        }
    }
}

#[test]
fn thinking_is_asked_for_in_each_providers_words() {
    for (provider, pointer, value) in [
        (Provider::Anthropic, "/thinking/budget_tokens", json!(1024)),
        (Provider::OpenAi, "/reasoning_effort", json!("low")),
        (
            Provider::Gemini,
            "/generationConfig/thinkingConfig/thinkingBudget",
            json!(1000),
        ),
        (Provider::Ollama, "/think", json!("low")),
    ] {
        let server = Server::play(vec![Reply::stream(
            words(provider, &["x"]) + &stop(provider),
        )]);
        let api = Api {
            thinking: Some(Thinking::Low),
            ..agent(provider, &server)
        };
        ask(&api, &question("hi")).result.unwrap();
        let body = &server.requests()[0].body;
        assert_eq!(body.pointer(pointer), Some(&value), "{provider:?} {body}");
    }
}

/// Returns the conversation after these calls were run.
fn go_on(mut talk: AgentRequest, said: &str, outcome: Outcome, result: &str) -> AgentRequest {
    let Outcome::Calls { calls, memo } = outcome else {
        panic!("no calls: {outcome:?}");
    };
    let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
    talk.messages.push(PromptMessage {
        calls,
        memo,
        ..PromptMessage::plain(Role::Assistant, "mine", said)
    });
    for id in ids {
        talk.messages.push(PromptMessage {
            answers: Some(id),
            ..PromptMessage::plain(Role::Tool, "glob", result)
        });
    }
    talk
}

fn calls_of(outcome: &Outcome) -> &[ToolCall] {
    match outcome {
        Outcome::Calls { calls, .. } => calls,
        Outcome::Done => &[],
    }
}

#[test]
fn tools_are_called_round_after_round() {
    for provider in Provider::ALL {
        let arguments = json!({"pattern": "世界/*.rs"});
        let round = || {
            // The server gives the same id twice, as careless ones do.
            let stream =
                words(provider, &["looking "]) + &call(provider, "same", "glob", &arguments);
            Reply::stream(stream + &end(provider, "tool_calls"))
        };
        let last = Reply::stream(words(provider, &["done"]) + &stop(provider));
        let server = Server::play(vec![round(), round(), last]);
        let api = agent(provider, &server);
        let mut talk = question("look");
        let mut ids = Vec::new();
        for result in ["first result", "second result"] {
            let answer = ask(&api, &talk);
            assert_eq!(answer.text(), "looking ");
            let outcome = answer.result.unwrap();
            let calls = calls_of(&outcome);
            assert_eq!(calls.len(), 1, "{provider:?}");
            assert_eq!((&*calls[0].name, &calls[0].arguments), ("glob", &arguments));
            ids.push(calls[0].id.clone());
            talk = go_on(talk, "looking ", outcome, result);
        }
        assert_ne!(ids[0], ids[1], "{provider:?}");
        assert_eq!(ask(&api, &talk).result, Ok(Outcome::Done), "{provider:?}");
        let body = server.requests()[2].body.to_string();
        for part in ["first result", "second result", "世界/*.rs"] {
            assert!(body.contains(part), "{provider:?} lacks {part}: {body}");
        }
        // Gemini gets its signature back with the call.
        let signatures = body.matches("gemini-signature").count();
        assert_eq!(
            signatures,
            if provider == Provider::Gemini { 2 } else { 0 },
            "{body}"
        );
        assert!(
            !body.contains("\"id\":\"tool-") || provider != Provider::Gemini,
            "{body}"
        );
    }
}

#[test]
fn signed_thoughts_go_back_with_the_calls() {
    let provider = Provider::Anthropic;
    let stream = signed_thought("hmm, 让我想", "c2lnbmVk")
        + &words(provider, &["so"])
        + &call(provider, "toolu_1", "glob", &json!({}))
        + &end(provider, "tool_use");
    let last = words(provider, &["done"]) + &stop(provider);
    let server = Server::play(vec![Reply::stream(stream), Reply::stream(last)]);
    let api = agent(provider, &server);
    let talk = question("look");
    let answer = ask(&api, &talk);
    let thought = AgentEvent::Reasoning("hmm, 让我想".to_owned());
    assert!(answer.events.contains(&thought), "{:?}", answer.events);
    let talk = go_on(talk, "so", answer.result.unwrap(), "nothing");
    ask(&api, &talk).result.unwrap();
    let messages = &server.requests()[1].body["messages"];
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "thinking", "thinking": "hmm, 让我想", "signature": "c2lnbmVk"},
            {"type": "text", "text": "so"},
            {"type": "tool_use", "id": "toolu_1", "name": "glob", "input": {}},
        ])
    );
    assert_eq!(messages[2]["content"][0]["tool_use_id"], "toolu_1");
}

#[test]
fn calls_without_a_number_and_streams_without_a_last_line_are_heard() {
    let call = json!({"id": "a", "type": "function", "function": {"name": "glob", "arguments": "{\"pattern\": \"*\"}"}});
    let delta = json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": null}]});
    let last = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    let stream = format!("data: {delta}\n\ndata: {last}\n\n");
    let server = Server::play(vec![Reply::stream(stream)]);
    let outcome = ask(&agent(Provider::OpenAi, &server), &question("look")).result;
    let outcome = outcome.unwrap();
    assert_eq!(calls_of(&outcome)[0].arguments, json!({"pattern": "*"}));
}

/// LiteLLM sends the usage together with the last text.
#[test]
fn usage_beside_words_is_read() {
    let usage = json!({"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15});
    let last =
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage});
    let stream = words(Provider::OpenAi, &["hi"]) + &format!("data: {last}\n\ndata: [DONE]\n\n");
    let server = Server::play(vec![Reply::stream(stream)]);
    let answer = ask(&agent(Provider::OpenAi, &server), &question("hi"));
    let told = AgentEvent::Usage(Usage::told(12, 3));
    assert!(answer.events.contains(&told), "{:?}", answer.events);
}

#[test]
fn a_limit_that_was_reached_is_told_and_a_cut_call_is_not_run() {
    for (provider, reason) in [
        (Provider::Anthropic, "max_tokens"),
        (Provider::OpenAi, "length"),
        (Provider::Gemini, "MAX_TOKENS"),
        (Provider::Ollama, "length"),
    ] {
        let mut stream = words(provider, &["so far"]);
        if provider == Provider::OpenAi {
            let function = json!({"name": "glob", "arguments": "{\"pattern\": \"sr"});
            let call = json!({"index": 0, "id": "a", "function": function});
            let delta = json!({"choices": [{"delta": {"tool_calls": [call]}}]});
            stream += &format!("data: {delta}\n\n");
        }
        let server = Server::play(vec![Reply::stream(stream + &end(provider, reason))]);
        let answer = ask(&agent(provider, &server), &question("hi"));
        assert_eq!(answer.result, Ok(Outcome::Done), "{provider:?}");
        let told = answer.events.iter().any(|event| {
            matches!(event, AgentEvent::Remark(words) if words.contains("stops here after 7 tokens"))
        });
        assert!(told, "{provider:?} {:?}", answer.events);
    }
}

#[test]
fn gemini_is_heard_through_frames_that_hold_numbers_only() {
    let provider = Provider::Gemini;
    let numbers = json!({"usageMetadata": {"promptTokenCount": 3}, "modelVersion": "x"});
    let thoughts = json!([{"text": "one ", "thought": true}, {"text": "two", "thought": true}]);
    let thoughts = json!({"candidates": [{"content": {"parts": thoughts}}]});
    let stream = format!("data: {numbers}\n\ndata: {thoughts}\n\n")
        + &words(provider, &["x"])
        + &stop(provider);
    let server = Server::play(vec![Reply::stream(stream)]);
    let answer = ask(&agent(provider, &server), &question("hi"));
    assert_eq!(answer.result, Ok(Outcome::Done));
    let thought: String = answer
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Reasoning(words) => Some(words.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(thought, "one two");
}

#[test]
fn ollama_is_found_with_the_models_it_has() {
    let provider = Provider::Ollama;
    let tags = Reply::plain(
        200,
        r#"{"models": [{"name": "qwen3:8b"}, {"name": "other"}]}"#,
    );
    let server = Server::play(vec![
        Reply::plain(200, r#"{"version": "0.12.3"}"#),
        tags.clone(),
        Reply::stream(words(provider, &["x"]) + &stop(provider)),
        tags,
        Reply::plain(200, r#"{"models": []}"#),
    ]);
    let api = || Api {
        model: None,
        ..agent(provider, &server)
    };
    let asked = api();
    let ready = Readiness::Ready(Some("0.12.3".to_owned()));
    assert_eq!(wait_for(asked.readiness()), ready);
    assert_eq!(asked.model(), None);
    ask(&asked, &question("hi")).result.unwrap();
    assert_eq!(asked.model(), Some("qwen3:8b"));
    assert_eq!(server.requests()[2].body["model"], "qwen3:8b");
    assert_eq!(wait_for(asked.models()).unwrap(), ["qwen3:8b", "other"]);
    let answer = ask(&api(), &question("hi"));
    assert_eq!(answer.error().kind, FailureKind::Unavailable);
    assert!(
        answer
            .error()
            .hint
            .as_ref()
            .unwrap()
            .contains("ollama pull")
    );
    let url = server.url();
    drop(server);
    let gone = Api {
        base_url: Some(url.clone()),
        ..Api::new("mine", provider, Key::NotNeeded)
    };
    let missing = format!("no Ollama answers at {url}");
    assert_eq!(wait_for(gone.readiness()), Readiness::NotReady(missing));
}

#[test]
fn models_are_listed() {
    for (provider, list, line) in [
        (
            Provider::Anthropic,
            r#"{"data": [{"id": "a"}]}"#,
            "GET /v1/models",
        ),
        (
            Provider::OpenAi,
            r#"{"data": [{"id": "a"}]}"#,
            "GET /v1/models",
        ),
        (
            Provider::Gemini,
            r#"{"models": [{"name": "models/a"}]}"#,
            "GET /v1beta/models",
        ),
    ] {
        let server = Server::play(vec![Reply::plain(200, list), Reply::plain(200, "<html>")]);
        let api = agent(provider, &server);
        assert_eq!(wait_for(api.models()).unwrap(), ["a"]);
        assert!(server.requests()[0].line.starts_with(line));
        assert!(server.requests()[0].headers.contains(KEY));
        let error = wait_for(api.models()).unwrap_err();
        assert_eq!(error.kind, FailureKind::Protocol);
    }
}

#[test]
fn a_server_that_wants_no_key_is_sent_none() {
    let provider = Provider::OpenAi;
    let server = Server::play(vec![Reply::stream(
        words(provider, &["x"]) + &stop(provider),
    )]);
    let api = Api {
        key: Key::NotNeeded,
        ..agent(provider, &server)
    };
    ask(&api, &question("hi")).result.unwrap();
    let headers = server.requests()[0].headers.to_lowercase();
    assert!(!headers.contains("authorization"), "{headers}");
}
