//! Google Gemini.

use serde_json::{Value, json};

use super::{Frame, Part, Refused, Wire, demand, event, is_tool_name, list, text, texts};
use crate::provider::talk::{Reply, Stop, Talk, Turn, Usage, signature, tokens};
use crate::provider::{MODELS, Request};

/// Value that a client may send instead of a signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub struct Gemini;

impl Wire for Gemini {
    fn read(&self, request: &Request) -> Result<Talk, Refused> {
        check_caller(request)?;
        let called = request.path.strip_prefix("/v1beta/models/");
        let Some((model, verb)) = called.and_then(|called| called.split_once(':')) else {
            return Err(Refused::new(404, "Requested entity was not found."));
        };
        let stream = match verb {
            "streamGenerateContent" => true,
            "generateContent" => false,
            _ => return Err(Refused::new(404, "Requested entity was not found.")),
        };
        demand(
            !stream || request.query.contains("alt=sse"),
            "the fake streams with alt=sse only",
        )?;
        let body = &request.body;
        demand(body.is_object(), "Invalid JSON payload received.")?;
        for tool in list(&body["tools"]) {
            for function in list(&tool["functionDeclarations"]) {
                demand(
                    is_tool_name(text(&function["name"])),
                    "Invalid function name.",
                )?;
            }
        }
        let contents = list(&body["contents"]);
        demand(
            !contents.is_empty(),
            "* GenerateContentRequest.contents: contents is not specified",
        )?;
        check_contents(contents, model)?;
        Ok(Talk {
            model: model.to_owned(),
            stream,
            wants_usage: true,
            messages: contents.len(),
            system: texts(&body["systemInstruction"]["parts"]).join("\n"),
            turns: contents.iter().flat_map(turns).collect(),
        })
    }

    fn look_up(&self, request: &Request) -> Result<Value, Refused> {
        check_caller(request)?;
        if request.path != "/v1beta/models" {
            return Err(Refused::new(404, "Requested entity was not found."));
        }
        let models = MODELS.map(|name| {
            json!({
                "name": format!("models/{name}"), "displayName": name, "inputTokenLimit": 1_000_000,
                "outputTokenLimit": 8192, "supportedGenerationMethods": ["generateContent", "countTokens"],
            })
        });
        Ok(json!({"models": models}))
    }

    fn whole(&self, reply: &Reply) -> Value {
        if blocked(reply) {
            return block(reply);
        }
        let mut parts = Vec::new();
        if !reply.thinking.is_empty() {
            parts.push(json!({"text": reply.thinking, "thought": true}));
        }
        if !reply.text.is_empty() {
            parts.push(json!({"text": reply.text}));
        }
        parts.extend(calls(reply));
        document(reply, Some(parts), Some(finish_reason(reply.stop)))
    }

    fn frames(&self, _: &Talk, reply: &Reply) -> Vec<Frame> {
        if blocked(reply) {
            return vec![event(Part::Close, &block(reply))];
        }
        let token = |part: Value| event(Part::Token, &document(reply, Some(vec![part]), None));
        let mut frames = Vec::new();
        for thought in tokens(&reply.thinking) {
            frames.push(token(json!({"text": thought, "thought": true})));
        }
        for word in tokens(&reply.text) {
            frames.push(token(json!({"text": word})));
        }
        frames.extend(calls(reply).into_iter().map(token));
        let end = document(reply, None, Some(finish_reason(reply.stop)));
        frames.push(event(Part::Close, &end));
        frames
    }

    fn error(&self, status: u16, message: &str) -> Value {
        let name = match status {
            400 | 413 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            _ => "INTERNAL",
        };
        json!({"error": {"code": status, "message": message, "status": name}})
    }

    fn complaint(&self, status: u16, model: &str, key: &str) -> String {
        match status {
            401 => format!("API key not valid: {key}. Please pass a valid API key."),
            403 => "The caller does not have permission".into(),
            404 => format!("models/{model} is not found for API version v1beta"),
            413 => "Request payload size exceeds the limit: 20971520 bytes.".into(),
            429 => "You exceeded your current quota.".into(),
            503 => "The model is overloaded. Please try again later.".into(),
            500.. => "An internal error has occurred.".into(),
            _ => "Request contains an invalid argument.".into(),
        }
    }

    fn overflow(&self) -> &'static str {
        "The input token count (1250000) exceeds the maximum number of tokens allowed (1048576)."
    }

    fn error_event(&self) -> String {
        let error = self.error(503, "The model is overloaded. Please try again later.");
        event(Part::Frame, &error).text
    }
}

/// Requires the key in the header: in the URL it would end up in logs.
fn check_caller(request: &Request) -> Result<(), Refused> {
    match request.key() {
        Some(_) => Ok(()),
        None => Err(Refused::new(
            403,
            "Method doesn't allow unregistered callers.",
        )),
    }
}

/// Returns the values of a field in the parts of a content.
fn having<'a>(content: &'a Value, field: &str) -> Vec<&'a Value> {
    let parts = list(&content["parts"]).iter();
    parts.filter_map(|part| part.get(field)).collect()
}

fn check_contents(contents: &[Value], model: &str) -> Result<(), Refused> {
    let mut before: Option<&Value> = None;
    let running = contents
        .iter()
        .rposition(|content| is_user(content) && !having(content, "text").is_empty());
    for (at, content) in contents.iter().enumerate() {
        let role = content["role"].as_str().unwrap_or("user");
        demand(
            matches!(role, "user" | "model"),
            "Please use a valid role: user, model.",
        )?;
        check_parts(at, content)?;
        let calls = having(content, "functionCall");
        if !calls.is_empty() {
            demand(!is_user(content), "a function call of the user")?;
            demand(
                before.is_some_and(is_user),
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            )?;
            check_signatures(content, model, running.is_none_or(|running| at > running))?;
        }
        check_responses(before, content)?;
        before = Some(content);
    }
    demand(
        before.is_some_and(|last| is_user(last) && having(last, "functionCall").is_empty()),
        "Please ensure that multiturn requests end with a user role or a function response.",
    )
}

fn is_user(content: &Value) -> bool {
    content["role"] != "model"
}

fn check_parts(at: usize, content: &Value) -> Result<(), Refused> {
    let parts = list(&content["parts"]);
    demand(
        !parts.is_empty(),
        format!("* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty."),
    )?;
    for (n, part) in parts.iter().enumerate() {
        let filled = ["text", "functionCall", "functionResponse", "inlineData"];
        let filled = filled
            .iter()
            .any(|field| part.get(*field).is_some_and(|value| *value != ""));
        demand(
            filled,
            format!(
                "* GenerateContentRequest.contents[{at}].parts[{n}].data: required oneof field 'data' must have one initialized field"
            ),
        )?;
    }
    for call in having(content, "functionCall") {
        demand(
            is_tool_name(text(&call["name"])) && call["args"].is_object(),
            format!("contents[{at}]: a function call without a name or arguments"),
        )?;
    }
    for response in having(content, "functionResponse") {
        demand(
            !text(&response["name"]).is_empty(),
            format!("* contents[{at}].function_response.name: Name cannot be empty."),
        )?;
        demand(
            response["response"].is_object(),
            format!("contents[{at}]: function_response.response is an object"),
        )?;
    }
    Ok(())
}

/// Checks that each function call of the previous content is answered, in order and by name, and
/// that there are no other responses.
fn check_responses(before: Option<&Value>, content: &Value) -> Result<(), Refused> {
    let named = |parts: Vec<&Value>| -> Vec<(String, String)> {
        let parts = parts.iter();
        parts
            .map(|part| (text(&part["name"]).to_owned(), text(&part["id"]).to_owned()))
            .collect()
    };
    let asked = named(
        before
            .map(|before| having(before, "functionCall"))
            .unwrap_or_default(),
    );
    let answered = named(having(content, "functionResponse"));
    demand(
        asked == answered,
        format!(
            "Please ensure that the number of function response parts is equal to the number of function call parts \
             of the function call turn, with the same names and ids: {asked:?} was asked, {answered:?} answered."
        ),
    )
}

/// Checks that signatures are sent back unchanged; the newest models require one on the first call
/// of each step of the current turn.
fn check_signatures(content: &Value, model: &str, running: bool) -> Result<(), Refused> {
    let calls = list(&content["parts"]).iter();
    let calls = calls.filter(|part| part.get("functionCall").is_some());
    for (at, call) in calls.enumerate() {
        let name = text(&call["functionCall"]["name"]);
        match call["thoughtSignature"].as_str() {
            Some(given) => demand(
                given == NO_SIGNATURE || given == signature(name),
                "Corrupted thought signature.",
            )?,
            None => demand(
                at > 0 || !running || !model.contains("gemini-3"),
                format!(
                    "Function call is missing a thought_signature in functionCall parts: {name}"
                ),
            )?,
        }
    }
    Ok(())
}

fn turns(content: &Value) -> Vec<Turn> {
    let spoken = list(&content["parts"])
        .iter()
        .filter(|part| part["thought"] != true);
    let words = spoken
        .filter_map(|part| part["text"].as_str())
        .map(str::to_owned);
    if !is_user(content) {
        return vec![Turn::Assistant(words.collect::<Vec<_>>().join("\n"))];
    }
    let results = having(content, "functionResponse");
    let results: Vec<String> = results
        .into_iter()
        .map(|result| outcome(&result["response"]))
        .collect();
    let mut turns = Vec::new();
    if !results.is_empty() {
        turns.push(Turn::Results(results));
    }
    turns.extend(words.map(Turn::User));
    turns
}

/// Returns the text of a function response. It may be any object; clients use one of these fields.
fn outcome(response: &Value) -> String {
    let fields = ["output", "content", "result", "error"].iter();
    match fields
        .map(|field| &response[*field])
        .find(|value| !value.is_null())
    {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => response.to_string(),
    }
}

/// Returns the function calls, without ids: most models send none, so clients must not need them.
fn calls(reply: &Reply) -> Vec<Value> {
    let signed = !reply.thinking.is_empty() || reply.model.contains("gemini-3");
    let calls = reply.calls.iter().enumerate();
    calls
        .map(|(at, call)| {
            let mut part = json!({"functionCall": {"name": call.name, "args": call.arguments}});
            if signed && at == 0 {
                part["thoughtSignature"] = signature(&call.name).into();
            }
            part
        })
        .collect()
}

/// Returns true if the prompt is blocked before the answer, and not within it.
fn blocked(reply: &Reply) -> bool {
    reply.stop == Stop::Refusal && reply.text.is_empty()
}

fn block(reply: &Reply) -> Value {
    let mut document =
        json!({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": reply.model});
    if let Some(usage) = reply.usage {
        document["usageMetadata"] =
            json!({"promptTokenCount": usage.input, "totalTokenCount": usage.input});
    }
    document
}

fn document(reply: &Reply, parts: Option<Vec<Value>>, finish: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0});
    if let Some(parts) = parts {
        candidate["content"] = json!({"role": "model", "parts": parts});
    }
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    let mut document = json!({
        "candidates": [candidate], "modelVersion": reply.model,
        "responseId": format!("fake-{}", reply.number),
    });
    if let Some(usage) = reply.usage.filter(|_| finish.is_some()) {
        document["usageMetadata"] = cost(reply, usage);
    }
    document
}

/// Thinking tokens are counted separately.
fn cost(reply: &Reply, usage: Usage) -> Value {
    let thoughts = tokens(&reply.thinking).len();
    let mut cost = json!({
        "promptTokenCount": usage.input, "candidatesTokenCount": usage.output - thoughts,
        "totalTokenCount": usage.input + usage.output,
    });
    if thoughts > 0 {
        cost["thoughtsTokenCount"] = thoughts.into();
    }
    cost
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Calls => "STOP",
        Stop::MaxTokens => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
    }
}
