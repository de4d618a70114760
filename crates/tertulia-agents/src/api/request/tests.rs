//! Tests of requests to providers.

use super::*;

fn said(role: Role, words: &str) -> PromptMessage {
    PromptMessage::plain(role, "somebody", words)
}

fn calling(words: &str, ids: &[&str]) -> PromptMessage {
    let calls = ids.iter().map(|id| ToolCall {
        id: (*id).to_owned(),
        name: "glob".to_owned(),
        arguments: json!({"pattern": "*"}),
    });
    PromptMessage {
        calls: calls.collect(),
        ..said(Role::Assistant, words)
    }
}

fn result(id: &str, words: &str) -> PromptMessage {
    PromptMessage {
        answers: Some(id.to_owned()),
        ..said(Role::Tool, words)
    }
}

/// Formats each message in one line: its role and its parts.
fn lines(provider: Provider, messages: Vec<PromptMessage>) -> Vec<String> {
    let question = AgentRequest {
        messages,
        ..AgentRequest::default()
    };
    let request = build(provider, None, &question, true);
    request.messages.iter().map(line).collect()
}

fn line(message: &ChatMessage) -> String {
    let parts = message.content.iter().map(|part| match part {
        ContentPart::Text(words) => words.replace("\n\n", "/"),
        ContentPart::ToolCall(call) => format!("call {}", call.call_id),
        ContentPart::ToolResponse(result) => {
            format!("result {}={}", result.call_id, result.content)
        }
        ContentPart::ThoughtSignature(signature) => format!("signature {signature}"),
        other => format!("{other:?}"),
    });
    let parts: Vec<String> = parts.collect();
    format!("{}: {}", message.role, parts.join(", ")).to_lowercase()
}

#[test]
fn a_call_without_a_result_gets_one() {
    let talk = vec![
        said(Role::User, "a"),
        calling("b", &["one", "two"]),
        result("two", "found"),
        said(Role::User, "c"),
    ];
    let told = [
        "user: a",
        "assistant: b, call one, call two",
        "tool: result one=(the result of this call was not recorded.), result two=found",
        "user: c",
    ];
    assert_eq!(lines(Provider::OpenAi, talk), told);
}

#[test]
fn a_talk_is_mended_where_providers_would_refuse_it() {
    use Provider::{Anthropic, OpenAi};
    use Role::{Assistant, User};
    for (provider, talk, told) in [
        (
            OpenAi,
            vec![
                said(User, "a"),
                said(User, "b"),
                said(Assistant, "c"),
                said(Assistant, "d"),
                said(User, "e"),
            ],
            vec!["user: a/b", "assistant: c/d", "user: e"],
        ),
        (
            OpenAi,
            vec![
                said(User, "a"),
                said(Assistant, " "),
                said(User, ""),
                said(User, "b"),
            ],
            vec!["user: a/b"],
        ),
        (
            Anthropic,
            vec![said(Assistant, "a"), said(User, "b")],
            vec![
                "user: (what was said before is not shown.)",
                "assistant: a",
                "user: b",
            ],
        ),
        (
            OpenAi,
            vec![said(Assistant, "a"), said(User, "b")],
            vec!["assistant: a", "user: b"],
        ),
        (
            OpenAi,
            vec![said(User, "a"), said(Assistant, "b")],
            vec!["user: a", "assistant: b", "user: go on."],
        ),
        (OpenAi, vec![], vec!["user: go on."]),
        (
            OpenAi,
            vec![result("cut", "lost"), said(User, "a")],
            vec!["user: a"],
        ),
    ] {
        assert_eq!(lines(provider, talk), told);
    }
}

#[test]
fn results_stand_where_each_provider_looks_for_them() {
    let talk = || {
        vec![
            said(Role::User, "look"),
            calling("", &["a", "b"]),
            result("a", "1"),
            result("b", "2"),
            said(Role::User, "and?"),
        ]
    };
    assert_eq!(
        lines(Provider::Anthropic, talk()),
        [
            "user: look",
            "assistant: call a, call b",
            "user: result a=1, result b=2, and?"
        ]
    );
    assert_eq!(
        lines(Provider::OpenAi, talk()),
        [
            "user: look",
            "assistant: call a, call b",
            "tool: result a=1, result b=2",
            "user: and?"
        ]
    );
    assert_eq!(
        lines(Provider::Ollama, talk()),
        [
            "user: look",
            "assistant: call a, call b",
            "tool: result a=1",
            "tool: result b=2",
            "user: and?"
        ]
    );
}

#[test]
fn ids_of_other_providers_are_rewritten() {
    let ours = "tool-0123456789abcdef";
    let talk = || {
        vec![
            said(Role::User, "x"),
            calling("", &["call#glob#0"]),
            result("call#glob#0", "1"),
            calling("", &["call#glob#0"]),
            result("call#glob#0", "2"),
            calling("", &[ours]),
            result(ours, "3"),
        ]
    };
    let anthropic = lines(Provider::Anthropic, talk()).join("\n");
    assert!(!anthropic.contains('#'), "{anthropic}");
    assert!(anthropic.contains("result call_glob_0=1"), "{anthropic}");
    assert!(anthropic.contains("result call_glob_0_1=2"), "{anthropic}");
    let gemini = lines(Provider::Gemini, talk()).join("\n");
    assert!(gemini.contains("call call#glob#2"), "{gemini}");
    assert!(gemini.contains("result call#glob#2=3"), "{gemini}");
}

#[test]
fn what_instructs_goes_into_the_system_prompt() {
    let question = AgentRequest {
        messages: vec![said(Role::System, "be kind"), said(Role::User, "hi")],
        ..AgentRequest::default()
    };
    let request = build(Provider::OpenAi, Some("be brief"), &question, true);
    assert_eq!(request.system.as_deref(), Some("be brief\n\nbe kind"));
    assert_eq!(request.messages.len(), 1);
    assert!(request.tools.is_none());
}

/// Returns where the request has marks: system prompt, tools, and messages by their number.
fn marks(request: &ChatRequest) -> Vec<String> {
    let tools = request.tools.iter().flatten();
    let tools = tools.filter(|tool| tool.cache_control.is_some());
    let messages = request.messages.iter().enumerate();
    let messages = messages.filter(|(_, message)| {
        let options = message.options.as_ref();
        options.is_some_and(|options| options.cache_control.is_some())
    });
    tools
        .map(|_| "tool".to_owned())
        .chain(messages.map(|(at, message)| format!("{} {at}", message.role).to_lowercase()))
        .collect()
}

#[test]
fn anthropic_is_told_what_to_cache() {
    let question = AgentRequest {
        messages: vec![
            said(Role::User, "a"),
            calling("", &["1"]),
            result("1", "x"),
            said(Role::Assistant, "b"),
            said(Role::User, "c"),
        ],
        tools: vec![ToolSpec {
            name: "glob".to_owned(),
            description: String::new(),
            parameters: json!({}),
        }],
        system: Some("s".to_owned()),
        ..AgentRequest::default()
    };
    let request = build(Provider::Anthropic, Some("s"), &question, true);
    assert_eq!(marks(&request), ["tool", "system 0", "user 3", "user 5"]);
    let other = build(Provider::OpenAi, Some("s"), &question, true);
    assert_eq!(marks(&other), [""; 0]);
    // A request for a summary is not followed by another one.
    let summary = AgentRequest {
        messages: vec![said(Role::User, "a")],
        ..AgentRequest::default()
    };
    let request = build(Provider::Anthropic, Some("own text"), &summary, true);
    assert_eq!(marks(&request), [""; 0]);
}

#[test]
fn a_memo_is_sent_back_as_it_came() {
    let mut calls = calling("said", &["a"]);
    let parts = vec![
        ContentPart::ThoughtSignature("s".to_owned()),
        ContentPart::Text("said".to_owned()),
        ContentPart::ToolCall(GenaiCall {
            call_id: "a".to_owned(),
            fn_name: "glob".to_owned(),
            fn_arguments: json!({}),
            thought_signatures: None,
        }),
    ];
    let content = serde_json::to_value(MessageContent::from_parts(parts)).unwrap();
    calls.memo = Some(json!({"provider": "anthropic", "content": content}));
    let talk = vec![said(Role::User, "x"), calls, result("a", "1")];
    assert_eq!(
        lines(Provider::Anthropic, talk.clone()),
        [
            "user: x",
            "assistant: signature s, said, call a",
            "user: result a=1"
        ]
    );
    assert_eq!(
        lines(Provider::OpenAi, talk),
        ["user: x", "assistant: said, call a", "tool: result a=1"]
    );
}

#[test]
fn arguments_are_sent_as_objects() {
    assert_eq!(object(&Value::Null), json!({}));
    assert_eq!(object(&json!("x")), json!({"arguments": "x"}));
    assert_eq!(object(&json!({"a": 1})), json!({"a": 1}));
}
