//! Converts a conversation into a provider's request. Providers refuse what a conversation may
//! contain: two messages of one role in a row, a message without text, an assistant's message
//! first. No I/O.

use std::collections::{HashMap, HashSet};

use genai::chat::{
    ChatMessage, ChatRequest, ChatRole, ContentPart, MessageContent, Tool, ToolCall as GenaiCall,
    ToolResponse,
};
use serde_json::{Map, Value, json};

use super::calls::{is_ours, remembered};
use super::provider::Provider;
use crate::{AgentRequest, PromptMessage, ToolSpec};
use tertulia_core::entry::{Role, ToolCall};

/// Replaces the messages before an assistant's message that would come first.
const BEFORE: &str = "(What was said before is not shown.)";
/// Stands for the result of a call that has none: imported sessions may end in the middle of one.
const NO_RESULT: &str = "(The result of this call was not recorded.)";
/// Replaces the prompt if the last message is the assistant's.
const GO_ON: &str = "Go on.";

/// Builds the provider's request.
pub(super) fn build(
    provider: Provider,
    system: Option<&str>,
    question: &AgentRequest,
) -> ChatRequest {
    let mut draft = Draft {
        provider,
        messages: Vec::new(),
        systems: system
            .into_iter()
            .chain(question.part.as_ref().map(|part| part.system.as_str()))
            .map(str::to_owned)
            .collect(),
        open: HashMap::new(),
        used: HashSet::new(),
        answered: question
            .messages
            .iter()
            .filter_map(|said| said.answers.clone())
            .collect(),
    };
    for said in &question.messages {
        match said.role {
            Role::System => draft.systems.push(said.content.clone()),
            Role::User => draft.user(&said.content),
            Role::Assistant => draft.assistant(said),
            Role::Tool => draft.result(said),
        }
    }
    let mut request = ChatRequest::new(draft.whole());
    draft.systems.retain(|words| !words.trim().is_empty());
    if !draft.systems.is_empty() {
        request = request.with_system(draft.systems.join("\n\n"));
    }
    if !question.tools.is_empty() {
        request = request.with_tools(question.tools.iter().map(tool));
    }
    request
}

fn tool(spec: &ToolSpec) -> Tool {
    Tool::new(spec.name.clone())
        .with_description(spec.description.clone())
        .with_schema(spec.parameters.clone())
}

/// A call as the provider knows it.
struct Known {
    id: String,
    name: String,
}

struct Draft {
    provider: Provider,
    messages: Vec<ChatMessage>,
    systems: Vec<String>,
    /// Calls so far, by tertulia's ids.
    open: HashMap<String, Known>,
    /// Ids that the provider has seen.
    used: HashSet<String>,
    /// Calls that have a result, by tertulia's ids.
    answered: HashSet<String>,
}

impl Draft {
    fn last(&mut self, role: &ChatRole) -> Option<&mut MessageContent> {
        let last = self.messages.last_mut()?;
        (last.role == *role).then_some(&mut last.content)
    }

    fn user(&mut self, words: &str) {
        if words.trim().is_empty() {
            return;
        }
        match self.last(&ChatRole::User) {
            Some(content) => add_words(content, words),
            None => self.messages.push(ChatMessage::user(words)),
        }
    }

    fn assistant(&mut self, said: &PromptMessage) {
        if let Some(content) = remembered(self.provider, said.memo.as_ref(), &said.calls) {
            let content = self.with_wire_ids(content);
            self.messages.push(ChatMessage::assistant(content));
            return self.answer_for(said);
        }
        let silent = said.content.trim().is_empty();
        if silent && said.calls.is_empty() {
            return;
        }
        let calls: Vec<GenaiCall> = said.calls.iter().map(|call| self.call(call)).collect();
        let content = match self.last(&ChatRole::Assistant) {
            Some(content) => content,
            None => {
                let empty = MessageContent::from_parts(Vec::new());
                self.messages.push(ChatMessage::assistant(empty));
                match self.messages.last_mut() {
                    Some(message) => &mut message.content,
                    None => return,
                }
            }
        };
        if !silent {
            add_words(content, &said.content);
        }
        content.extend(calls.into_iter().map(ContentPart::ToolCall));
        self.answer_for(said);
    }

    /// Adds results for calls that have none: all providers refuse such a call.
    fn answer_for(&mut self, said: &PromptMessage) {
        for call in &said.calls {
            if !self.answered.contains(&call.id) {
                self.result(&PromptMessage {
                    answers: Some(call.id.clone()),
                    ..PromptMessage::plain(Role::Tool, &call.name, NO_RESULT)
                });
            }
        }
    }

    fn call(&mut self, call: &ToolCall) -> GenaiCall {
        GenaiCall {
            call_id: self.wire_id(&call.id, &call.name),
            fn_name: call.name.clone(),
            fn_arguments: object(&call.arguments),
            thought_signatures: None,
        }
    }

    fn with_wire_ids(&mut self, content: MessageContent) -> MessageContent {
        let parts = content.into_parts().into_iter().map(|part| match part {
            ContentPart::ToolCall(call) => ContentPart::ToolCall(GenaiCall {
                call_id: self.wire_id(&call.call_id, &call.fn_name),
                fn_arguments: object(&call.fn_arguments),
                ..call
            }),
            part => part,
        });
        // Anthropic refuses blank text.
        let parts =
            parts.filter(|part| part.as_text().is_none_or(|words| !words.trim().is_empty()));
        MessageContent::from_parts(parts.collect::<Vec<_>>())
    }

    /// Returns the id under which the provider sees a call. A conversation may hold calls of other
    /// providers, with ids of another form.
    fn wire_id(&mut self, id: &str, name: &str) -> String {
        let count = self.used.len();
        let mut wire = match self.provider {
            // genai takes this form for its own and does not send it: Gemini gave no id.
            Provider::Gemini if is_ours(id) => format!("call#{name}#{count}"),
            Provider::Anthropic => id
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || c == '-' {
                        c
                    } else {
                        '_'
                    }
                })
                .collect(),
            _ => id.to_owned(),
        };
        if wire.is_empty() || self.used.contains(&wire) {
            wire = format!("{wire}_{count}");
        }
        self.used.insert(wire.clone());
        let known = Known {
            id: wire.clone(),
            name: name.to_owned(),
        };
        self.open.insert(id.to_owned(), known);
        wire
    }

    fn result(&mut self, said: &PromptMessage) {
        let known = said.answers.as_ref().and_then(|id| self.open.get(id));
        // All providers refuse a result without its call.
        let Some(known) = known else { return };
        let result = ToolResponse::new(known.id.clone(), said.content.clone())
            .with_fn_name(known.name.clone());
        // Anthropic wants all results of a message in the next one, in the role of the user. Ollama
        // wants each in its own message.
        let role = match self.provider {
            Provider::Anthropic => ChatRole::User,
            _ => ChatRole::Tool,
        };
        let joined = self.provider != Provider::Ollama;
        match self.last(&role) {
            Some(content) if joined && content.iter().all(ContentPart::is_tool_response) => {
                content.push(result);
            }
            _ => self.messages.push(ChatMessage::new(role, result)),
        }
    }

    fn whole(&mut self) -> Vec<ChatMessage> {
        let mut messages = std::mem::take(&mut self.messages);
        let strict = matches!(self.provider, Provider::Anthropic | Provider::Gemini);
        let first = messages.first().map(|message| &message.role);
        if strict && first == Some(&ChatRole::Assistant) {
            messages.insert(0, ChatMessage::user(BEFORE));
        }
        match messages.last().map(|message| &message.role) {
            Some(ChatRole::User | ChatRole::Tool) => {}
            _ => messages.push(ChatMessage::user(GO_ON)),
        }
        messages
    }
}

/// Appends text to the last text part, or adds a part after any other.
fn add_words(content: &mut MessageContent, words: &str) {
    match content.iter_mut().last() {
        Some(ContentPart::Text(text)) => {
            text.push_str("\n\n");
            text.push_str(words);
        }
        _ => content.push(words),
    }
}

/// Converts arguments to an object: providers accept nothing else.
fn object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => Value::Object(Map::new()),
        other => json!({"arguments": other}),
    }
}

#[cfg(test)]
mod tests {
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
        let request = build(provider, None, &question);
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
        let request = build(Provider::OpenAi, Some("be brief"), &question);
        assert_eq!(request.system.as_deref(), Some("be brief\n\nbe kind"));
        assert_eq!(request.messages.len(), 1);
        assert!(request.tools.is_none());
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
}
