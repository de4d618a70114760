//! Consumes the stream of one answer: forwards it to the sink and evaluates its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use genai::chat::{ChatStream, ChatStreamEvent, StopReason, StreamEnd, ToolCall as GenaiCall};

use super::calls;
use super::provider::Provider;
use super::think_tags::{Piece, ThinkTags};
use super::trouble::Trouble;
use super::watch::Watch;
use super::wire::trouble;
use crate::{AgentEvent, AgentRequest, AgentSink, Outcome};
use tertulia_core::entry::Usage;

/// State of one answer while it streams.
pub(super) struct AnswerReader<'a> {
    pub provider: Provider,
    pub agent: &'a str,
    pub question: &'a AgentRequest,
    pub sink: &'a AgentSink,
    pub watch: Arc<Mutex<Watch>>,
    pub idle: Duration,
    pub max_tokens: Option<u32>,
    /// Whether anything of the answer has arrived.
    pub spoke: bool,
    /// Whether any text of the answer has arrived.
    pub has_text: bool,
    /// Finds thoughts in the text.
    pub tags: ThinkTags,
}

impl AnswerReader<'_> {
    /// Consumes the stream to its end.
    pub(super) async fn listen(&mut self, mut stream: ChatStream) -> Result<Outcome, Trouble> {
        let mut calls = Vec::new();
        let mut end = None;
        while end.is_none() {
            let Some(item) = stream.next().await else {
                break;
            };
            let (thoughts, failed, harmless, finished) = self.look();
            for thought in thoughts {
                self.say(AgentEvent::Reasoning(thought)).await?;
            }
            match item {
                _ if failed.is_some() => {}
                Ok(event) => self.hear(event, &mut calls, &mut end).await?,
                Err(_) if harmless => {}
                Err(error) => match trouble(error, self.idle) {
                    // The answer is complete; only the end of the stream is missing.
                    Trouble::Dropped(_) if finished => break,
                    trouble => return Err(self.refusal().unwrap_or(trouble)),
                },
            }
            if let Some(error) = failed {
                return Err(Trouble::Event(error));
            }
        }
        if let Some(piece) = self.tags.finish() {
            self.say(event(piece)).await?;
        }
        self.settle(calls, end).await
    }

    /// Returns what the watch has seen since the last call: thoughts that genai lost, an error,
    /// whether genai's own error is a false one, and whether the provider has finished.
    fn look(&self) -> (Vec<String>, Option<serde_json::Value>, bool, bool) {
        let mut watch = lock(&self.watch);
        (
            watch.take_thoughts(),
            watch.error.take(),
            watch.only_numbers,
            watch.finished,
        )
    }

    fn refusal(&self) -> Option<Trouble> {
        let watch = lock(&self.watch);
        let refused = !watch.refusal.trim().is_empty();
        refused.then(|| Trouble::Refused(watch.refusal.clone()))
    }

    async fn hear(
        &mut self,
        event: ChatStreamEvent,
        calls: &mut Vec<GenaiCall>,
        end: &mut Option<StreamEnd>,
    ) -> Result<(), Trouble> {
        match event {
            ChatStreamEvent::Chunk(chunk) => self.hear_text(chunk.content).await?,
            ChatStreamEvent::ReasoningChunk(chunk) => {
                self.say(AgentEvent::Reasoning(chunk.content)).await?;
            }
            ChatStreamEvent::ToolCallChunk(chunk) => {
                self.spoke = true;
                // Each chunk holds the whole call as far as it has arrived.
                let call = chunk.tool_call;
                match calls.iter_mut().find(|known| known.call_id == call.call_id) {
                    Some(known) => *known = call,
                    None => calls.push(call),
                }
            }
            ChatStreamEvent::End(last) => *end = Some(last),
            ChatStreamEvent::Start
            | ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Heartbeat => {}
        }
        Ok(())
    }

    /// Forwards text, or thoughts among it. Only servers of open models pass them on like this.
    async fn hear_text(&mut self, text: String) -> Result<(), Trouble> {
        match self.provider {
            Provider::OpenAi | Provider::Ollama => {
                self.spoke |= !text.is_empty();
                for piece in self.tags.push(text) {
                    self.say(event(piece)).await?;
                }
                Ok(())
            }
            Provider::Anthropic | Provider::Gemini => self.say(AgentEvent::Text(text)).await,
        }
    }

    async fn say(&mut self, event: AgentEvent) -> Result<(), Trouble> {
        match &event {
            AgentEvent::Text(words) | AgentEvent::Reasoning(words) if words.is_empty() => {
                return Ok(());
            }
            AgentEvent::Text(_) => (self.spoke, self.has_text) = (true, true),
            AgentEvent::Reasoning(_) => self.spoke = true,
            _ => {}
        }
        self.sink.say(event).await.map_err(|_| Trouble::Stopped)
    }

    /// Evaluates the end of the answer.
    async fn settle(
        &mut self,
        heard: Vec<GenaiCall>,
        end: Option<StreamEnd>,
    ) -> Result<Outcome, Trouble> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        let (finished, nameless, streamed, seen, has_data) = {
            let watch = lock(&self.watch);
            let streamed = watch.calls.clone();
            let (finished, nameless) = (watch.finished, watch.nameless);
            (finished, nameless, streamed, watch.usage, watch.has_data)
        };
        if nameless {
            let cause = "an event came without its name";
            return Err(Trouble::Garbled(cause.to_owned()));
        }
        if !has_data {
            return Err(Trouble::NoStream);
        }
        if !finished {
            return Err(Trouble::Truncated);
        }
        // Some OpenAI-compatible servers leave out the last line, and genai then reports no end.
        let (end, heard) = match end {
            Some(end) => {
                let calls = end.captured_tool_calls().unwrap_or_default();
                let calls = calls.into_iter().cloned().collect();
                (end, calls)
            }
            None => (StreamEnd::default(), heard),
        };
        let used = usage(&end).or(seen);
        if let Some(usage) = used {
            self.say(AgentEvent::Usage(usage)).await?;
        }
        let cut = self.judge(&end)?;
        let calls = calls::collect(self.provider, self.question, heard, &streamed, &end, cut);
        let is_empty = calls.calls.is_empty();
        if let Some(tool) = calls.cut_off.filter(|_| is_empty && !self.has_text) {
            let limit = self.max_tokens;
            return Err(Trouble::CutCall { tool, limit });
        }
        if cut {
            let remark = limit_remark(self.agent, self.max_tokens, used);
            self.say(AgentEvent::Remark(remark)).await?;
        }
        Ok(match is_empty {
            true => Outcome::Done,
            false => Outcome::Calls {
                calls: calls.calls,
                memo: calls.memo,
            },
        })
    }

    /// Evaluates the stop reason. Returns whether the token limit cut the answer off, or an error
    /// if it stopped for another bad reason.
    fn judge(&self, end: &StreamEnd) -> Result<bool, Trouble> {
        match &end.captured_stop_reason {
            Some(StopReason::ContentFilter(reason)) => Err(Trouble::Refused(reason.clone())),
            Some(StopReason::MaxTokens(_)) => Ok(true),
            Some(StopReason::Other(reason)) if !self.spoke => {
                Err(Trouble::Garbled(format!("it stopped with {reason}")))
            }
            _ => Ok(false),
        }
    }
}

fn event(piece: Piece) -> AgentEvent {
    match piece {
        Piece::Text(text) => AgentEvent::Text(text),
        Piece::Thought(thought) => AgentEvent::Reasoning(thought),
    }
}

fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

fn usage(end: &StreamEnd) -> Option<Usage> {
    let usage = end.captured_usage.as_ref()?;
    let count = |tokens: Option<i32>| u64::try_from(tokens.unwrap_or(0)).unwrap_or(0);
    let details = usage.prompt_tokens_details.as_ref();
    // genai's prompt tokens include cached ones for every provider.
    let used = Usage {
        estimated: false,
        input: count(usage.prompt_tokens),
        output: count(usage.completion_tokens),
        cache_read: count(details.and_then(|details| details.cached_tokens)),
        cache_written: count(details.and_then(|details| details.cache_creation_tokens)),
    };
    (used != Usage::default()).then_some(used)
}

fn limit_remark(agent: &str, max_tokens: Option<u32>, used: Option<Usage>) -> String {
    if let Some(limit) = max_tokens {
        return format!(
            "the answer reached the limit of {limit} tokens and stops here; `max_tokens` in [agents.{agent}] sets it"
        );
    }
    // No limit is configured: the model or the server has one, or the context window is full.
    let written = used.map(|used| used.output).filter(|tokens| *tokens > 0);
    let written = written.map_or_else(String::new, |tokens| format!(" after {tokens} tokens"));
    format!("the answer stops here{written}, before its end; say \"go on\" for the rest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named_where_it_is_known() {
        let used = Some(Usage {
            estimated: false,
            input: 1,
            output: 64,
            ..Usage::default()
        });
        for (max_tokens, used, words) in [
            (Some(9), used, "the limit of 9 tokens"),
            (None, used, "stops here after 64 tokens, before its end"),
            (None, None, "stops here, before its end"),
        ] {
            let remark = limit_remark("mine", max_tokens, used);
            assert!(remark.contains(words), "{remark}");
            // The remark must not name a setting that is not set.
            let named = remark.contains("`max_tokens` in [agents.mine]");
            assert_eq!(named, max_tokens.is_some(), "{remark}");
        }
    }
}
