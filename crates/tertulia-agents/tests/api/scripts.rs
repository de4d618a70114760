//! Streams in the formats of the four providers.

use serde_json::{Value, json};
use tertulia_agents::api::Provider;

fn event(name: &str, data: &Value) -> String {
    let mut data = data.clone();
    data["type"] = json!(name);
    format!("event: {name}\ndata: {data}\n\n")
}

fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn delta(delta: Value) -> String {
    data(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

/// The beginning of an answer with this text.
pub fn words(provider: Provider, words: &[&str]) -> String {
    let mut stream = String::new();
    if provider == Provider::Anthropic {
        let usage = json!({"input_tokens": 11, "output_tokens": 1});
        stream += &event("message_start", &json!({"message": {"usage": usage}}));
        let block = json!({"type": "text", "text": ""});
        stream += &event(
            "content_block_start",
            &json!({"index": 0, "content_block": block}),
        );
    }
    for word in words {
        stream += &match provider {
            Provider::Anthropic => {
                let delta = json!({"type": "text_delta", "text": word});
                event("content_block_delta", &json!({"index": 0, "delta": delta}))
            }
            Provider::OpenAi => delta(json!({"content": word})),
            // Gemini ends its lines like this.
            Provider::Gemini => data(&parts(json!([{"text": word}]))).replace('\n', "\r\n"),
            Provider::Ollama => {
                let message = json!({"role": "assistant", "content": word});
                format!("{}\n", json!({"message": message, "done": false}))
            }
        };
    }
    if provider == Provider::Anthropic {
        stream += &event("content_block_stop", &json!({"index": 0}));
    }
    stream
}

/// A tool call, without an id if the provider gives none.
pub fn call(provider: Provider, id: &str, name: &str, arguments: &Value) -> String {
    match provider {
        Provider::Anthropic => {
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            let mut stream = event(
                "content_block_start",
                &json!({"index": 1, "content_block": block}),
            );
            let written = arguments.to_string();
            let (one, two) = written.split_at(written.len() / 2);
            for half in [one, two] {
                let delta = json!({"type": "input_json_delta", "partial_json": half});
                stream += &event("content_block_delta", &json!({"index": 1, "delta": delta}));
            }
            stream + &event("content_block_stop", &json!({"index": 1}))
        }
        Provider::OpenAi => {
            let written = arguments.to_string();
            let (one, two) = written.split_at(written.len() / 2);
            let first = json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": one}});
            let second = json!({"index": 0, "function": {"arguments": two}});
            delta(json!({"tool_calls": [first]})) + &delta(json!({"tool_calls": [second]}))
        }
        Provider::Gemini => {
            let call = json!({"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "gemini-signature"});
            data(&parts(json!([call])))
        }
        Provider::Ollama => {
            let call = json!({"function": {"name": name, "arguments": arguments}});
            let message = json!({"role": "assistant", "content": "", "tool_calls": [call]});
            format!("{}\n", json!({"message": message, "done": false}))
        }
    }
}

/// A thought of Claude's, which it wants back with its signature.
pub fn signed_thought(thought: &str, signature: &str) -> String {
    let block = json!({"type": "thinking", "thinking": "", "signature": ""});
    let thinking = json!({"type": "thinking_delta", "thinking": thought});
    let signed = json!({"type": "signature_delta", "signature": signature});
    event(
        "content_block_start",
        &json!({"index": 0, "content_block": block}),
    ) + &event(
        "content_block_delta",
        &json!({"index": 0, "delta": thinking}),
    ) + &event("content_block_delta", &json!({"index": 0, "delta": signed}))
        + &event("content_block_stop", &json!({"index": 0}))
}

/// The end, with the provider's stop reason, 11 input and 7 output tokens.
pub fn end(provider: Provider, reason: &str) -> String {
    match provider {
        Provider::Anthropic => {
            let usage = json!({"output_tokens": 7});
            let delta = json!({"stop_reason": reason});
            event("message_delta", &json!({"delta": delta, "usage": usage}))
                + &event("message_stop", &json!({}))
        }
        Provider::OpenAi => {
            let usage = json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18});
            data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
                + &data(&json!({"choices": [], "usage": usage}))
                + "data: [DONE]\n\n"
        }
        Provider::Gemini => {
            let mut last = parts(json!([{"text": ""}]));
            last["candidates"][0]["finishReason"] = json!(reason);
            last["usageMetadata"] = json!({"promptTokenCount": 11, "candidatesTokenCount": 7});
            data(&last)
        }
        Provider::Ollama => {
            let message = json!({"role": "assistant", "content": ""});
            let last = json!({"message": message, "done": true, "done_reason": reason,
                "prompt_eval_count": 11, "eval_count": 7});
            format!("{last}\n")
        }
    }
}

/// The usual end.
pub fn stop(provider: Provider) -> String {
    end(
        provider,
        match provider {
            Provider::Anthropic => "end_turn",
            Provider::Gemini => "STOP",
            Provider::OpenAi | Provider::Ollama => "stop",
        },
    )
}

/// An error in the middle of the stream.
pub fn error(provider: Provider) -> String {
    match provider {
        Provider::Anthropic => {
            let error = json!({"type": "overloaded_error", "message": "Overloaded"});
            event("error", &json!({"error": error}))
        }
        Provider::OpenAi => {
            data(&json!({"error": {"message": "Overloaded", "type": "server_error"}}))
        }
        Provider::Gemini => {
            data(&json!({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}))
        }
        Provider::Ollama => format!("{}\n", json!({"error": "Overloaded"})),
    }
}

/// Broken JSON in place of an event.
pub fn garbage(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "event: content_block_delta\ndata: {\"delta\": {\"text\": \"cu\n\n",
        Provider::OpenAi | Provider::Gemini => "data: {\"choices\": [not json\n\n",
        Provider::Ollama => "{\"message\": [not json\n",
    }
}
