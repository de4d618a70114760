//! Converts a conversation into a provider's request. Providers refuse what a conversation may
//! contain: two messages of one role in a row, a message without text, an assistant's message
//! first. No I/O.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use genai::chat::{
    CacheControl, ChatMessage, ChatRequest, ChatRole, ContentPart, MessageContent, Tool,
    ToolCall as GenaiCall, ToolResponse,
};
use serde_json::{Map, Value, json};

use super::calls::{is_ours, remembered};
use super::provider::Provider;
use crate::{AgentRequest, PromptMessage, ToolSpec};
use tertulia_core::entry::{Role, ToolCall};

/// Replaces the messages before an assistant's message that would come first.
const BEFORE: &str = "(What was said before is not shown.)";
/// Stands for the result of a call that has none: imported sessions may end in the middle of one.
const NO_RESULT: &str = "(The result of this call was not recorded.)";
/// Replaces the prompt if the last message is the assistant's.
const GO_ON: &str = "Go on.";

/// Tells a model without tools what its system prompt does not know.
const NO_TOOLS: &str =
    "You cannot use tools in this session, whatever is said above: answer without them.";

/// Builds the provider's request, with tools or for a model that knows none.
pub(super) fn build(
    provider: Provider,
    system: Option<&str>,
    question: &AgentRequest,
    has_tools: bool,
) -> ChatRequest {
    let mut draft = Draft {
        provider,
        messages: Vec::new(),
        systems: system
            .into_iter()
            .chain(question.part.as_ref().map(|part| part.system.as_str()))
            .map(str::to_owned)
            .collect(),
        open: HashMap::new(),
        used: HashSet::new(),
        answered: question
            .messages
            .iter()
            .filter_map(|said| said.answers.clone())
            .collect(),
    };
    for said in &question.messages {
        match said.role {
            Role::System => draft.systems.push(said.content.clone()),
            Role::User => draft.user(&said.content),
            Role::Assistant => draft.assistant(said),
            Role::Tool => draft.result(said),
        }
    }
    let is_told_of_tools = !has_tools && system.is_some() && !question.tools.is_empty();
    draft
        .systems
        .extend(is_told_of_tools.then(|| NO_TOOLS.to_owned()));
    let mut request = ChatRequest::new(draft.whole());
    draft.systems.retain(|words| !words.trim().is_empty());
    if !draft.systems.is_empty() {
        request = request.with_system(draft.systems.join("\n\n"));
    }
    if has_tools && !question.tools.is_empty() {
        request = request.with_tools(question.tools.iter().map(tool));
    }
    // Nothing follows the request for a summary, so its cache would never be read.
    let is_followed = question.system.is_some() || !question.tools.is_empty();
    match provider {
        Provider::Anthropic if is_followed => with_cache_marks(request),
        _ => request,
    }
}

/// Marks up to where Anthropic caches the request, which it does nowhere else: the tools, the system
/// prompt, and the last messages of this request and of the one before it. Four marks are allowed.
/// Anthropic looks for a cached prefix only 20 blocks before a mark, hence the fourth.
fn with_cache_marks(mut request: ChatRequest) -> ChatRequest {
    if let Some(tool) = request.tools.iter_mut().flatten().last() {
        tool.cache_control = Some(CacheControl::Ephemeral);
    }
    let messages = request.messages.iter_mut().rev();
    for message in messages
        .filter(|message| message.role == ChatRole::User)
        .take(2)
    {
        message.options = Some(CacheControl::Ephemeral.into());
    }
    if let Some(system) = request.system.take() {
        let system = ChatMessage::system(system).with_options(CacheControl::Ephemeral);
        request.messages.insert(0, system);
    }
    request
}

fn tool(spec: &ToolSpec) -> Tool {
    Tool::new(spec.name.clone())
        .with_description(spec.description.clone())
        .with_schema(spec.parameters.clone())
}

/// A call as the provider knows it.
struct Known {
    id: String,
    name: String,
}

struct Draft {
    provider: Provider,
    messages: Vec<ChatMessage>,
    systems: Vec<String>,
    /// Calls so far, by tertulia's ids.
    open: HashMap<String, Known>,
    /// Ids that the provider has seen.
    used: HashSet<String>,
    /// Calls that have a result, by tertulia's ids.
    answered: HashSet<String>,
}

impl Draft {
    fn last(&mut self, role: &ChatRole) -> Option<&mut MessageContent> {
        let last = self.messages.last_mut()?;
        (last.role == *role).then_some(&mut last.content)
    }

    fn user(&mut self, words: &str) {
        if words.trim().is_empty() {
            return;
        }
        match self.last(&ChatRole::User) {
            Some(content) => add_words(content, words),
            None => self.messages.push(ChatMessage::user(words)),
        }
    }

    fn assistant(&mut self, said: &PromptMessage) {
        if let Some(content) = remembered(self.provider, said.memo.as_ref(), &said.calls) {
            let content = self.with_wire_ids(content);
            self.messages.push(ChatMessage::assistant(content));
            return self.answer_for(said);
        }
        let silent = said.content.trim().is_empty();
        if silent && said.calls.is_empty() {
            return;
        }
        let calls: Vec<GenaiCall> = said.calls.iter().map(|call| self.call(call)).collect();
        let content = match self.last(&ChatRole::Assistant) {
            Some(content) => content,
            None => {
                let empty = MessageContent::from_parts(Vec::new());
                self.messages.push(ChatMessage::assistant(empty));
                match self.messages.last_mut() {
                    Some(message) => &mut message.content,
                    None => return,
                }
            }
        };
        if !silent {
            add_words(content, &said.content);
        }
        content.extend(calls.into_iter().map(ContentPart::ToolCall));
        self.answer_for(said);
    }

    /// Adds results for calls that have none: all providers refuse such a call.
    fn answer_for(&mut self, said: &PromptMessage) {
        for call in &said.calls {
            if !self.answered.contains(&call.id) {
                self.result(&PromptMessage {
                    answers: Some(call.id.clone()),
                    ..PromptMessage::plain(Role::Tool, &call.name, NO_RESULT)
                });
            }
        }
    }

    fn call(&mut self, call: &ToolCall) -> GenaiCall {
        GenaiCall {
            call_id: self.wire_id(&call.id, &call.name),
            fn_name: call.name.clone(),
            fn_arguments: object(&call.arguments),
            thought_signatures: None,
        }
    }

    fn with_wire_ids(&mut self, content: MessageContent) -> MessageContent {
        let parts = content.into_parts().into_iter().map(|part| match part {
            ContentPart::ToolCall(call) => ContentPart::ToolCall(GenaiCall {
                call_id: self.wire_id(&call.call_id, &call.fn_name),
                fn_arguments: object(&call.fn_arguments),
                ..call
            }),
            part => part,
        });
        // Anthropic refuses blank text.
        let parts =
            parts.filter(|part| part.as_text().is_none_or(|words| !words.trim().is_empty()));
        MessageContent::from_parts(parts.collect::<Vec<_>>())
    }

    /// Returns the id under which the provider sees a call. A conversation may hold calls of other
    /// providers, with ids of another form.
    fn wire_id(&mut self, id: &str, name: &str) -> String {
        let count = self.used.len();
        let mut wire = match self.provider {
            // genai takes this form for its own and does not send it: Gemini gave no id.
            Provider::Gemini if is_ours(id) => format!("call#{name}#{count}"),
            Provider::Anthropic => id
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || c == '-' {
                        c
                    } else {
                        '_'
                    }
                })
                .collect(),
            _ => id.to_owned(),
        };
        if wire.is_empty() || self.used.contains(&wire) {
            wire = format!("{wire}_{count}");
        }
        self.used.insert(wire.clone());
        let known = Known {
            id: wire.clone(),
            name: name.to_owned(),
        };
        self.open.insert(id.to_owned(), known);
        wire
    }

    fn result(&mut self, said: &PromptMessage) {
        let known = said.answers.as_ref().and_then(|id| self.open.get(id));
        // All providers refuse a result without its call.
        let Some(known) = known else { return };
        let result = ToolResponse::new(known.id.clone(), said.content.clone())
            .with_fn_name(known.name.clone());
        // Anthropic wants all results of a message in the next one, in the role of the user. Ollama
        // wants each in its own message.
        let role = match self.provider {
            Provider::Anthropic => ChatRole::User,
            _ => ChatRole::Tool,
        };
        let joined = self.provider != Provider::Ollama;
        match self.last(&role) {
            Some(content) if joined && content.iter().all(ContentPart::is_tool_response) => {
                content.push(result);
            }
            _ => self.messages.push(ChatMessage::new(role, result)),
        }
    }

    fn whole(&mut self) -> Vec<ChatMessage> {
        let mut messages = std::mem::take(&mut self.messages);
        let strict = matches!(self.provider, Provider::Anthropic | Provider::Gemini);
        let first = messages.first().map(|message| &message.role);
        if strict && first == Some(&ChatRole::Assistant) {
            messages.insert(0, ChatMessage::user(BEFORE));
        }
        match messages.last().map(|message| &message.role) {
            Some(ChatRole::User | ChatRole::Tool) => {}
            _ => messages.push(ChatMessage::user(GO_ON)),
        }
        messages
    }
}

/// Appends text to the last text part, or adds a part after any other.
fn add_words(content: &mut MessageContent, words: &str) {
    match content.iter_mut().last() {
        Some(ContentPart::Text(text)) => {
            text.push_str("\n\n");
            text.push_str(words);
        }
        _ => content.push(words),
    }
}

/// Converts arguments to an object: providers accept nothing else.
fn object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => Value::Object(Map::new()),
        other => json!({"arguments": other}),
    }
}
