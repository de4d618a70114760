//! Reads the frames of a stream beside genai, to find what genai loses and to tell a real end from
//! a broken stream. No I/O.

use std::mem;

use serde_json::Value;

use super::provider::Provider;
use tertulia_core::entry::Usage;

/// A tool call in an OpenAI-compatible stream. genai tells calls apart by their index alone, which
/// servers leave out or give to several calls, and drops arguments that are no string.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StreamedCall {
    index: Option<u64>,
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// Observer of one stream.
#[derive(Debug)]
pub(super) struct Watch {
    provider: Provider,
    /// The provider marked the end. Without that mark the stream is broken, also where genai makes
    /// up an end (Gemini, Ollama).
    pub finished: bool,
    /// Error that the provider reported. genai overlooks it in Ollama's stream.
    pub error: Option<Value>,
    /// The provider's reason not to answer.
    pub refusal: String,
    /// Whether the last frame holds nothing but usage numbers, which genai takes for an error
    /// (Gemini).
    pub only_numbers: bool,
    /// Whether an event came without its name, which genai discards.
    pub nameless: bool,
    /// Whether any frame held data: a page or a document in place of a stream holds none.
    pub has_data: bool,
    /// Tool calls of an OpenAI-compatible server.
    pub calls: Vec<StreamedCall>,
    /// Usage that genai overlooks because it comes with the last text (LiteLLM).
    pub usage: Option<Usage>,
    thoughts: Vec<String>,
}

impl Watch {
    pub(super) fn new(provider: Provider) -> Watch {
        Watch {
            provider,
            finished: false,
            error: None,
            refusal: String::new(),
            only_numbers: false,
            nameless: false,
            has_data: false,
            calls: Vec::new(),
            usage: None,
            thoughts: Vec::new(),
        }
    }

    /// Returns the thoughts that genai left out since the last call.
    pub(super) fn take_thoughts(&mut self) -> Vec<String> {
        mem::take(&mut self.thoughts)
    }

    /// Reads one frame, before genai does.
    pub(super) fn frame(&mut self, event: Option<&str>, data: &str) {
        self.only_numbers = false;
        self.has_data |= !data.is_empty();
        if self.provider == Provider::Anthropic {
            self.finished |= event == Some("message_stop");
            // Some servers end with the `[DONE]` of another protocol: nothing is lost with it.
            self.nameless |= event.is_none() && data.starts_with('{');
            return;
        }
        if data == "[DONE]" {
            self.finished = true;
            return;
        }
        let frame = serde_json::from_str::<Value>(data);
        if event == Some("error") && !data.is_empty() {
            self.error = Some(frame.unwrap_or_else(|_| Value::String(data.to_owned())));
            return;
        }
        // genai itself reports a frame that is not JSON.
        let Ok(frame) = frame else {
            return;
        };
        match self.provider {
            Provider::OpenAi => self.completion(&frame),
            Provider::Gemini => self.candidate(&frame),
            Provider::Ollama | Provider::Anthropic => self.line(&frame),
        }
    }

    fn completion(&mut self, frame: &Value) {
        let count = |key: &str| frame["usage"][key].as_u64();
        if let (Some(input), Some(output)) = (count("prompt_tokens"), count("completion_tokens")) {
            let cached = frame["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
            let usage = Usage {
                cache_read: cached.unwrap_or(0),
                ..Usage::told(input, output)
            };
            self.usage = Some(usage).filter(|_| input + output > 0);
        }
        let choice = &frame["choices"][0];
        self.finished |= choice["finish_reason"].is_string();
        if let Some(words) = choice["delta"]["refusal"].as_str() {
            self.refusal.push_str(words);
        }
        if frame["type"] == "error" && choice.is_null() {
            self.error = Some(frame.clone());
        }
        let delta = &choice["delta"];
        if let Some(thought) = detailed_reasoning(delta) {
            self.thoughts.push(thought);
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
        }
    }

    /// Adds a piece of a tool call: to the last one with its index, unless it names another id.
    fn call(&mut self, piece: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let function = &piece["function"];
        let (index, id) = (piece["index"].as_u64(), text(&piece["id"]));
        let name = text(&function["name"]);
        let mut calls = self.calls.iter_mut().rev();
        let known = match index {
            Some(_) => calls.find(|call| call.index == index),
            // Without an index, whatever has no name of its own belongs to the last call.
            None => calls.next().filter(|_| name.is_empty()),
        };
        let is_other =
            |call: &&mut StreamedCall| !name.is_empty() && !id.is_empty() && call.id != id;
        match known.filter(|call| !is_other(call)) {
            Some(call) => {
                if call.name.is_empty() {
                    call.name = name;
                }
                if call.id.is_empty() {
                    call.id = id;
                }
                add_arguments(&mut call.arguments, &function["arguments"]);
            }
            None if name.is_empty() => {}
            None => self.calls.push(StreamedCall {
                index,
                id,
                name,
                arguments: function["arguments"].clone(),
            }),
        }
    }

    fn candidate(&mut self, frame: &Value) {
        let candidate = &frame["candidates"][0];
        self.finished |= candidate["finishReason"].is_string();
        if let Some(reason) = frame["promptFeedback"]["blockReason"].as_str() {
            reason.clone_into(&mut self.refusal);
        }
        let nothing = frame.get("candidates").is_none() && frame.get("error").is_none();
        self.only_numbers = nothing && self.refusal.is_empty();
        let parts = candidate["content"]["parts"].as_array();
        let thoughts = parts
            .into_iter()
            .flatten()
            .filter(|part| part["thought"] == true)
            .filter_map(|part| part["text"].as_str());
        let mut thoughts: Vec<String> = thoughts.map(str::to_owned).collect();
        // Of several thoughts in one frame genai forwards only the last.
        thoughts.pop();
        self.thoughts.extend(thoughts);
    }

    fn line(&mut self, frame: &Value) {
        self.finished |= frame["done"] == true;
        if frame.get("error").is_some_and(|error| !error.is_null()) {
            self.error = Some(frame.clone());
        }
    }
}

/// Appends a piece of arguments, which usually are text that comes in pieces.
fn add_arguments(arguments: &mut Value, more: &Value) {
    match (arguments, more) {
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (arguments @ Value::Null, more) => *arguments = more.clone(),
        _ => {}
    }
}

/// Returns the reasoning of a delta that has it only in the form of OpenRouter.
fn detailed_reasoning(delta: &Value) -> Option<String> {
    let is_plain = |key: &str| delta[key].as_str().is_some_and(|text| !text.is_empty());
    if is_plain("reasoning") || is_plain("reasoning_content") {
        return None;
    }
    let details = delta["reasoning_details"].as_array()?;
    let texts = details
        .iter()
        .filter_map(|detail| detail["text"].as_str().or(detail["summary"].as_str()));
    let reasoning: String = texts.collect();
    (!reasoning.is_empty()).then_some(reasoning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn watched(provider: Provider, frames: &[(Option<&str>, Value)]) -> Watch {
        let mut watch = Watch::new(provider);
        for (event, data) in frames {
            let data = data.as_str().map_or(data.to_string(), str::to_owned);
            watch.frame(*event, &data);
        }
        watch
    }

    #[test]
    fn an_end_is_what_the_provider_says_is_one() {
        use Provider::{Anthropic, Gemini, Ollama, OpenAi};
        for (provider, event, data, finished) in [
            (
                Anthropic,
                Some("message_delta"),
                json!({"delta": {"stop_reason": "end_turn"}}),
                false,
            ),
            (
                Anthropic,
                Some("message_stop"),
                json!({"type": "message_stop"}),
                true,
            ),
            (
                OpenAi,
                None,
                json!({"choices": [{"delta": {"content": "x"}, "finish_reason": null}]}),
                false,
            ),
            (
                OpenAi,
                None,
                json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
                true,
            ),
            (OpenAi, None, json!("[DONE]"), true),
            (
                Gemini,
                None,
                json!({"candidates": [{"content": {"parts": [{"text": "x"}]}}]}),
                false,
            ),
            (
                Gemini,
                None,
                json!({"candidates": [{"finishReason": "STOP"}]}),
                true,
            ),
            (
                Ollama,
                None,
                json!({"message": {"content": "x"}, "done": false}),
                false,
            ),
            (
                Ollama,
                None,
                json!({"message": {"content": ""}, "done": true}),
                true,
            ),
        ] {
            let watch = watched(provider, &[(event, data.clone())]);
            assert_eq!(watch.finished, finished, "{provider:?} {data}");
        }
    }

    #[test]
    fn errors_and_refusals_that_genai_overlooks_are_seen() {
        let ollama = watched(
            Provider::Ollama,
            &[(None, json!({"error": "out of memory"}))],
        );
        assert_eq!(ollama.error, Some(json!({"error": "out of memory"})));
        let frames = ["I ", "cannot"].map(|words| {
            let delta = json!({"refusal": words});
            (None, json!({"choices": [{"delta": delta}]}))
        });
        assert_eq!(watched(Provider::OpenAi, &frames).refusal, "I cannot");
        let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
        let gemini = watched(Provider::Gemini, &[(None, blocked)]);
        assert_eq!(gemini.refusal, "SAFETY");
        assert!(!gemini.only_numbers);
        let numbers = json!({"usageMetadata": {"promptTokenCount": 3}});
        assert!(watched(Provider::Gemini, &[(None, numbers)]).only_numbers);
        let nameless = json!({"type": "content_block_delta"});
        assert!(watched(Provider::Anthropic, &[(None, nameless)]).nameless);
    }

    #[test]
    fn calls_are_told_apart_as_servers_write_them() {
        let piece = |call: Value| {
            (
                None,
                json!({"choices": [{"delta": {"tool_calls": [call]}}]}),
            )
        };
        let call = |index: Value, id: &str, name: &str, arguments: Value| {
            piece(
                json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}}),
            )
        };
        let more = |index: Value, arguments: &str| {
            piece(json!({"index": index, "function": {"arguments": arguments}}))
        };
        let check = |frames: &[(Option<&str>, Value)], expected: &[(&str, &str, Value)]| {
            let watch = watched(Provider::OpenAi, frames);
            let calls = watch.calls.iter();
            let calls: Vec<_> = calls
                .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.clone()))
                .collect();
            assert_eq!(calls, expected);
        };
        let null = Value::Null;
        // In pieces; the id may be repeated.
        check(
            &[
                call(json!(0), "a", "glob", json!("{\"x\"")),
                more(json!(0), ":1}"),
                call(json!(1), "b", "grep", json!("{")),
                call(json!(1), "b", "grep", json!("}")),
            ],
            &[
                ("a", "glob", json!("{\"x\":1}")),
                ("b", "grep", json!("{}")),
            ],
        );
        // Several with one index, and without any.
        check(
            &[
                call(json!(0), "a", "glob", json!("{}")),
                call(json!(0), "b", "grep", json!("{")),
                more(json!(0), "}"),
            ],
            &[("a", "glob", json!("{}")), ("b", "grep", json!("{}"))],
        );
        check(
            &[
                call(null.clone(), "", "glob", json!("{}")),
                call(null.clone(), "", "grep", json!("{")),
                more(null, "}"),
            ],
            &[("", "glob", json!("{}")), ("", "grep", json!("{}"))],
        );
        let object = call(json!(0), "a", "glob", json!({"x": 1}));
        check(&[object], &[("a", "glob", json!({"x": 1}))]);
    }

    #[test]
    fn an_error_event_is_an_error() {
        let words = json!({"message": "backend died"});
        let watch = watched(Provider::OpenAi, &[(Some("error"), words.clone())]);
        assert_eq!(watch.error, Some(words));
        let watch = watched(Provider::Gemini, &[(Some("error"), json!("gone"))]);
        assert_eq!(watch.error, Some(json!("gone")));
    }

    #[test]
    fn reasoning_that_genai_leaves_out_is_kept() {
        let detail = json!([{"type": "reasoning.text", "text": "hm"}, {"type": "reasoning.summary", "summary": "!"}]);
        let frame = |delta: Value| (None, json!({"choices": [{"delta": delta}]}));
        let frames = [
            frame(json!({"reasoning_details": detail})),
            frame(json!({"reasoning": "hm", "reasoning_details": detail})),
        ];
        assert_eq!(watched(Provider::OpenAi, &frames).take_thoughts(), ["hm!"]);
        let parts = json!([
            {"text": "one", "thought": true},
            {"text": "two", "thought": true},
            {"text": "said"},
        ]);
        let frame = json!({"candidates": [{"content": {"parts": parts}}]});
        let mut watch = watched(Provider::Gemini, &[(None, frame)]);
        assert_eq!(watch.take_thoughts(), ["one"]);
        assert!(watch.take_thoughts().is_empty());
    }
}
