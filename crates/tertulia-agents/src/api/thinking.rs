//! How much a model thinks before it answers, in the terms of each provider.

use genai::chat::ReasoningEffort;

use super::provider::Provider;

/// How much a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// Not at all.
    Off,
    /// The usual amount.
    On,
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
    /// At most this many tokens, if the model accepts a number.
    Budget(u32),
}

impl Thinking {
    /// Parses a setting: `true`, `false`, `low`, `medium`, `high`, or a number of tokens.
    pub fn parse(words: &str) -> Option<Thinking> {
        Some(match words.trim() {
            "false" | "off" | "none" | "0" => Thinking::Off,
            "true" | "on" => Thinking::On,
            "low" => Thinking::Low,
            "medium" => Thinking::Medium,
            "high" => Thinking::High,
            number => Thinking::Budget(number.parse().ok()?),
        })
    }

    /// Returns the nearest level, for models that only know levels.
    fn level(self) -> ReasoningEffort {
        match self {
            Thinking::Off => ReasoningEffort::Zero,
            Thinking::Low | Thinking::Budget(..=2048) => ReasoningEffort::Low,
            Thinking::On | Thinking::Medium | Thinking::Budget(..=16384) => ReasoningEffort::Medium,
            Thinking::High | Thinking::Budget(_) => ReasoningEffort::High,
        }
    }
}

/// Returns the effort for genai. Without one, genai cuts endings like `-high` or `-max` off the
/// name of a model (and `qwen-max` is a name): so there is nearly always one, chosen for each
/// provider so that it changes nothing if nothing is configured.
pub(super) fn effort(
    provider: Provider,
    model: &str,
    thinking: Option<Thinking>,
) -> Option<ReasoningEffort> {
    match (provider, thinking) {
        (Provider::Anthropic, None) => has_level_ending(model).then_some(ReasoningEffort::Zero),
        (Provider::OpenAi, None) => Some(ReasoningEffort::Budget(0)),
        (Provider::Gemini, None) => Some(ReasoningEffort::Zero),
        (Provider::Ollama, None) => None,
        (Provider::Anthropic, Some(Thinking::Budget(tokens))) if counts_tokens(model) => {
            Some(ReasoningEffort::Budget(tokens))
        }
        (Provider::Gemini, Some(thinking)) if knows_levels(model) => Some(match thinking {
            Thinking::Off => ReasoningEffort::Minimal,
            thinking => thinking.level(),
        }),
        (Provider::Gemini, Some(Thinking::Off)) => Some(ReasoningEffort::Budget(0)),
        (Provider::Gemini, Some(Thinking::Budget(tokens))) => Some(ReasoningEffort::Budget(tokens)),
        (Provider::Ollama, Some(Thinking::On | Thinking::Budget(_))) => {
            Some(ReasoningEffort::Budget(0))
        }
        (_, Some(thinking)) => Some(thinking.level()),
    }
}

/// Returns whether thoughts may be requested: older Gemini models refuse such a request.
pub(super) fn shows_thoughts(provider: Provider, model: &str, thinking: Option<Thinking>) -> bool {
    let knows_no_thoughts = ["gemini-1", "gemini-2.0", "gemma"]
        .iter()
        .any(|family| model.contains(family));
    match provider {
        Provider::Gemini => thinking != Some(Thinking::Off) && !knows_no_thoughts,
        _ => true,
    }
}

fn has_level_ending(model: &str) -> bool {
    let ending = model.rsplit('-').next().unwrap_or(model);
    matches!(
        ending,
        "none" | "zero" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max"
    )
}

/// Returns whether the model takes a number of tokens, as Claude models up to 4.5 do; later ones
/// take a level.
fn counts_tokens(model: &str) -> bool {
    ["claude-3", "-4-0", "-4-1", "-4-5", "-4-2025"]
        .iter()
        .any(|generation| model.contains(generation))
}

fn knows_levels(model: &str) -> bool {
    model.contains("gemini-3") || model.contains("gemma-4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_understood() {
        for (words, thinking) in [
            ("true", Some(Thinking::On)),
            ("false", Some(Thinking::Off)),
            ("0", Some(Thinking::Off)),
            (" low ", Some(Thinking::Low)),
            ("medium", Some(Thinking::Medium)),
            ("high", Some(Thinking::High)),
            ("2000", Some(Thinking::Budget(2000))),
            ("-1", None),
            ("much", None),
            ("", None),
        ] {
            assert_eq!(Thinking::parse(words), thinking, "{words:?}");
        }
    }

    #[test]
    fn each_provider_is_told_in_its_words() {
        use Provider::{Anthropic, Gemini, Ollama, OpenAi};
        use ReasoningEffort as Effort;
        for (provider, model, thinking, told) in [
            (OpenAi, "qwen-max", None, Some(Effort::Budget(0))),
            (
                OpenAi,
                "gpt-5.1",
                Some(Thinking::Budget(9000)),
                Some(Effort::Medium),
            ),
            (OpenAi, "gpt-5.1", Some(Thinking::On), Some(Effort::Medium)),
            (Anthropic, "claude-sonnet-4-6", None, None),
            (Anthropic, "qwen-max", None, Some(Effort::Zero)),
            (
                Anthropic,
                "claude-sonnet-4-5",
                Some(Thinking::Budget(5000)),
                Some(Effort::Budget(5000)),
            ),
            (
                Anthropic,
                "claude-opus-5",
                Some(Thinking::Budget(50000)),
                Some(Effort::High),
            ),
            (Gemini, "gemini-2.5-pro", None, Some(Effort::Zero)),
            (
                Gemini,
                "gemini-2.5-flash",
                Some(Thinking::Off),
                Some(Effort::Budget(0)),
            ),
            (
                Gemini,
                "gemini-3.5-flash",
                Some(Thinking::Off),
                Some(Effort::Minimal),
            ),
            (Ollama, "qwen3", None, None),
            (Ollama, "qwen3", Some(Thinking::Off), Some(Effort::Zero)),
            (Ollama, "qwen3", Some(Thinking::On), Some(Effort::Budget(0))),
        ] {
            let effort = effort(provider, model, thinking);
            assert_eq!(
                format!("{effort:?}"),
                format!("{told:?}"),
                "{provider:?} {model} {thinking:?}"
            );
        }
    }
}
