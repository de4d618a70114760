//! Ollama's native API, which needs no key.

use serde_json::{Value, json};

use super::{Frame, MOMENT, Part, Refused, Wire, check_tool, demand, list, openai, text, texts};
use crate::provider::talk::{Reply, Stop, Talk, tokens};
use crate::provider::{MODELS, Request};

pub struct Ollama;

impl Wire for Ollama {
    fn read(&self, request: &Request) -> Result<Talk, Refused> {
        if request.path != "/api/chat" {
            return Err(Refused::new(404, "404 page not found"));
        }
        let body = &request.body;
        demand(
            body.is_object(),
            "invalid character looking for beginning of value",
        )?;
        demand(!text(&body["model"]).is_empty(), "model is required")?;
        for (at, tool) in list(&body["tools"]).iter().enumerate() {
            let function = &tool["function"];
            check_tool(
                &format!("tools[{at}]"),
                &function["name"],
                &function["parameters"],
            )?;
        }
        let messages = list(&body["messages"]);
        demand(
            !messages.is_empty(),
            "the fake does not load models: messages are missing",
        )?;
        for message in messages {
            check_message(message)?;
        }
        let system = messages
            .iter()
            .filter(|message| message["role"] == "system");
        Ok(Talk {
            model: text(&body["model"]).to_owned(),
            stream: body["stream"] != false,
            wants_usage: true,
            messages: messages.len() - system.clone().count(),
            system: system
                .flat_map(|message| texts(&message["content"]))
                .collect::<Vec<_>>()
                .join("\n"),
            turns: openai::turns(messages),
        })
    }

    fn look_up(&self, request: &Request) -> Result<Value, Refused> {
        match request.path.as_str() {
            "/api/version" => Ok(json!({"version": "0.99.0"})),
            "/api/tags" => {
                let models = MODELS.map(|name| {
                    json!({
                        "name": name, "model": name, "modified_at": MOMENT, "size": 1, "digest": "0".repeat(64),
                        "details": {"format": "gguf", "family": "fake", "parameter_size": "1B", "quantization_level": "Q4_0"},
                    })
                });
                Ok(json!({"models": models}))
            }
            _ => Err(Refused::new(404, "404 page not found")),
        }
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut message = json!({"role": "assistant", "content": words(reply)});
        if !reply.thinking.is_empty() {
            message["thinking"] = reply.thinking.as_str().into();
        }
        if !reply.calls.is_empty() {
            message["tool_calls"] = calls(reply).into();
        }
        last(reply, message)
    }

    fn frames(&self, _: &Talk, reply: &Reply) -> Vec<Frame> {
        let token = |message: Value| {
            let line = json!({"model": reply.model, "created_at": MOMENT, "message": message, "done": false});
            on_a_line(Part::Token, &line)
        };
        let mut frames = Vec::new();
        for thought in tokens(&reply.thinking) {
            frames.push(token(
                json!({"role": "assistant", "content": "", "thinking": thought}),
            ));
        }
        for word in tokens(words(reply)) {
            frames.push(token(json!({"role": "assistant", "content": word})));
        }
        for call in calls(reply) {
            frames.push(token(
                json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            ));
        }
        let end = last(reply, json!({"role": "assistant", "content": ""}));
        frames.push(on_a_line(Part::Close, &end));
        frames
    }

    fn stream_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn error(&self, _: u16, message: &str) -> Value {
        json!({"error": message})
    }

    fn complaint(&self, status: u16, model: &str, key: &str) -> String {
        match status {
            401 => format!("unauthorized: {key}"),
            404 => format!("model '{model}' not found"),
            429 => "too many requests".into(),
            503 => "server busy, please try again. maximum pending requests exceeded".into(),
            500.. => "llama runner process has terminated".into(),
            _ => "the request was not understood".into(),
        }
    }

    fn overflow(&self) -> &'static str {
        "the input length exceeds the context length"
    }

    fn error_event(&self) -> String {
        let error = self.error(500, "an error was encountered while running the model");
        on_a_line(Part::Frame, &error).text
    }

    fn broken_event(&self) -> String {
        "{\"this is not\n".to_owned()
    }
}

/// Rejects messages that Ollama's Go decoder would reject.
fn check_message(message: &Value) -> Result<(), Refused> {
    let role = text(&message["role"]);
    demand(
        matches!(role, "system" | "user" | "assistant" | "tool"),
        format!("invalid role: {role:?}"),
    )?;
    let content = message.get("content");
    demand(
        content.is_none_or(Value::is_string),
        "json: cannot unmarshal into Go struct field ChatRequest.messages.content of type string",
    )?;
    for call in list(&message["tool_calls"]) {
        demand(
            !text(&call["function"]["name"]).is_empty(),
            "a tool call without a name",
        )?;
        demand(
            call["function"]["arguments"].is_object(),
            "json: cannot unmarshal into Go struct field ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments",
        )?;
    }
    Ok(())
}

/// Returns the tool calls, without ids: older servers send none.
fn calls(reply: &Reply) -> Vec<Value> {
    let calls = reply.calls.iter();
    calls
        .map(|call| json!({"function": {"name": call.name, "arguments": call.arguments}}))
        .collect()
}

/// Returns the text. A refusal is ordinary text: the API has no other sign for it.
fn words(reply: &Reply) -> &str {
    if reply.stop == Stop::Refusal && reply.text.is_empty() {
        return "I cannot help with that.";
    }
    &reply.text
}

/// Returns the line that ends an answer.
fn last(reply: &Reply, message: Value) -> Value {
    let reason = match reply.stop {
        Stop::End | Stop::Calls | Stop::Refusal => "stop",
        Stop::MaxTokens => "length",
    };
    let mut line = json!({
        "model": reply.model, "created_at": MOMENT, "message": message, "done": true,
        "done_reason": reason, "total_duration": 1, "load_duration": 1,
    });
    if let Some(usage) = reply.usage {
        line["prompt_eval_count"] = usage.input.into();
        line["eval_count"] = usage.output.into();
    }
    line
}

fn on_a_line(part: Part, value: &Value) -> Frame {
    let text = format!("{value}\n");
    Frame { part, text }
}
