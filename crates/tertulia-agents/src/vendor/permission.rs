//! Claude Code's permission requests while it runs, and their answers: JSON objects, one per line,
//! on its standard output and its standard input.

use std::path::Path;

use serde_json::{Value, json};

use super::reading::{list, words};
use crate::approval::{Risk, ToolRequest, Verdict};
use crate::obeyed::is_obeyed;
use crate::{INSTEAD, UNANSWERED};
use tertulia_core::entry::ToolCall;
use tertulia_core::preview::{diff, one_line, visible};

/// Tools that change files.
const EDITS: &[&str] = &["Edit", "Write", "NotebookEdit"];
/// Why an edit is more than one.
const OBEYED: &str = "programs act on what this file says";
/// Beginning of the message to Claude Code when the answer is no.
pub(super) const NO: &str = "The user does not want this tool to be used now";

/// A control request of the program.
#[derive(Debug, PartialEq)]
pub(super) enum Control {
    /// A permission request for a tool.
    Permission(Box<PermissionRequest>),
    /// The request with this id needs no answer any more.
    Withdrawn(String),
    /// An unsupported request with this id.
    Other(String),
}

impl Control {
    /// Parses a control event, if it has an id.
    pub(super) fn read(event: &Value) -> Option<Control> {
        let id = words(event, "/request_id").to_owned();
        if id.is_empty() {
            return None;
        }
        if words(event, "/type") == "control_cancel_request" {
            return Some(Control::Withdrawn(id));
        }
        Some(match words(event, "/request/subtype") {
            "can_use_tool" => {
                let request = PermissionRequest::read(id, &event["request"]);
                Control::Permission(Box::new(request))
            }
            _ => Control::Other(id),
        })
    }
}

/// A permission request that waits for its answer.
#[derive(Debug, PartialEq)]
pub(super) struct PermissionRequest {
    /// Id of the request.
    pub(super) id: String,
    /// The tool call as it is shown to the user.
    pub(super) request: ToolRequest,
    /// Permission rules that the program offers to apply for the rest of the turn.
    rules: Vec<Value>,
}

impl PermissionRequest {
    fn read(id: String, asked: &Value) -> PermissionRequest {
        let call = ToolCall {
            id: words(asked, "/tool_use_id").to_owned(),
            name: words(asked, "/tool_name").to_owned(),
            arguments: asked.get("input").cloned().unwrap_or_else(|| json!({})),
        };
        let path = ["/file_path", "/notebook_path"].map(|key| words(&call.arguments, key));
        let obeyed = path.iter().any(|path| is_obeyed(Path::new(path)));
        let reason = match words(asked, "/decision_reason") {
            "" if obeyed && EDITS.contains(&call.name.as_str()) => OBEYED,
            reason => reason,
        };
        let request = ToolRequest {
            // A reason to ask is a path outside of the folder, a sensitive file, a rule, or a file that
            // programs act on.
            is_edit: reason.is_empty() && EDITS.contains(&call.name.as_str()),
            risk: risk(&call.name, reason),
            preview: preview(&call, reason),
            folder: String::new(),
            key: key(&call, reason),
            call,
        };
        let rules = list(asked, "/permission_suggestions")
            .iter()
            .filter(|rule| is_no_more_than_asked(rule, &request))
            .cloned()
            .collect();
        PermissionRequest { id, request, rules }
    }

    /// Returns the line that answers the request.
    pub(super) fn answer(&self, verdict: &Verdict) -> String {
        let mut answer = match verdict {
            Verdict::No => deny(". Do not try again; ask what to do instead."),
            Verdict::Unanswered => json!({ "behavior": "deny", "message": UNANSWERED }),
            Verdict::Instead(words) => deny(&format!("{INSTEAD}{words}")),
            Verdict::Yes | Verdict::Always => {
                json!({ "behavior": "allow", "updatedInput": self.request.call.arguments })
            }
        };
        if *verdict == Verdict::Always && !self.rules.is_empty() {
            answer["updatedPermissions"] = json!(self.rules);
        }
        line(&json!({ "type": "control_response", "response": {
            "subtype": "success", "request_id": self.id, "response": answer,
        } }))
    }
}

/// Returns the line that rejects an unsupported request.
pub(super) fn not_done(id: &str) -> String {
    line(&json!({ "type": "control_response", "response": {
        "subtype": "error", "request_id": id, "error": "this is not supported here",
    } }))
}

/// Returns the line that sends the user's message.
pub(super) fn prompt(words: &str) -> String {
    line(&json!({ "type": "user", "message": {
        "role": "user", "content": [{ "type": "text", "text": words }],
    } }))
}

fn deny(then: &str) -> Value {
    json!({ "behavior": "deny", "message": format!("{NO}{then}") })
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

/// Returns the risk of a tool. In its own folder the program reads without asking. With a reason to
/// ask (a path outside, a sensitive file, a rule of the user's) a tool counts as riskier.
fn risk(tool: &str, reason: &str) -> Risk {
    let usual = match tool {
        "Read" | "Glob" | "Grep" | "LS" | "WebSearch" | "TodoWrite" => Risk::Low,
        tool if EDITS.contains(&tool) => Risk::Medium,
        _ => Risk::High,
    };
    match (usual, reason) {
        (usual, "") => usual,
        (Risk::Low, _) => Risk::Medium,
        _ => Risk::High,
    }
}

/// Returns the key for "always": any use of the tool, but for commands only this one, and for
/// requests with a reason only this exact use.
fn key(call: &ToolCall, reason: &str) -> String {
    let command = words(&call.arguments, "/command");
    match call.name.as_str() {
        "Bash" if leaves_sandbox(&call.arguments) => format!("Bash, no sandbox: {command}"),
        "Bash" => format!("Bash {command}"),
        tool if risk(tool, reason) == risk(tool, "") => tool.to_owned(),
        tool => match words(&call.arguments, "/file_path") {
            "" => format!("{tool} {}", call.arguments),
            path => format!("{tool} {path}"),
        },
    }
}

fn leaves_sandbox(input: &Value) -> bool {
    input.get("dangerouslyDisableSandbox") == Some(&Value::Bool(true))
}

/// Returns whether a rule ends with this turn (its destination is the running process) and allows
/// nothing beyond the request's key. Most offered rules go further: all edits, all commands that
/// begin alike, a whole folder.
fn is_no_more_than_asked(rule: &Value, request: &ToolRequest) -> bool {
    let tool = request.call.name.as_str();
    let whole_tool = request.key == tool;
    let command = words(&request.call.arguments, "/command");
    let rules = list(rule, "/rules");
    words(rule, "/type") == "addRules"
        && words(rule, "/destination") == "session"
        && words(rule, "/behavior") == "allow"
        && !rules.is_empty()
        && rules.iter().all(|rule| {
            let this_command = request.key == format!("Bash {command}")
                && !command.contains('*')
                && words(rule, "/ruleContent") == command;
            words(rule, "/toolName") == tool && (whole_tool || this_command)
        })
}

fn preview(call: &ToolCall, reason: &str) -> String {
    let input = &call.arguments;
    let shown = match call.name.as_str() {
        "Bash" => command(input),
        "Write" => writing(input),
        "Edit" => editing(input),
        _ => None,
    };
    let shown = shown.unwrap_or_else(|| visible(&format!("{input:#}")));
    match reason {
        "" => shown,
        reason => format!("{shown}\n({})", one_line(reason)),
    }
}

/// Renders a command and its options.
fn command(input: &Value) -> Option<String> {
    let mut lines = vec![visible(input.get("command")?.as_str()?)];
    for (name, value) in input.as_object()? {
        // The model's description of its command does not show what the command does.
        if name != "command" && name != "description" {
            lines.push(one_line(&format!("{name}: {value}")));
        }
    }
    Some(lines.join("\n"))
}

fn writing(input: &Value) -> Option<String> {
    let path = one_line(input.get("file_path")?.as_str()?);
    match input.get("content")?.as_str()? {
        "" => Some(format!("{path} becomes an empty file")),
        content => Some(format!(
            "{path} is overwritten:\n{}",
            placeless(&diff(&path, Some(""), content))
        )),
    }
}

fn editing(input: &Value) -> Option<String> {
    let path = one_line(input.get("file_path")?.as_str()?);
    let (old, new) = (
        input.get("old_string")?.as_str()?,
        input.get("new_string")?.as_str()?,
    );
    let diff = placeless(&diff(&path, Some(old), new));
    match input.get("replace_all") {
        Some(Value::Bool(true)) => Some(format!("everywhere in {path}:\n{diff}")),
        _ => Some(diff),
    }
}

/// Removes the line numbers from a diff, which are not those of the file.
fn placeless(diff: &str) -> String {
    let lines: Vec<&str> = diff
        .lines()
        .map(|line| if line.starts_with("@@ ") { "@@" } else { line })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: &str, input: Value, reason: &str, suggestions: Value) -> PermissionRequest {
        let event = json!({ "type": "control_request", "request_id": "r", "request": {
            "subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t",
            "decision_reason": reason, "permission_suggestions": suggestions,
        } });
        match Control::read(&event) {
            Some(Control::Permission(request)) => *request,
            other => panic!("{other:?}"),
        }
    }

    fn plain(tool: &str, input: Value) -> ToolRequest {
        asked(tool, input, "", json!([])).request
    }

    fn answered(request: &PermissionRequest, verdict: Verdict) -> Value {
        let line = request.answer(&verdict);
        assert!(line.ends_with('\n') && line.lines().count() == 1, "{line}");
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["type"], "control_response");
        assert_eq!(answer["response"]["request_id"], "r");
        answer["response"]["response"].clone()
    }

    #[test]
    fn it_is_answered_in_its_own_words() {
        let input = json!({ "command": "touch x", "n": [1, null] });
        let request = asked("Bash", input.clone(), "", json!([]));
        let yes = json!({ "behavior": "allow", "updatedInput": input });
        assert_eq!(answered(&request, Verdict::Yes), yes);
        assert_eq!(answered(&request, Verdict::Always), yes);
        assert_eq!(
            answered(&request, Verdict::No),
            json!({ "behavior": "deny", "message": format!("{NO}. Do not try again; ask what to do instead.") })
        );
        // The program passes the words on to its model.
        let instead = answered(&request, Verdict::Instead("use ls".into()));
        let message = format!("{NO}, and says what to do instead: use ls");
        assert_eq!(instead, json!({ "behavior": "deny", "message": message }));
        let call = &request.request.call;
        assert_eq!((call.id.as_str(), call.name.as_str()), ("t", "Bash"));
    }

    #[test]
    fn always_allows_no_more_than_it_says() {
        let rule = |tool: &str, content: &str, to: &str| {
            json!({ "type": "addRules", "behavior": "allow", "destination": to,
                "rules": [{ "toolName": tool, "ruleContent": content }] })
        };
        // As the program offers them.
        let offered = json!([
            rule("Bash", "touch x *", "session"),
            rule("Bash", "touch x", "localSettings"),
            { "type": "addDirectories", "directories": ["/work"], "destination": "session" },
            { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
            rule("Edit", "", "session"),
        ]);
        let command = json!({ "command": "touch x" });
        let request = asked("Bash", command.clone(), "", offered);
        assert!(request.rules.is_empty(), "{:?}", request.rules);

        let exact = rule("Bash", "touch x", "session");
        let request = asked("Bash", command, "", json!([exact.clone()]));
        let answer = answered(&request, Verdict::Always);
        assert_eq!(answer["updatedPermissions"], json!([exact]));
        assert_eq!(
            answered(&request, Verdict::Yes).get("updatedPermissions"),
            None
        );
        let stars = json!([rule("Bash", "rm *", "session")]);
        let request = asked("Bash", json!({ "command": "rm *" }), "", stars);
        assert!(request.rules.is_empty());

        let folder = json!([rule("Read", "//etc/**", "session")]);
        let path = json!({ "file_path": "/etc/hostname" });
        let request = asked("Read", path.clone(), "outside", folder.clone());
        assert!(request.rules.is_empty());
        assert_eq!(asked("Read", path, "", folder).rules.len(), 1);
    }

    #[test]
    fn risks_and_what_always_means() {
        use Risk::{High, Low, Medium};
        let check = |tool: &str, input: Value, reason: &str, risk: Risk, key: &str| {
            let request = asked(tool, input, reason, json!([])).request;
            assert_eq!((request.risk, request.key.as_str()), (risk, key), "{tool}");
        };
        let file = || json!({ "file_path": "/a" });
        check("Read", file(), "", Low, "Read");
        check("Read", file(), "outside", Medium, "Read /a");
        check("WebSearch", json!({}), "", Low, "WebSearch");
        let pattern = json!({ "pattern": "x" });
        check("Grep", pattern, "a rule", Medium, r#"Grep {"pattern":"x"}"#);
        check("Edit", file(), "", Medium, "Edit");
        check("NotebookEdit", file(), "", Medium, "NotebookEdit");
        check("Write", file(), "sensitive", High, "Write /a");
        check("WebFetch", json!({}), "", High, "WebFetch");
        check("mcp__x__y", json!({}), "a rule", High, "mcp__x__y");
        let ls = || json!({ "command": "ls", "dangerouslyDisableSandbox": false });
        check("Bash", ls(), "", High, "Bash ls");
        check("Bash", ls(), "a reason", High, "Bash ls");
        let free = json!({ "command": "ls", "dangerouslyDisableSandbox": true });
        check("Bash", free, "", High, "Bash, no sandbox: ls");
    }

    #[test]
    fn a_person_sees_what_would_be_done() {
        let check = |tool: &str, input: Value, expected: &str| {
            assert_eq!(plain(tool, input).preview, expected);
        };
        check(
            "Bash",
            json!({ "command": "ls\u{1b}[2K\nrm x", "description": "Looks", "timeout": 5 }),
            "ls\\u{1b}[2K\nrm x\ntimeout: 5",
        );
        check(
            "Write",
            json!({ "file_path": "/a\nb", "content": "one\ntwo\u{202e}\n" }),
            "/a\\nb is overwritten:\n--- /a\\nb\n+++ /a\\nb\n@@\n+one\n+two\\u{202e}",
        );
        let empty = json!({ "file_path": "/a", "content": "" });
        check("Write", empty, "/a becomes an empty file");
        let edit = json!({ "file_path": "/a", "old_string": "b\nc\n", "new_string": "b\nd\n", "replace_all": true });
        check(
            "Edit",
            edit,
            "everywhere in /a:\n--- /a\n+++ /a\n@@\n b\n-c\n+d",
        );
        // Missing values are not made up.
        let strange = json!({ "file_path": "/a" });
        check("Edit", strange, "{\n  \"file_path\": \"/a\"\n}");
        let url = json!({ "url": "http://a/\u{200b}" });
        check("WebFetch", url, "{\n  \"url\": \"http://a/\\u{200b}\"\n}");
        let reason = "Path is\noutside";
        let read = asked("Read", json!({}), reason, json!([])).request;
        assert_eq!(read.preview, "{}\n(Path is\\noutside)");
    }

    #[test]
    fn other_wishes_are_told_apart() {
        let read = |event: Value| Control::read(&event);
        let hook = json!({ "type": "control_request", "request_id": "h",
            "request": { "subtype": "hook_callback" } });
        assert_eq!(read(hook), Some(Control::Other("h".into())));
        let gone = json!({ "type": "control_cancel_request", "request_id": "g" });
        assert_eq!(read(gone), Some(Control::Withdrawn("g".into())));
        assert_eq!(read(json!({ "type": "control_request" })), None);
        let told: Value = serde_json::from_str(&not_done("h")).unwrap();
        assert_eq!(told["response"]["subtype"], "error");
    }

    #[test]
    fn files_that_programs_act_on_are_more_than_an_edit() {
        let check = |tool: &str, path: &str, is_edit: bool| {
            let input = json!({ "file_path": path, "content": "x" });
            let request = plain(tool, input);
            assert_eq!(request.is_edit, is_edit, "{tool} {path}");
            let risk = if is_edit { Risk::Medium } else { Risk::High };
            assert_eq!(request.risk, risk, "{tool} {path}");
            assert_eq!(request.key == tool, is_edit, "{tool} {path}");
        };
        check("Write", "/p/src/main.rs", true);
        check("Write", "/p/AGENTS.md", false);
        check("Edit", "/p/sub/.Claude/settings.json", false);
        check("Write", "/p/.github/workflows/ci.yml", false);
    }

    #[test]
    fn nobody_who_could_answer_is_said() {
        let request = asked("Bash", json!({ "command": "ls" }), "", json!([]));
        let line = request.answer(&Verdict::Unanswered);
        assert!(line.contains("nobody could be asked"), "{line}");
        assert!(!line.contains("does not want"), "{line}");
    }
}
