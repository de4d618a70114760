//! Known behaviour of single agents, by the name that they report.

use serde_json::Value;

use crate::prompt::Recall;

/// Returns what an agent's session keeps of a turn that was cut off. For an unknown agent nothing
/// is assumed.
pub(super) fn recall(abilities: Option<&Value>) -> Recall {
    let name = abilities.and_then(|told| told["agentInfo"]["name"].as_str());
    match name.unwrap_or_default() {
        "@agentclientprotocol/claude-agent-acp" | "OpenCode" => Recall::All,
        "@agentclientprotocol/codex-acp" => Recall::Asked,
        _ => Recall::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn agents_are_known_by_the_name_that_they_give_themselves() {
        let check = |abilities: Option<Value>, expected| {
            assert_eq!(recall(abilities.as_ref()), expected);
        };
        let named = |name: &str| Some(json!({ "agentInfo": { "name": name } }));
        check(named("@agentclientprotocol/claude-agent-acp"), Recall::All);
        check(named("@agentclientprotocol/codex-acp"), Recall::Asked);
        check(named("gemini-cli"), Recall::Nothing);
        check(Some(json!({})), Recall::Nothing);
        check(None, Recall::Nothing);
    }
}
