//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Frame, MOMENT, Part, Refused, Wire, argument_pieces, check_tool, demand, list, text};
use crate::provider::talk::{Reply, Stop, Talk, Turn, signature, tokens};
use crate::provider::{MODELS, Request};

/// Suffix of the ids of tool calls that came with thinking, which must then be sent back.
const THOUGHT: &str = "_thought";

pub struct Anthropic;

impl Wire for Anthropic {
    fn read(&self, request: &Request) -> Result<Talk, Refused> {
        check_caller(request)?;
        let body = &request.body;
        demand(body.is_object(), "The request body is not valid JSON")?;
        demand(body["model"].is_string(), "model: Field required")?;
        demand(
            body["max_tokens"].as_u64().is_some_and(|n| n > 0),
            "max_tokens: Field required",
        )?;
        check_thinking(body)?;
        let marks = body.to_string().matches("\"cache_control\"").count();
        demand(
            marks <= 4,
            "A maximum of 4 blocks with cache_control may be provided.",
        )?;
        for (at, tool) in list(&body["tools"]).iter().enumerate() {
            check_tool(
                &format!("tools.{at}.custom"),
                &tool["name"],
                &tool["input_schema"],
            )?;
        }
        let messages = list(&body["messages"]);
        demand(
            !messages.is_empty(),
            "messages: at least one message is required",
        )?;
        let said = merged(messages)?;
        check_calls(&said)?;
        check_thoughts(&said, thinks(body))?;
        Ok(Talk {
            model: text(&body["model"]).to_owned(),
            stream: body["stream"] == true,
            wants_usage: true,
            messages: messages.len(),
            system: super::texts(&body["system"]).join("\n"),
            turns: said.iter().flat_map(turns).collect(),
        })
    }

    fn look_up(&self, request: &Request) -> Result<Value, Refused> {
        check_caller(request)?;
        if request.path != "/v1/models" {
            return Err(Refused::new(404, "Not found"));
        }
        let models = MODELS
            .map(|id| json!({"type": "model", "id": id, "display_name": id, "created_at": MOMENT}));
        Ok(json!({"data": models, "has_more": false, "first_id": MODELS[0], "last_id": MODELS[1]}))
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut message = opening(reply);
        message["content"] = blocks(reply).into();
        message["stop_reason"] = stop_reason(reply.stop).into();
        if let Some(usage) = reply.usage {
            message["usage"] = json!({"input_tokens": usage.input, "output_tokens": usage.output});
        }
        message
    }

    fn frames(&self, _: &Talk, reply: &Reply) -> Vec<Frame> {
        let mut start = opening(reply);
        let mut delta =
            json!({"delta": {"stop_reason": stop_reason(reply.stop), "stop_sequence": null}});
        if let Some(usage) = reply.usage {
            start["usage"] = json!({"input_tokens": usage.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1});
            delta["usage"] = json!({"output_tokens": usage.output});
        }
        let mut frames = vec![
            named(Part::Frame, "message_start", json!({"message": start})),
            named(Part::Frame, "ping", json!({})),
        ];
        for (index, block) in blocks(reply).iter().enumerate() {
            frames.extend(block_frames(index, block));
        }
        frames.push(named(Part::Close, "message_delta", delta));
        frames.push(named(Part::Close, "message_stop", json!({})));
        frames
    }

    fn error(&self, status: u16, message: &str) -> Value {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"})
    }

    fn complaint(&self, status: u16, model: &str, key: &str) -> String {
        match status {
            401 => format!("invalid x-api-key: {key}"),
            404 => format!("model: {model}"),
            413 => "Request exceeds the maximum size".into(),
            429 => "This request would exceed your organization's rate limit".into(),
            529 => "Overloaded".into(),
            500.. => "Internal server error".into(),
            _ => "the request was not understood".into(),
        }
    }

    fn overflow(&self) -> &'static str {
        "prompt is too long: 250000 tokens > 200000 maximum"
    }

    fn error_event(&self) -> String {
        format!("event: error\ndata: {}\n\n", self.error(529, "Overloaded"))
    }

    fn broken_event(&self) -> String {
        "event: content_block_delta\ndata: {\"type\": \"content_block_delta\", \"index\n\n"
            .to_owned()
    }
}

fn check_caller(request: &Request) -> Result<(), Refused> {
    if request.key().is_none() {
        return Err(Refused::new(401, "x-api-key header is required"));
    }
    demand(
        request.header("anthropic-version").is_some(),
        "anthropic-version: header is required",
    )
}

fn thinks(body: &Value) -> bool {
    matches!(text(&body["thinking"]["type"]), "enabled" | "adaptive")
}

fn check_thinking(body: &Value) -> Result<(), Refused> {
    if body["thinking"]["type"] != "enabled" {
        return Ok(());
    }
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or(0);
    demand(
        budget >= 1024,
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    )?;
    demand(
        body["max_tokens"]
            .as_u64()
            .is_some_and(|most| most > budget),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    )
}

/// Consecutive messages of one role.
struct Said {
    user: bool,
    blocks: Vec<Value>,
}

impl Said {
    fn of_type(&self, kind: &str) -> Vec<&Value> {
        let blocks = self.blocks.iter();
        blocks.filter(|block| block["type"] == kind).collect()
    }
}

/// Merges consecutive messages of one role, as the service does.
fn merged(messages: &[Value]) -> Result<Vec<Said>, Refused> {
    let mut said: Vec<Said> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let user = match text(&message["role"]) {
            "user" => true,
            "assistant" => false,
            role => {
                return Err(Refused::new(
                    400,
                    format!("messages: Unexpected role {role:?}"),
                ));
            }
        };
        demand(
            at > 0 || user,
            "messages: first message must use the \"user\" role",
        )?;
        let blocks = match &message["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks.clone(),
            _ => {
                return Err(Refused::new(
                    400,
                    format!("messages.{at}.content: Field required"),
                ));
            }
        };
        demand(
            !blocks.is_empty(),
            format!("messages.{at}: all messages must have non-empty content"),
        )?;
        let empty =
            |block: &Value| block["type"] == "text" && text(&block["text"]).trim().is_empty();
        demand(
            !blocks.iter().any(empty),
            "messages: text content blocks must contain non-whitespace text",
        )?;
        match said.last_mut().filter(|last| last.user == user) {
            Some(last) => last.blocks.extend(blocks),
            None => said.push(Said { user, blocks }),
        }
    }
    if let Some(last) = said.last().filter(|last| !last.user) {
        let end = last
            .blocks
            .last()
            .map(|block| text(&block["text"]))
            .unwrap_or_default();
        demand(
            end.trim_end() == end,
            "messages: final assistant content cannot end with trailing whitespace",
        )?;
    }
    Ok(said)
}

/// Checks that every tool call is answered by the next message, and that there are no other
/// results.
fn check_calls(said: &[Said]) -> Result<(), Refused> {
    let mut seen: Vec<&str> = Vec::new();
    let nobody = Said {
        user: true,
        blocks: Vec::new(),
    };
    for (at, speech) in said.iter().enumerate() {
        let before = at.checked_sub(1).map_or(&nobody, |before| &said[before]);
        let after = said.get(at + 1).unwrap_or(&nobody);
        for call in speech.of_type("tool_use") {
            let id = text(&call["id"]);
            demand(
                !speech.user,
                format!("messages.{at}: `tool_use` blocks can only be in `assistant` messages"),
            )?;
            demand(
                is_id(id),
                format!("messages.{at}: tool_use.id: {id:?} is no id"),
            )?;
            demand(
                call["input"].is_object(),
                format!("messages.{at}: tool_use.input: Input should be a valid dictionary"),
            )?;
            demand(
                !seen.contains(&id),
                "messages: `tool_use` ids must be unique",
            )?;
            seen.push(id);
            let answered = after
                .of_type("tool_result")
                .iter()
                .any(|result| result["tool_use_id"] == id);
            demand(
                answered,
                format!(
                    "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
                ),
            )?;
        }
        let results = speech.of_type("tool_result");
        let first = speech.blocks.iter().take(results.len());
        demand(
            first.filter(|block| block["type"] == "tool_result").count() == results.len(),
            format!("messages.{at}: `tool_result` blocks come first"),
        )?;
        for result in results {
            let id = text(&result["tool_use_id"]);
            let asked = before
                .of_type("tool_use")
                .iter()
                .any(|call| call["id"] == id);
            demand(
                asked,
                format!(
                    "messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
                ),
            )?;
        }
    }
    Ok(())
}

fn is_id(id: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !id.is_empty() && id.chars().all(allowed)
}

/// Checks that thinking is sent back unchanged, and that it precedes the tool calls of the current
/// turn that came with it.
fn check_thoughts(said: &[Said], thinks: bool) -> Result<(), Refused> {
    let asked = |speech: &Said| speech.user && !speech.of_type("text").is_empty();
    let running = said.iter().rposition(asked).unwrap_or(0);
    for (at, speech) in said.iter().enumerate() {
        for block in speech.of_type("thinking") {
            demand(
                block["signature"] == signature(text(&block["thinking"])).as_str(),
                format!("messages.{at}: Invalid `signature` in `thinking` block"),
            )?;
        }
        let thoughtful = |call: &&Value| text(&call["id"]).ends_with(THOUGHT);
        if thinks && at > running && speech.of_type("tool_use").iter().any(thoughtful) {
            let first = text(&speech.blocks[0]["type"]);
            demand(
                first == "thinking",
                format!(
                    "messages.{at}: Expected `thinking` or `redacted_thinking`, but found `{first}`"
                ),
            )?;
        }
    }
    Ok(())
}

fn turns(said: &Said) -> Vec<Turn> {
    let words = said.of_type("text").into_iter();
    let words = words.map(|block| text(&block["text"]).to_owned());
    if !said.user {
        return vec![Turn::Assistant(words.collect::<Vec<_>>().join("\n"))];
    }
    let results = said.of_type("tool_result").into_iter();
    let results: Vec<String> = results
        .map(|result| super::texts(&result["content"]).join("\n"))
        .collect();
    let mut turns = Vec::new();
    if !results.is_empty() {
        turns.push(Turn::Results(results));
    }
    turns.extend(words.map(Turn::User));
    turns
}

fn opening(reply: &Reply) -> Value {
    json!({
        "id": format!("msg_fake_{}", reply.number), "type": "message", "role": "assistant",
        "model": reply.model, "content": [], "stop_reason": null, "stop_sequence": null,
    })
}

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::Calls => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
    }
}

fn blocks(reply: &Reply) -> Vec<Value> {
    let mut blocks = Vec::new();
    let thought = &reply.thinking;
    if !thought.is_empty() {
        blocks.push(
            json!({"type": "thinking", "thinking": thought, "signature": signature(thought)}),
        );
    }
    if !reply.text.is_empty() {
        blocks.push(json!({"type": "text", "text": reply.text}));
    }
    let mark = if thought.is_empty() { "" } else { THOUGHT };
    for (at, call) in reply.calls.iter().enumerate() {
        let id = format!("toolu_fake_{}_{at}{mark}", reply.number);
        blocks.push(
            json!({"type": "tool_use", "id": id, "name": call.name, "input": call.arguments}),
        );
    }
    blocks
}

fn block_frames(index: usize, block: &Value) -> Vec<Frame> {
    let mut empty = block.clone();
    let mut deltas: Vec<(Part, Value)> = Vec::new();
    let mut say = |part, delta| deltas.push((part, delta));
    match text(&block["type"]) {
        "thinking" => {
            (empty["thinking"], empty["signature"]) = ("".into(), "".into());
            for token in tokens(text(&block["thinking"])) {
                say(
                    Part::Token,
                    json!({"type": "thinking_delta", "thinking": token}),
                );
            }
            say(
                Part::Frame,
                json!({"type": "signature_delta", "signature": block["signature"]}),
            );
        }
        "text" => {
            empty["text"] = "".into();
            for token in tokens(text(&block["text"])) {
                say(Part::Token, json!({"type": "text_delta", "text": token}));
            }
        }
        _ => {
            empty["input"] = json!({});
            for piece in argument_pieces(&block["input"]) {
                say(
                    Part::Token,
                    json!({"type": "input_json_delta", "partial_json": piece}),
                );
            }
        }
    }
    let start = json!({"index": index, "content_block": empty});
    let mut frames = vec![named(Part::Frame, "content_block_start", start)];
    for (part, delta) in deltas {
        let delta = json!({"index": index, "delta": delta});
        frames.push(named(part, "content_block_delta", delta));
    }
    frames.push(named(
        Part::Frame,
        "content_block_stop",
        json!({"index": index}),
    ));
    frames
}

fn named(part: Part, name: &str, mut data: Value) -> Frame {
    data["type"] = name.into();
    let text = format!("event: {name}\ndata: {data}\n\n");
    Frame { part, text }
}
