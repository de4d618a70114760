//! Tool calls of a model: converts them to calls that can be run, with ids unique in the
//! conversation, and keeps what the provider wants back. No I/O.

use std::collections::HashSet;

use genai::chat::{ContentPart, MessageContent, StreamEnd, ToolCall as GenaiCall};
use serde_json::{Map, Value, json};

use super::provider::Provider;
use super::watch::StreamedCall;
use crate::AgentRequest;
use tertulia_core::entry::ToolCall;

/// Prefix of ids that are generated here.
const OURS: &str = "tool-";

/// Tool calls of one answer.
pub(super) struct Calls {
    /// Calls to run.
    pub calls: Vec<ToolCall>,
    /// Data that the provider wants back with the calls, if any.
    pub memo: Option<Value>,
    /// Tool whose call was cut off.
    pub cut_off: Option<String>,
}

/// Collects the calls of an answer: those that genai heard, or those of an OpenAI-compatible server.
/// `cut` means that the answer reached its token limit: calls with incomplete arguments are left out.
pub(super) fn collect(
    provider: Provider,
    question: &AgentRequest,
    heard: Vec<GenaiCall>,
    streamed: &[StreamedCall],
    end: &StreamEnd,
    cut: bool,
) -> Calls {
    let mut ids = Ids::of(question);
    let streamed = streamed.iter().map(|call| GenaiCall {
        call_id: call.id.clone(),
        fn_name: call.name.clone(),
        fn_arguments: call.arguments.clone(),
        thought_signatures: None,
    });
    let heard = match provider {
        Provider::OpenAi => streamed.collect(),
        _ => heard,
    };
    let mut mended: Vec<GenaiCall> = Vec::new();
    let mut cut_off = None;
    for mut call in heard {
        call.fn_arguments = arguments(call.fn_arguments);
        if cut && !call.fn_arguments.is_object() {
            cut_off = Some(call.fn_name);
            continue;
        }
        call.call_id = ids.unique(&call.call_id);
        mended.push(call);
    }
    let calls = mended.iter().map(|call| ToolCall {
        id: call.call_id.clone(),
        name: call.fn_name.clone(),
        arguments: call.fn_arguments.clone(),
    });
    Calls {
        calls: calls.collect(),
        memo: memo(provider, end, mended),
        cut_off,
    }
}

/// Normalises arguments to an object: some providers write it as text, some write nothing for an
/// empty one. Unreadable arguments stay text, so that the tool can report that to the model.
fn arguments(written: Value) -> Value {
    match written {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str(&text) {
            // Some servers encode them twice.
            Ok(Value::String(inner)) => {
                serde_json::from_str(&inner).unwrap_or(Value::String(inner))
            }
            Ok(value) => value,
            Err(_) => Value::String(text),
        },
        value => value,
    }
}

/// Ids of calls that are in use.
struct Ids {
    taken: HashSet<String>,
    seed: String,
    count: usize,
}

impl Ids {
    fn of(question: &AgentRequest) -> Ids {
        let calls = question.messages.iter().flat_map(|said| &said.calls);
        let taken: HashSet<String> = calls.map(|call| call.id.clone()).collect();
        Ids {
            // Each request has its own marker, and each round of tools makes the conversation
            // longer.
            seed: format!(
                "{}\n{}\n{}",
                question.marker,
                question.total,
                question.messages.len()
            ),
            taken,
            count: 0,
        }
    }

    /// Returns the id itself if it comes from the provider and is free, otherwise a generated one.
    fn unique(&mut self, id: &str) -> String {
        let mut unique = id.to_owned();
        while is_made_up(&unique) || !self.taken.insert(unique.clone()) {
            self.count += 1;
            let hash = blake3::hash(format!("{}\n{}", self.seed, self.count).as_bytes());
            let hex = hash.to_hex();
            unique = format!("{OURS}{}", &hex.as_str()[..16]);
            if self.taken.insert(unique.clone()) {
                return unique;
            }
        }
        unique
    }
}

/// Returns whether genai made up the id, which it does where a provider gives none, with the same
/// ids in each round.
fn is_made_up(id: &str) -> bool {
    let counted = id.strip_prefix("call_");
    id.is_empty()
        || id.starts_with("call#")
        || counted.is_some_and(|rest| rest.parse::<u32>().is_ok())
}

/// Returns whether the id was generated here.
pub(super) fn is_ours(id: &str) -> bool {
    id.strip_prefix(OURS)
        .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Serialises what text and calls of the answer do not hold: signatures and signed thoughts.
fn memo(provider: Provider, end: &StreamEnd, calls: Vec<GenaiCall>) -> Option<Value> {
    let said = end.captured_content.iter().flat_map(MessageContent::iter);
    let mut parts: Vec<ContentPart> = said.filter(|part| !part.is_tool_call()).cloned().collect();
    // Some OpenAI-compatible servers want the thoughts back unchanged.
    if let (Provider::OpenAi, Some(thoughts)) = (provider, &end.captured_reasoning_content) {
        parts.insert(0, ContentPart::ReasoningContent(thoughts.clone()));
    }
    let plain = parts.iter().all(ContentPart::is_text)
        && calls.iter().all(|call| call.thought_signatures.is_none());
    if plain || calls.is_empty() {
        return None;
    }
    parts.extend(calls.into_iter().map(ContentPart::ToolCall));
    let content = serde_json::to_value(MessageContent::from_parts(parts)).ok()?;
    Some(json!({"provider": provider.name(), "content": content}))
}

/// Restores the content kept by [`memo`], if it is this provider's and belongs to these calls.
pub(super) fn remembered(
    provider: Provider,
    memo: Option<&Value>,
    calls: &[ToolCall],
) -> Option<MessageContent> {
    let memo = memo?;
    if memo["provider"] != provider.name() {
        return None;
    }
    let content: MessageContent = serde_json::from_value(memo["content"].clone()).ok()?;
    let ids: Vec<&str> = content
        .tool_calls()
        .iter()
        .map(|call| call.call_id.as_str())
        .collect();
    let same = ids
        == calls
            .iter()
            .map(|call| call.id.as_str())
            .collect::<Vec<_>>();
    same.then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PromptMessage;
    use tertulia_core::entry::Role;

    fn call(id: &str, arguments: Value) -> GenaiCall {
        GenaiCall {
            call_id: id.to_owned(),
            fn_name: "glob".to_owned(),
            fn_arguments: arguments,
            thought_signatures: None,
        }
    }

    fn collected(question: &AgentRequest, heard: Vec<GenaiCall>, cut: bool) -> Calls {
        collect(
            Provider::Gemini,
            question,
            heard,
            &[],
            &StreamEnd::default(),
            cut,
        )
    }

    #[test]
    fn arguments_become_an_object_where_they_can() {
        for (written, read) in [
            (json!({"a": 1}), json!({"a": 1})),
            (json!("{\"a\": 1}"), json!({"a": 1})),
            (json!("\"{\\\"a\\\": 1}\""), json!({"a": 1})),
            (json!(""), json!({})),
            (Value::Null, json!({})),
            (json!("{\"a\": "), json!("{\"a\": ")),
        ] {
            assert_eq!(arguments(written.clone()), read, "{written}");
        }
    }

    #[test]
    fn ids_are_unique_over_the_whole_talk() {
        let mut question = AgentRequest {
            marker: "m".to_owned(),
            ..AgentRequest::default()
        };
        let mut seen = HashSet::new();
        for _ in 0..3 {
            let made_up = vec![
                call("call#glob#0", json!({})),
                call("call#glob#0", json!({})),
                call("call_0", json!({})),
                call("", json!({})),
                call("fc-own", json!({})),
            ];
            let round = collected(&question, made_up, false).calls;
            for call in &round {
                assert!(seen.insert(call.id.clone()), "{} twice", call.id);
                assert!(
                    call.id
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'-')
                );
            }
            let mut said = PromptMessage::plain(Role::Assistant, "a", "");
            said.calls = round;
            question.messages.push(said);
        }
        assert!(seen.contains("fc-own"));
        assert_eq!(seen.iter().filter(|id| is_ours(id)).count(), 14);
    }

    #[test]
    fn a_call_that_was_cut_off_is_not_run() {
        let heard = vec![call("a", json!({})), call("b", json!("{\"path\": \"/et"))];
        let whole = collected(&AgentRequest::default(), heard.clone(), true);
        assert_eq!(whole.calls.len(), 1);
        assert_eq!(whole.cut_off.as_deref(), Some("glob"));
        assert_eq!(
            collected(&AgentRequest::default(), heard, false)
                .calls
                .len(),
            2
        );
    }

    #[test]
    fn a_memo_comes_back_only_to_its_own_calls() {
        let mut signed = call("call#glob#0", json!({}));
        signed.thought_signatures = Some(vec!["sig".to_owned()]);
        let calls = collected(&AgentRequest::default(), vec![signed], false);
        let memo = calls.memo.as_ref();
        let content = remembered(Provider::Gemini, memo, &calls.calls).unwrap();
        assert_eq!(content.tool_calls()[0].call_id, calls.calls[0].id);
        assert!(content.tool_calls()[0].thought_signatures.is_some());
        assert!(remembered(Provider::Anthropic, memo, &calls.calls).is_none());
        assert!(remembered(Provider::Gemini, memo, &[]).is_none());
        let plain = collected(&AgentRequest::default(), vec![call("x", json!({}))], false);
        assert!(plain.memo.is_none());
    }
}
