//! Requests that the real services refuse.

use serde_json::{Value, json};
use tertulia_testkit::provider::{Api, FakeProvider};

use super::client::{KEY, http, wait};

/// Sends a body as it is: the status, and the words of the error.
fn send(provider: &FakeProvider, api: Api, body: &Value, authorised: bool) -> (u16, String) {
    let base = provider.base_url(api);
    let client = http();
    let (url, name, value) = match api {
        Api::Anthropic => (format!("{base}/v1/messages"), "x-api-key", KEY.to_owned()),
        Api::OpenAi => (
            format!("{base}/chat/completions"),
            "authorization",
            format!("Bearer {KEY}"),
        ),
        Api::Gemini => (
            format!("{base}/v1beta/models/m:generateContent"),
            "x-goog-api-key",
            KEY.to_owned(),
        ),
        Api::Ollama => (format!("{base}/api/chat"), "x-nothing", String::new()),
    };
    let mut request = client.post(url).body(body.to_string());
    if api == Api::Anthropic {
        request = request.header("anthropic-version", "2023-06-01");
    }
    if authorised {
        request = request.header(name, value);
    }
    wait(async {
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    })
}

/// Each of the conversations is refused with words like these; where there are none, it is answered.
fn check(api: Api, cases: &[(Value, &str)]) {
    let provider = FakeProvider::start();
    for (body, words) in cases {
        let (status, answer) = send(&provider, api, body, true);
        let expected = if words.is_empty() { 200 } else { 400 };
        assert_eq!(status, expected, "{body}\n{answer}");
        assert!(answer.contains(words), "{body}\n{answer}");
    }
}

#[test]
fn strangers_are_sent_away() {
    let provider = FakeProvider::start();
    for (api, expected) in [
        (Api::Anthropic, 401),
        (Api::OpenAi, 401),
        (Api::Gemini, 403),
    ] {
        assert_eq!(send(&provider, api, &json!({}), false).0, expected);
    }
}

#[test]
fn a_slip_in_a_directive_is_no_answer() {
    let provider = FakeProvider::start();
    let body = json!({"model": "m", "stream": false, "messages": [{"role": "user", "content": "[[sya:x]]"}]});
    let (status, answer) = send(&provider, Api::Ollama, &body, true);
    assert_eq!(status, 400);
    assert!(answer.contains("sya"), "{answer}");
}

/// A conversation with Anthropic, and what stands in one.
fn anthropic(messages: &[Value]) -> Value {
    json!({"model": "m", "max_tokens": 9, "messages": messages})
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn ai(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": {}})
}

fn tool_result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
}

#[test]
fn anthropic_wants_its_fields_and_its_own_thoughts() {
    let hi = || user(json!("hi"));
    let mut thinking = anthropic(&[hi()]);
    thinking["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    let call = ai(json!([tool_use("a_thought")]));
    let mut unthought = anthropic(&[hi(), call, user(json!([tool_result("a_thought")]))]);
    unthought["thinking"] = json!({"type": "adaptive"});
    let mut tools = anthropic(&[hi()]);
    tools["tools"] = json!([{"name": "a b", "input_schema": {"type": "object"}}]);
    let forged = ai(json!([{"type": "thinking", "thinking": "x", "signature": "y"}]));
    let system = json!({"role": "system", "content": "x"});
    check(
        Api::Anthropic,
        &[
            (json!({"model": "m", "messages": [hi()]}), "max_tokens"),
            (json!({"max_tokens": 9, "messages": [hi()]}), "model"),
            (anthropic(&[]), "at least one message"),
            (anthropic(&[ai(json!("hi"))]), "first message"),
            (anthropic(&[system]), "Unexpected role"),
            (anthropic(&[user(json!(" "))]), "non-whitespace"),
            (anthropic(&[hi(), ai(json!([])), hi()]), "non-empty content"),
            (anthropic(&[hi(), ai(json!("x "))]), "trailing whitespace"),
            (anthropic(&[hi(), hi()]), ""),
            (anthropic(&[hi(), forged, hi()]), "Invalid `signature`"),
            (thinking, "greater than `thinking.budget_tokens`"),
            (unthought, "Expected `thinking`"),
            (tools, "no name of a tool"),
        ],
    );
    let provider = FakeProvider::start();
    let url = format!("{}/v1/messages", provider.base_url(Api::Anthropic));
    let request = http().post(url).header("x-api-key", KEY);
    let status = wait(async { request.send().await.unwrap().status().as_u16() });
    assert_eq!(status, 400, "without anthropic-version");
}

#[test]
fn anthropic_wants_every_call_answered_at_once() {
    let hi = || user(json!("hi"));
    let calls = |ids: &[&str]| ai(ids.iter().copied().map(tool_use).collect());
    let results = |ids: &[&str]| user(ids.iter().copied().map(tool_result).collect());
    let late = user(json!([{"type": "text", "text": "x"}, tool_result("a")]));
    let (two, one) = (calls(&["a", "b"]), calls(&["a"]));
    let talk = |rest: &[&Value]| {
        let messages = rest.iter().map(|message| (*message).clone());
        anthropic(&[vec![hi()], messages.collect()].concat())
    };
    check(
        Api::Anthropic,
        &[
            (talk(&[&one, &results(&["a"])]), ""),
            (talk(&[&two, &results(&["a"]), &results(&["b"])]), ""),
            (talk(&[&one]), "without `tool_result`"),
            (talk(&[&one, &hi()]), "without `tool_result`"),
            (talk(&[&two, &results(&["a"])]), "immediately after: b"),
            (
                talk(&[&ai(json!("x")), &results(&["a"])]),
                "unexpected `tool_use_id`",
            ),
            (talk(&[&one, &late]), "come first"),
            (talk(&[&calls(&["c#a"]), &results(&["c#a"])]), "is no id"),
            (talk(&[&calls(&["a", "a"]), &results(&["a"])]), "unique"),
        ],
    );
}

#[test]
fn openai_wants_every_call_answered() {
    let talk = |messages: Value| json!({"model": "m", "messages": messages});
    let hi = || json!({"role": "user", "content": "hi"});
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let calls = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let mut unwritten = call("a");
    unwritten["function"]["arguments"] = json!({});
    check(
        Api::OpenAi,
        &[
            (json!({"messages": [hi()]}), "model"),
            (talk(json!([])), "empty array"),
            (
                talk(json!([{"role": "robot", "content": "x"}])),
                "not a role",
            ),
            (
                talk(json!([hi(), {"role": "assistant", "content": null}, hi()])),
                "got null",
            ),
            (
                talk(json!([
                    hi(),
                    calls(json!([call("a"), call("b")])),
                    result("b"),
                    result("a")
                ])),
                "",
            ),
            (
                talk(json!([
                    hi(),
                    calls(json!([call("a"), call("b")])),
                    result("b")
                ])),
                "response messages: a",
            ),
            (
                talk(json!([hi(), calls(json!([call("a")])), hi()])),
                "response messages: a",
            ),
            (talk(json!([hi(), result("a")])), "must be a response"),
            (talk(json!([hi(), calls(json!([])), hi()])), "empty array"),
            (
                talk(json!([hi(), calls(json!([unwritten])), result("a")])),
                "arguments are a string",
            ),
        ],
    );
}

#[test]
fn gemini_wants_as_many_responses_as_calls() {
    let talk = |contents: Value| json!({"contents": contents});
    let user = |parts: Value| json!({"role": "user", "parts": parts});
    let model = |parts: Value| json!({"role": "model", "parts": parts});
    let hi = || user(json!([{"text": "hi"}]));
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let result =
        |name: &str| json!({"functionResponse": {"name": name, "response": {"output": "x"}}});
    let mut forged = call("a");
    forged["thoughtSignature"] = json!("forged");
    check(
        Api::Gemini,
        &[
            (talk(json!([])), "not specified"),
            (
                talk(json!([{"role": "assistant", "parts": [{"text": "x"}]}])),
                "valid role",
            ),
            (talk(json!([user(json!([]))])), "must not be empty"),
            (talk(json!([user(json!([{"text": ""}]))])), "required oneof"),
            (
                talk(json!([hi(), model(json!([{"text": "x"}]))])),
                "end with a user role",
            ),
            (
                talk(json!([
                    hi(),
                    model(json!([call("a"), call("b")])),
                    user(json!([result("a"), result("b")]))
                ])),
                "",
            ),
            (
                talk(json!([
                    hi(),
                    model(json!([call("a"), call("b")])),
                    user(json!([result("a")]))
                ])),
                "equal to the number",
            ),
            (
                talk(json!([
                    hi(),
                    model(json!([call("a")])),
                    user(json!([result("b")]))
                ])),
                "equal to the number",
            ),
            (
                talk(json!([hi(), user(json!([result("a")]))])),
                "equal to the number",
            ),
            (
                talk(json!([
                    model(json!([call("a")])),
                    user(json!([result("a")]))
                ])),
                "immediately after a user turn",
            ),
            (
                talk(json!([
                    hi(),
                    model(json!([forged])),
                    user(json!([result("a")]))
                ])),
                "Corrupted",
            ),
        ],
    );
}

#[test]
fn ollama_wants_objects_as_arguments() {
    let talk = |messages: Value| json!({"model": "m", "stream": false, "messages": messages});
    let call = |arguments: Value| json!({"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": arguments}}]});
    check(
        Api::Ollama,
        &[
            (
                json!({"messages": [{"role": "user", "content": "hi"}]}),
                "model is required",
            ),
            (
                talk(json!([{"role": "model", "content": "hi"}])),
                "invalid role",
            ),
            (
                talk(json!([{"role": "user", "content": ["hi"]}])),
                "cannot unmarshal",
            ),
            (talk(json!([call(json!("{}"))])), "cannot unmarshal"),
            (talk(json!([call(json!({}))])), ""),
        ],
    );
}
