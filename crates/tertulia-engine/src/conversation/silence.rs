//! Detects an agent that sends nothing for a while, which is reported once to the user.

use std::time::Duration;

use tokio::time::Instant;

use tertulia_agents::AgentEvent;

/// Time without events after which the silence is reported.
const NAMED: Duration = Duration::from_secs(15);

/// Tracks the time since the last event of an agent.
#[derive(Debug)]
pub(super) struct Silence {
    since: Instant,
    named: bool,
    /// Number of its own tools that are running: they may take long, which is no silence.
    tools: usize,
}

impl Silence {
    /// Starts when the agent is prompted.
    pub(super) fn begin(now: Instant) -> Silence {
        Silence {
            since: now,
            named: false,
            tools: 0,
        }
    }

    /// Records an event of the agent.
    pub(super) fn note(&mut self, event: &AgentEvent, now: Instant) {
        match event {
            AgentEvent::ToolStarted(_) => self.tools += 1,
            AgentEvent::ToolCompleted { .. } => self.tools = self.tools.saturating_sub(1),
            _ => {}
        }
        self.end(match event {
            // The agent has reported how long it waits.
            AgentEvent::Retrying(retry) => now.checked_add(retry.wait).unwrap_or(now),
            _ => now,
        });
    }

    /// Restarts the time: the agent sent an event, or waited for the user.
    pub(super) fn end(&mut self, now: Instant) {
        (self.since, self.named) = (now, false);
    }

    /// Returns true once per silence, when it is long enough to be reported.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let long = now.saturating_duration_since(self.since) >= NAMED;
        let due = long && !self.named && self.tools == 0;
        self.named |= due;
        due
    }
}

/// Describes the silence, with the last line that the agent's program wrote to standard error.
pub(super) fn words(agent: &str, stderr: Option<String>) -> String {
    let wrote = stderr.map_or_else(String::new, |line| format!(" (it wrote: {line})"));
    let seconds = NAMED.as_secs();
    format!("no output from {agent} for {seconds} s{wrote}; Ctrl+C stops it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia_agents::Retry;
    use tertulia_core::entry::ToolCall;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_silence_is_named_once() {
        let begun = Instant::now();
        let at = |seconds: u32| begun + seconds * SECOND;
        let mut silence = Silence::begin(begun);
        assert!(!silence.is_due(at(14)));
        assert!(silence.is_due(at(15)));
        assert!(!silence.is_due(at(300)));
        silence.note(&AgentEvent::Text("x".into()), at(300));
        assert!(!silence.is_due(at(314)));
        assert!(silence.is_due(at(315)));
        // An announced wait does not count.
        silence.note(
            &AgentEvent::Retrying(Retry {
                attempt: 1,
                of: 2,
                wait: 20 * SECOND,
                reason: "busy".into(),
            }),
            at(400),
        );
        assert!(!silence.is_due(at(434)));
        assert!(silence.is_due(at(435)));
    }

    #[test]
    fn a_tool_at_work_is_no_silence() {
        let begun = Instant::now();
        let mut silence = Silence::begin(begun);
        let call = ToolCall {
            id: "1".into(),
            name: "build".into(),
            arguments: serde_json::Value::Null,
        };
        silence.note(&AgentEvent::ToolStarted(call), begun);
        assert!(!silence.is_due(begun + 60 * SECOND));
        let done = AgentEvent::ToolCompleted {
            id: "1".into(),
            output: String::new(),
            ok: true,
        };
        silence.note(&done, begun + 60 * SECOND);
        assert!(silence.is_due(begun + 75 * SECOND));
    }

    #[test]
    fn what_the_program_wrote_is_told() {
        assert_eq!(
            words("codex", None),
            "no output from codex for 15 s; Ctrl+C stops it"
        );
        assert_eq!(
            words("codex", Some("EROFS".into())),
            "no output from codex for 15 s (it wrote: EROFS); Ctrl+C stops it"
        );
    }
}
