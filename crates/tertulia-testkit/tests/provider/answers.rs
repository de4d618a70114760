//! Answers that are whole.

use genai::chat::{ChatMessage, ChatRequest, ReasoningEffort, StopReason, ToolResponse};
use serde_json::json;
use tertulia_testkit::provider::{Api, FakeProvider, MODELS, UNICODE};

use super::client::{Heard, KEY, ask, ask_model, ask_plainly, http, options, say, tools, wait};

#[test]
fn words_come_back_with_the_count_of_messages() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        assert_eq!(
            say(&provider, api, "hello there").whole().text,
            "echo #1: hello there"
        );
        let request = ChatRequest::from_user("one")
            .with_system("be brief")
            .append_message(ChatMessage::assistant("two"))
            .append_message(ChatMessage::user("three"));
        assert_eq!(ask(&provider, api, request).whole().text, "echo #3: three");
        assert_eq!(
            ask_plainly(&provider, api, "at once").unwrap(),
            "echo #1: at once"
        );
        assert_eq!(say(&provider, api, "[[say:a b]]").whole().text, "a b");
        assert_eq!(
            say(&provider, api, "[[words:3]]").whole().text,
            "word1 word2 word3"
        );
        let meta = say(&provider, api, "Summarise this:\n[[fail:500]]").whole();
        assert_eq!(meta.text, "SUMMARY of 1 messages");
    }
}

#[test]
fn no_character_is_lost_between_pieces() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        assert_eq!(say(&provider, api, "some unicode").whole().text, UNICODE);
        assert_eq!(
            ask_plainly(&provider, api, "some unicode").unwrap(),
            UNICODE
        );
    }
}

#[test]
fn thoughts_and_cost_are_told() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        let heard = say(&provider, api, "[[think:let me see]] [[words:4]]").whole();
        assert_eq!(heard.reasoning, "let me see", "{api:?}");
        assert_eq!(heard.usage(), Some((4, 7)), "{api:?}");
        let heard = say(&provider, api, "[[words:4]] [[usage:none]]").whole();
        let (input, output) = heard.usage().unwrap_or_default();
        assert_eq!((input, output), (0, 0), "{api:?}");
    }
}

#[test]
fn an_answer_says_why_it_ends() {
    let provider = FakeProvider::start();
    let reason = |heard: Heard| heard.end.unwrap().captured_stop_reason.unwrap();
    for api in Api::ALL {
        let cut = reason(say(&provider, api, "[[stop:max_tokens]]").whole());
        assert!(matches!(cut, StopReason::MaxTokens(_)), "{api:?} {cut:?}");
        let done = reason(say(&provider, api, "hello").whole());
        assert!(matches!(done, StopReason::Completed(_)), "{api:?} {done:?}");
    }
}

/// Asks, runs the tools that are asked for, and goes on until there is an answer: the names that were
/// called in each round, and the answer.
fn with_tools(
    provider: &FakeProvider,
    api: Api,
    model: &str,
    words: &str,
) -> (Vec<Vec<String>>, String) {
    let mut request = ChatRequest::from_user(words).with_tools(tools());
    let options = options().with_reasoning_effort(ReasoningEffort::Budget(1024));
    let mut rounds = Vec::new();
    loop {
        let heard = ask_model(provider, api, model, request.clone(), &options).whole();
        if heard.calls.is_empty() {
            return (rounds, heard.text);
        }
        let names = heard.calls.iter().map(|call| call.fn_name.clone());
        rounds.push(names.collect());
        let calls = heard.calls.clone();
        let message = heard.end.unwrap().into_assistant_message_for_tool_use();
        request = request.append_message(message.unwrap());
        for call in calls {
            let said = format!("{} of {}", call.fn_name, call.fn_arguments["path"]);
            request = request.append_message(ToolResponse::from_tool_call(&call, said));
        }
    }
}

#[test]
fn tools_are_called_round_by_round() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        let words =
            r#"[[tool:look {"path":"a"}]] [[tools:look {"path":"b"} count {"path":"żółw [[1]]"}]]"#;
        let (rounds, answer) = with_tools(&provider, api, "m", words);
        assert_eq!(rounds, [vec!["look"], vec!["look", "count"]], "{api:?}");
        assert_eq!(answer, "tool said: count of \"żółw [[1]]\"", "{api:?}");
        let (_, answer) = with_tools(&provider, api, "m", "[[tool:look]] [[say:done]]");
        assert_eq!(answer, "done", "{api:?}");
    }
}

#[test]
fn thoughts_go_back_with_the_calls_that_they_led_to() {
    let provider = FakeProvider::start();
    for (api, model) in [
        (Api::Anthropic, "claude-sonnet-4-5"),
        (Api::OpenAi, "m"),
        (Api::Gemini, "gemini-3-pro"),
        (Api::Ollama, "m"),
    ] {
        let words = r#"[[think:hm, well]] [[tool:look {"path":"a"}]]"#;
        let (_, answer) = with_tools(&provider, api, model, words);
        assert_eq!(answer, "tool said: look of \"a\"", "{api:?}");
    }
}

#[test]
fn models_and_versions_can_be_looked_up() {
    let provider = FakeProvider::start();
    let look = |url: String, headers: &[(&str, &str)]| {
        let mut request = http().get(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        wait(async { request.send().await.unwrap().json().await.unwrap() })
    };
    let base = provider.base_url(Api::Ollama);
    let bearer = format!("Bearer {KEY}");
    let anthropic: serde_json::Value = look(
        format!("{base}/v1/models"),
        &[("x-api-key", KEY), ("anthropic-version", "2023-06-01")],
    );
    assert_eq!(anthropic["data"][1]["id"], MODELS[1]);
    assert_eq!(anthropic["has_more"], false);
    let openai = look(
        format!("{}/models", provider.base_url(Api::OpenAi)),
        &[("authorization", &bearer)],
    );
    assert_eq!(openai["object"], "list");
    assert_eq!(openai["data"][0]["id"], MODELS[0]);
    let gemini = look(format!("{base}/v1beta/models"), &[("x-goog-api-key", KEY)]);
    assert_eq!(gemini["models"][0]["name"], format!("models/{}", MODELS[0]));
    let ollama = look(format!("{base}/api/tags"), &[]);
    assert_eq!(ollama["models"][0]["name"], MODELS[0]);
    assert!(look(format!("{base}/api/version"), &[])["version"].is_string());
}

#[test]
fn requests_are_remembered() {
    let provider = FakeProvider::start();
    for api in Api::ALL {
        say(&provider, api, "hello").whole();
    }
    let requests = provider.requests();
    let apis: Vec<Api> = requests.iter().map(|request| request.api).collect();
    assert_eq!(apis, Api::ALL);
    let paths: Vec<&str> = requests
        .iter()
        .map(|request| request.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "/v1/messages",
            "/v1/chat/completions",
            "/v1beta/models/m:streamGenerateContent",
            "/api/chat"
        ]
    );
    assert_eq!(
        requests[0].body["messages"],
        json!([{"role": "user", "content": "hello"}])
    );
    for request in &requests[..3] {
        assert_eq!(request.key(), Some(KEY));
        assert_eq!(request.header("content-type"), Some("application/json"));
    }
    assert_eq!(provider.client_gone(), 0);
}
