//! Permission requests: how they are shown to the user, and which of the agent's options is an
//! answer.

use serde_json::{Value, json};

use super::content;
use super::updates::Call;
use crate::approval::{Risk, ToolRequest, Verdict};
use tertulia_core::preview::visible;

/// Converts a tool call to a request for the user.
pub(super) fn request(id: &str, call: &Call) -> ToolRequest {
    let command = command(&call.input);
    let mut lines = vec![call.title.clone()];
    lines.extend(command.clone());
    lines.push(content::of_tool(&call.content));
    lines.dedup();
    lines.retain(|line| !line.is_empty());
    ToolRequest {
        call: call.told(id),
        risk: risk(&call.kind),
        preview: content::cut(visible(&lines.join("\n"))),
        folder: String::new(),
        // The title is the agent's own: two commands may have the same.
        key: format!("{} {}", call.kind, command.as_ref().unwrap_or(&call.title)),
        // Its kind is the agent's own word, and its paths may be anywhere.
        is_edit: false,
    }
}

fn command(input: &Value) -> Option<String> {
    match &input["command"] {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" "))
        }
        _ => None,
    }
}

/// Returns the risk of a kind of tool.
pub(super) fn risk(kind: &str) -> Risk {
    match kind {
        "read" | "search" | "think" => Risk::Low,
        // Fetched content may contain anything.
        "edit" | "move" | "fetch" => Risk::Medium,
        _ => Risk::High,
    }
}

/// Returns the answer as one of the agent's options. The options' kinds have a defined meaning;
/// their ids do not.
pub(super) fn answer(options: &Value, verdict: &Verdict) -> Value {
    let kinds = match verdict {
        // A yes to one call must not become a permanent one.
        Verdict::Yes => &["allow_once"][..],
        // The session remembers what is always allowed, and can revoke it; the agent could not.
        Verdict::Always => &["allow_once", "allow_always"],
        Verdict::No | Verdict::Instead(_) | Verdict::Unanswered => {
            &["reject_once", "reject_always"]
        }
    };
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let chosen = kinds
        .iter()
        .find_map(|kind| options.iter().find(|option| option["kind"] == **kind));
    match chosen {
        Some(option) => {
            json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } })
        }
        None => cancelled(),
    }
}

/// Returns whether the answer makes the agent ask no more.
pub(super) fn is_for_good(options: &Value, answer: &Value) -> bool {
    let chosen = &answer["outcome"]["optionId"];
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut options = options.iter();
    options.any(|option| option["optionId"] == *chosen && option["kind"] == "allow_always")
}

/// Returns the answer for a cancelled turn, or when no option fits.
pub(super) fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

#[cfg(test)]
mod tests {
    use super::super::updates::Updates;
    use super::*;

    fn chosen(options: &Value, verdict: Verdict) -> Value {
        answer(options, &verdict)["outcome"]["optionId"].clone()
    }

    #[test]
    fn options_are_chosen_by_kind_and_not_by_id() {
        let misleading = json!([
            { "optionId": "allow_once", "kind": "reject_once", "name": "No" },
            { "optionId": "reject", "kind": "allow_always", "name": "Always" },
            { "optionId": 7, "kind": "allow_once", "name": "Yes" },
        ]);
        assert_eq!(chosen(&misleading, Verdict::Yes), 7);
        assert_eq!(chosen(&misleading, Verdict::Always), 7);
        assert_eq!(chosen(&misleading, Verdict::No), "allow_once");
    }

    #[test]
    fn the_next_best_option_is_taken() {
        let only_once = json!([{ "optionId": "a", "kind": "allow_once" }]);
        assert_eq!(chosen(&only_once, Verdict::Always), "a");
        assert_eq!(answer(&only_once, &Verdict::No), cancelled());
        let for_good = json!([
            { "optionId": "a", "kind": "allow_always" },
            { "optionId": "r", "kind": "reject_always" },
        ]);
        assert_eq!(answer(&for_good, &Verdict::Yes), cancelled());
        assert_eq!(chosen(&for_good, Verdict::Always), "a");
        assert_eq!(chosen(&for_good, Verdict::No), "r");
        assert_eq!(answer(&json!(null), &Verdict::Yes), cancelled());
    }

    #[test]
    fn a_person_sees_what_would_be_done() {
        let (id, call, _) = Updates::default().asked(&json!({
            "toolCallId": "c1", "title": "Write w4.txt", "kind": "edit",
            "content": [{ "type": "diff", "path": "w4.txt", "oldText": "", "newText": "hola\n" }],
        }));
        let request = request(&id, &call);
        assert_eq!(
            (request.risk, request.call.id.as_str()),
            (Risk::Medium, "c1")
        );
        assert!(
            request.preview.starts_with("Write w4.txt\nw4.txt\n"),
            "{}",
            request.preview
        );
        assert!(request.preview.ends_with("+hola"), "{}", request.preview);
        assert_eq!(request.key, "edit Write w4.txt");

        let (id, call, _) = Updates::default().asked(&json!({
            "toolCallId": "c2", "title": "ls", "kind": "execute", "rawInput": { "command": "ls" },
        }));
        let request = super::request(&id, &call);
        assert_eq!((request.risk, request.preview.as_str()), (Risk::High, "ls"));

        // A harmless title does not stand for another command.
        let (id, call, _) = Updates::default().asked(&json!({
            "toolCallId": "c3", "title": "ls", "kind": "execute",
            "rawInput": { "command": ["rm", "-r", "x"] },
        }));
        let request = super::request(&id, &call);
        assert_eq!(request.key, "execute rm -r x");
    }

    #[test]
    fn what_an_agent_does_not_name_is_risky() {
        let risks = [
            "read",
            "fetch",
            "move",
            "delete",
            "other",
            "switch_mode",
            "",
        ]
        .map(risk);
        use Risk::{High, Low, Medium};
        assert_eq!(risks, [Low, Medium, Medium, High, High, High, High]);
    }
}
