//! Reads the frames of a stream beside genai, to find what genai loses and to tell a real end from
//! a broken stream. No I/O.

use std::mem;

use serde_json::Value;

use super::provider::Provider;
use tertulia_core::entry::Usage;

/// A tool call that genai leaves out because it has no index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LostCall {
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
    /// Calls that genai left out.
    pub calls: Vec<LostCall>,
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
        // genai itself reports a frame that is not JSON.
        let Ok(frame) = serde_json::from_str::<Value>(data) else {
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
        let calls = choice["delta"]["tool_calls"].as_array();
        let numberless = calls
            .into_iter()
            .flatten()
            .filter(|call| !call["index"].is_u64());
        for call in numberless {
            let function = &call["function"];
            let Some(name) = function["name"].as_str() else {
                continue;
            };
            self.calls.push(LostCall {
                id: call["id"].as_str().unwrap_or_default().to_owned(),
                name: name.to_owned(),
                arguments: function["arguments"].clone(),
            });
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
    fn what_genai_leaves_out_is_kept() {
        let call = json!({"id": "a", "function": {"name": "glob", "arguments": "{}"}});
        let numbered =
            json!({"index": 0, "id": "b", "function": {"name": "grep", "arguments": "{}"}});
        let frame = json!({"choices": [{"delta": {"tool_calls": [call, numbered]}}]});
        let watch = watched(Provider::OpenAi, &[(None, frame)]);
        let names: Vec<&str> = watch.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["glob"]);
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
