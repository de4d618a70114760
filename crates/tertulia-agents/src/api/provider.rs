//! The four kinds of servers: names, addresses, and lists of models.

use reqwest::Url;
use serde_json::Value;

/// Provider of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API, and every compatible server.
    OpenAi,
    /// Google's Gemini.
    Gemini,
    /// A local Ollama.
    Ollama,
}

impl Provider {
    /// All providers, in the order in which they are looked for.
    pub const ALL: [Provider; 4] = [
        Provider::Anthropic,
        Provider::OpenAi,
        Provider::Gemini,
        Provider::Ollama,
    ];

    /// Name of the provider in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Gemini => "gemini",
            Provider::Ollama => "ollama",
        }
    }

    /// Returns the provider with this name.
    pub fn parse(name: &str) -> Option<Provider> {
        Provider::ALL
            .into_iter()
            .find(|provider| provider.name() == name)
    }

    /// Variables that usually hold the provider's key; the first is the one to name in messages.
    pub const fn key_variables(self) -> &'static [&'static str] {
        match self {
            Provider::Anthropic => &["ANTHROPIC_API_KEY"],
            Provider::OpenAi => &["OPENAI_API_KEY"],
            Provider::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Provider::Ollama => &[],
        }
    }

    /// Variable that usually holds the provider's address.
    pub const fn url_variable(self) -> &'static str {
        match self {
            Provider::Anthropic => "ANTHROPIC_BASE_URL",
            Provider::OpenAi => "OPENAI_BASE_URL",
            Provider::Gemini => "GOOGLE_GEMINI_BASE_URL",
            Provider::Ollama => "OLLAMA_HOST",
        }
    }

    /// Default model. Ollama has none: its models are those that were pulled.
    pub const fn default_model(self) -> Option<&'static str> {
        match self {
            Provider::Anthropic => Some("claude-sonnet-4-6"),
            Provider::OpenAi => Some("gpt-5.4-mini"),
            Provider::Gemini => Some("gemini-3.5-flash"),
            Provider::Ollama => None,
        }
    }

    /// Default address, written as in the provider's own variable.
    pub const fn default_base(self) -> &'static str {
        match self {
            Provider::Anthropic => "https://api.anthropic.com",
            Provider::OpenAi => "https://api.openai.com/v1",
            Provider::Gemini => "https://generativelanguage.googleapis.com",
            Provider::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// Part of the address that the provider's own variable leaves out.
    const fn version(self) -> &'static str {
        match self {
            Provider::Anthropic => "v1/",
            Provider::Gemini => "v1beta/",
            Provider::OpenAi | Provider::Ollama => "",
        }
    }

    /// Returns the base of all addresses, with a trailing slash.
    pub(super) fn root(self, base: Option<&str>) -> String {
        let base = base.map(str::trim).filter(|base| !base.is_empty());
        let base = base.unwrap_or(self.default_base()).trim_end_matches('/');
        let version = self.version();
        // Users often write the version although the vendor's own variable does not have it.
        let base = match version.strip_suffix('/') {
            Some(version) => base
                .strip_suffix(version)
                .and_then(|rest| rest.strip_suffix('/'))
                .unwrap_or(base),
            None => base,
        };
        if base.contains("://") {
            return format!("{base}/{version}");
        }
        // The vendor's variable often holds a host alone.
        let port = if self == Provider::Ollama && !base.contains(':') {
            ":11434"
        } else {
            ""
        };
        format!("http://{base}{port}/{version}")
    }

    /// Address of the list of models.
    pub(super) fn models_url(self, root: &str) -> String {
        match self {
            Provider::Anthropic => format!("{root}models?limit=1000"),
            Provider::OpenAi => format!("{root}models"),
            Provider::Gemini => format!("{root}models?pageSize=1000"),
            Provider::Ollama => format!("{root}api/tags"),
        }
    }

    /// Returns the names in a list of models, without those that are marked as unable to chat.
    pub(super) fn model_names(self, list: &Value) -> Option<Vec<String>> {
        let (key, name) = match self {
            Provider::Anthropic | Provider::OpenAi => ("data", "id"),
            Provider::Gemini | Provider::Ollama => ("models", "name"),
        };
        let models = match &list[key] {
            Value::Array(models) => models.as_slice(),
            // A fresh Ollama has no models, and writes that as null.
            Value::Null if list.get(key).is_some() => &[],
            _ => return None,
        };
        let names = models
            .iter()
            .filter(|model| talks(model))
            .filter_map(|model| model[name].as_str())
            .map(|name| name.strip_prefix("models/").unwrap_or(name).to_owned());
        Some(names.collect())
    }
}

fn talks(model: &Value) -> bool {
    match model["supportedGenerationMethods"].as_array() {
        Some(methods) => methods.iter().any(|method| method == "generateContent"),
        None => true,
    }
}

/// Returns whether the address is on this machine, where no proxy is used.
pub(super) fn is_local(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let Some(host) = url.host_str() else {
        return false;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_is_taken_as_the_vendors_variable_writes_it() {
        for (provider, base, root) in [
            (Provider::Anthropic, None, "https://api.anthropic.com/v1/"),
            (
                Provider::Anthropic,
                Some("http://127.0.0.1:8/"),
                "http://127.0.0.1:8/v1/",
            ),
            (
                Provider::Anthropic,
                Some("https://proxy.example/claude/v1"),
                "https://proxy.example/claude/v1/",
            ),
            (
                Provider::OpenAi,
                Some("http://127.0.0.1:8/v1"),
                "http://127.0.0.1:8/v1/",
            ),
            (
                Provider::OpenAi,
                Some("http://127.0.0.1:8/v1//"),
                "http://127.0.0.1:8/v1/",
            ),
            (
                Provider::Gemini,
                Some("http://127.0.0.1:8"),
                "http://127.0.0.1:8/v1beta/",
            ),
            (
                Provider::Gemini,
                Some("http://127.0.0.1:8/v1beta/"),
                "http://127.0.0.1:8/v1beta/",
            ),
            (
                Provider::Ollama,
                Some(" 127.0.0.1:11434 "),
                "http://127.0.0.1:11434/",
            ),
            (Provider::Ollama, Some(""), "http://127.0.0.1:11434/"),
        ] {
            assert_eq!(provider.root(base), root, "{provider:?} {base:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for provider in Provider::ALL {
            assert_eq!(Provider::parse(provider.name()), Some(provider));
        }
        assert_eq!(Provider::parse("OpenAI"), None);
    }

    #[test]
    fn lists_of_models_are_read() {
        let gemini = json!({"models": [
            {"name": "models/gemini-x", "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/embedding-x", "supportedGenerationMethods": ["embedContent"]},
        ]});
        for (provider, list, names) in [
            (
                Provider::Anthropic,
                json!({"data": [{"id": "claude-x", "type": "model"}]}),
                Some(vec!["claude-x"]),
            ),
            (
                Provider::OpenAi,
                json!({"data": [{"id": "a"}, {"id": "b"}]}),
                Some(vec!["a", "b"]),
            ),
            (Provider::Gemini, gemini, Some(vec!["gemini-x"])),
            (
                Provider::Ollama,
                json!({"models": [{"name": "qwen3:8b"}]}),
                Some(vec!["qwen3:8b"]),
            ),
            (Provider::Ollama, json!({"models": null}), Some(vec![])),
            (Provider::OpenAi, json!({"error": "no"}), None),
        ] {
            let names = names.map(|names| names.into_iter().map(str::to_owned).collect());
            assert_eq!(provider.model_names(&list), names, "{list}");
        }
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        for local in [
            "http://127.0.0.1:9/v1/",
            "http://localhost/",
            "http://[::1]:9/",
            "http://0.0.0.0:11434/",
            "http://models.localhost:9/",
        ] {
            assert!(is_local(local), "{local}");
        }
        for remote in ["https://api.openai.com/v1/", "http://10.0.0.7/", "nonsense"] {
            assert!(!is_local(remote), "{remote}");
        }
    }
}
