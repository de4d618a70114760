//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::{
    Frame, Part, Refused, SECONDS, Wire, argument_pieces, check_tool, demand, event, list, text,
    texts,
};
use crate::provider::talk::{Reply, Stop, Talk, Turn, Usage, tokens};
use crate::provider::{MODELS, Request};

pub struct OpenAi;

impl Wire for OpenAi {
    fn read(&self, request: &Request) -> Result<Talk, Refused> {
        check_caller(request)?;
        if request.path != "/v1/chat/completions" {
            return Err(Refused::new(
                404,
                format!("Invalid URL (POST {})", request.path),
            ));
        }
        let body = &request.body;
        demand(
            body.is_object(),
            "We could not parse the JSON body of your request.",
        )?;
        demand(
            body["model"].is_string(),
            "you must provide a model parameter",
        )?;
        for (at, tool) in list(&body["tools"]).iter().enumerate() {
            demand(
                tool["type"] == "function",
                format!("Invalid value: 'tools[{at}].type'"),
            )?;
            let function = &tool["function"];
            check_tool(
                &format!("tools[{at}].function"),
                &function["name"],
                &function["parameters"],
            )?;
        }
        let messages = list(&body["messages"]);
        demand(!messages.is_empty(), "Invalid 'messages': empty array.")?;
        check_messages(messages)?;
        let is_system = |message: &&Value| matches!(text(&message["role"]), "system" | "developer");
        let system = messages.iter().filter(is_system);
        Ok(Talk {
            model: text(&body["model"]).to_owned(),
            stream: body["stream"] == true,
            wants_usage: body["stream_options"]["include_usage"] == true,
            messages: messages.len() - system.clone().count(),
            system: system
                .flat_map(|message| texts(&message["content"]))
                .collect::<Vec<_>>()
                .join("\n"),
            turns: turns(messages),
        })
    }

    fn look_up(&self, request: &Request) -> Result<Value, Refused> {
        check_caller(request)?;
        if request.path != "/v1/models" {
            return Err(Refused::new(
                404,
                format!("Invalid URL (GET {})", request.path),
            ));
        }
        let models = MODELS
            .map(|id| json!({"id": id, "object": "model", "created": SECONDS, "owned_by": "fake"}));
        Ok(json!({"object": "list", "data": models}))
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut message = json!({"role": "assistant", "content": reply.text, "refusal": null});
        if !reply.thinking.is_empty() {
            message["reasoning_content"] = reply.thinking.as_str().into();
        }
        if !reply.calls.is_empty() {
            message["content"] = Value::Null;
            message["tool_calls"] = calls(reply).into();
        }
        let mut answer = head(reply, "chat.completion");
        answer["choices"] = json!([{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply.stop)}]);
        if let Some(usage) = reply.usage {
            answer["usage"] = cost(usage);
        }
        answer
    }

    fn frames(&self, talk: &Talk, reply: &Reply) -> Vec<Frame> {
        let chunk = |part, delta: Value, finish: Option<&str>| {
            let mut chunk = head(reply, "chat.completion.chunk");
            chunk["choices"] =
                json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
            event(part, &chunk)
        };
        let mut frames = vec![chunk(
            Part::Frame,
            json!({"role": "assistant", "content": ""}),
            None,
        )];
        for token in tokens(&reply.thinking) {
            frames.push(chunk(
                Part::Token,
                json!({"reasoning_content": token}),
                None,
            ));
        }
        for token in tokens(&reply.text) {
            frames.push(chunk(Part::Token, json!({"content": token}), None));
        }
        for (index, mut call) in calls(reply).into_iter().enumerate() {
            call["index"] = index.into();
            call["function"]["arguments"] = "".into();
            frames.push(chunk(Part::Frame, json!({"tool_calls": [call]}), None));
            for piece in argument_pieces(&reply.calls[index].arguments) {
                let more = json!({"index": index, "function": {"arguments": piece}});
                frames.push(chunk(Part::Token, json!({"tool_calls": [more]}), None));
            }
        }
        frames.push(chunk(
            Part::Close,
            json!({}),
            Some(finish_reason(reply.stop)),
        ));
        if let Some(usage) = reply.usage.filter(|_| talk.wants_usage) {
            let mut last = head(reply, "chat.completion.chunk");
            last["choices"] = json!([]);
            last["usage"] = cost(usage);
            frames.push(event(Part::Close, &last));
        }
        frames.push(Frame {
            part: Part::Close,
            text: "data: [DONE]\n\n".into(),
        });
        frames
    }

    fn error(&self, status: u16, message: &str) -> Value {
        let (kind, code) = match status {
            401 => ("invalid_request_error", json!("invalid_api_key")),
            404 => ("invalid_request_error", json!("model_not_found")),
            429 => ("requests", json!("rate_limit_exceeded")),
            400 if message == self.overflow() => {
                ("invalid_request_error", json!("context_length_exceeded"))
            }
            500.. => ("server_error", Value::Null),
            _ => ("invalid_request_error", Value::Null),
        };
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
    }

    fn complaint(&self, status: u16, model: &str, key: &str) -> String {
        match status {
            401 => format!("Incorrect API key provided: {key}."),
            403 => "Country, region, or territory not supported".into(),
            404 => format!("The model `{model}` does not exist or you do not have access to it."),
            413 => "Request entity too large".into(),
            429 => format!("Rate limit reached for {model}"),
            500.. => "The server had an error while processing your request.".into(),
            _ => "the request was not understood".into(),
        }
    }

    fn overflow(&self) -> &'static str {
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 250000 tokens."
    }

    fn error_event(&self) -> String {
        let error = self.error(
            500,
            "The server had an error while processing your request.",
        );
        event(Part::Frame, &error).text
    }
}

fn check_caller(request: &Request) -> Result<(), Refused> {
    match request.key() {
        Some(_) => Ok(()),
        None => Err(Refused::new(401, "You didn't provide an API key.")),
    }
}

/// Checks that each tool call is answered before any other message, and that there are no other
/// results.
fn check_messages(messages: &[Value]) -> Result<(), Refused> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = text(&message["role"]);
        if role == "tool" {
            let id = text(&message["tool_call_id"]);
            let known = open.iter().position(|call| *call == id);
            let Some(known) = known else {
                return Err(Refused::new(
                    400,
                    format!(
                        "messages[{at}]: messages with role 'tool' must be a response to a preceding message with 'tool_calls': {id:?}"
                    ),
                ));
            };
            open.remove(known);
            demand(
                !message["content"].is_null(),
                format!("messages[{at}].content: expected a string, got null"),
            )?;
            continue;
        }
        demand(open.is_empty(), unanswered(&open))?;
        match role {
            "system" | "developer" | "user" => demand(
                message["content"].is_string() || message["content"].is_array(),
                format!("messages[{at}].content: expected a string or an array"),
            )?,
            "assistant" => {
                let calls = list(&message["tool_calls"]);
                demand(
                    message.get("tool_calls").is_none() || !calls.is_empty(),
                    format!("messages[{at}].tool_calls: empty array"),
                )?;
                demand(
                    !calls.is_empty() || !message["content"].is_null(),
                    format!("messages[{at}].content: expected a string, got null"),
                )?;
                for call in calls {
                    open.push(check_call(at, call)?);
                }
            }
            _ => {
                return Err(Refused::new(
                    400,
                    format!("messages[{at}].role: {role:?} is not a role"),
                ));
            }
        }
    }
    demand(open.is_empty(), unanswered(&open))
}

fn check_call(at: usize, call: &Value) -> Result<&str, Refused> {
    let id = text(&call["id"]);
    demand(
        !id.is_empty(),
        format!("messages[{at}].tool_calls: a call without an id"),
    )?;
    demand(
        call["type"] == "function",
        format!("messages[{at}].tool_calls: a call of type {}", call["type"]),
    )?;
    demand(
        super::is_tool_name(text(&call["function"]["name"])),
        format!("messages[{at}].tool_calls: a call without a name"),
    )?;
    demand(
        call["function"]["arguments"].is_string(),
        format!("messages[{at}].tool_calls: arguments are a string"),
    )?;
    Ok(id)
}

fn unanswered(open: &[&str]) -> String {
    format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
         The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    )
}

/// Converts messages to turns; consecutive tool results are one round. Also used for Ollama.
pub(super) fn turns(messages: &[Value]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages {
        let said = texts(&message["content"]);
        match (text(&message["role"]), turns.last_mut()) {
            ("user", _) => turns.extend(said.into_iter().map(Turn::User)),
            ("assistant", _) => turns.push(Turn::Assistant(said.join("\n"))),
            ("tool", Some(Turn::Results(results))) => results.push(said.join("\n")),
            ("tool", _) => turns.push(Turn::Results(vec![said.join("\n")])),
            _ => {}
        }
    }
    turns
}

fn head(reply: &Reply, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-fake-{}", reply.number), "object": object, "created": SECONDS,
        "model": reply.model, "system_fingerprint": "fp_fake",
    })
}

fn calls(reply: &Reply) -> Vec<Value> {
    let calls = reply.calls.iter().enumerate();
    calls
        .map(|(at, call)| {
            json!({
                "id": format!("call_fake_{}_{at}", reply.number), "type": "function",
                "function": {"name": call.name, "arguments": call.arguments.to_string()},
            })
        })
        .collect()
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "stop",
        Stop::Calls => "tool_calls",
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
    }
}

fn cost(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    })
}
