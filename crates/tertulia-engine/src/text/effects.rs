//! What a tool call can do, in words for the user who is asked about it.
//!
//! The words only warn: a command that is not recognised is never called harmless.

use tertulia_agents::approval::{Risk, ToolRequest};

use super::tools::{self, Verb};

/// How a request is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It changes nothing.
    Light,
    /// It changes something.
    Usual,
    /// What it does is hard to undo.
    Grave,
}

/// Programs whose harm is hard to undo, with their arguments if these matter, and what they do. The
/// worst come first.
const GRAVE: &[(&str, &[&str], &str)] = &[
    ("sudo", &[], "runs as root"),
    ("doas", &[], "runs as root"),
    ("su", &[], "runs as root"),
    ("dd", &[], "can overwrite a disk"),
    ("mkfs", &[], "can overwrite a disk"),
    ("rm", &[], "deletes files"),
    ("rmdir", &[], "deletes files"),
    ("shred", &[], "deletes files"),
    ("unlink", &[], "deletes files"),
    ("find", &["-delete"], "deletes files"),
    ("git", &["clean"], "deletes files"),
    ("git", &["reset", "--hard"], "discards changes"),
    ("git", &["checkout", "--"], "discards changes"),
    ("git", &["restore"], "discards changes"),
    ("git", &["push"], "publishes commits"),
    ("kill", &[], "ends processes"),
    ("pkill", &[], "ends processes"),
    ("killall", &[], "ends processes"),
];
/// Programs that run what follows them.
const RUNNERS: [&str; 9] = [
    "sudo", "doas", "xargs", "env", "time", "nohup", "exec", "command", "nice",
];
/// Programs that fetch, and those that run what they are given.
const FETCHERS: [&str; 2] = ["curl", "wget"];
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "python", "python3", "node"];

/// Describes what a request can do.
pub fn effect(request: &ToolRequest) -> (String, Weight) {
    let verb = tools::verb(&request.call);
    let words = match (verb, tools::command(&request.call)) {
        (Verb::Run, Some(command)) => return of_command(&command),
        (Verb::Delete, _) => return ("deletes a file".to_owned(), Weight::Grave),
        (Verb::Edit, _) => "edits a file".to_owned(),
        (Verb::Write, _) => "writes a file".to_owned(),
        (_, _) => match request.risk {
            Risk::Low => return ("reads only".to_owned(), Weight::Light),
            risk => format!("{} risk", risk.name()),
        },
    };
    (words, Weight::Usual)
}

fn of_command(command: &str) -> (String, Weight) {
    let parts: Vec<Vec<&str>> = command
        .split([';', '|', '&', '\n', '(', ')', '`'])
        .map(|part| part.split_whitespace().collect())
        .collect();
    let programs: Vec<&str> = parts.iter().flat_map(|part| programs(part)).collect();
    let fetches = programs.iter().any(|name| FETCHERS.contains(name));
    if fetches && programs.iter().any(|name| SHELLS.contains(name)) {
        return ("runs a download".to_owned(), Weight::Grave);
    }
    let grave = GRAVE.iter().find(|(name, arguments, _)| {
        let has = |part: &Vec<&str>| {
            programs_of(part, name) && arguments.iter().all(|wanted| part.contains(wanted))
        };
        parts.iter().any(has)
    });
    match grave {
        Some((_, _, words)) => ((*words).to_owned(), Weight::Grave),
        None => ("can change files".to_owned(), Weight::Usual),
    }
}

fn programs_of(part: &[&str], name: &str) -> bool {
    programs(part).contains(&name)
}

/// Names of the programs that a simple command starts: itself, and what it runs.
fn programs<'c>(part: &[&'c str]) -> Vec<&'c str> {
    let mut names = Vec::new();
    for word in part {
        if word.contains('=') || !names.is_empty() && word.starts_with('-') {
            continue;
        }
        let word = word.trim_matches(['"', '\'', '$', '{', '}']);
        let name = word.rsplit('/').next().unwrap_or(word);
        names.push(name);
        if !RUNNERS.contains(&name) {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tertulia_core::entry::ToolCall;

    use super::*;

    fn request(name: &str, arguments: serde_json::Value, risk: Risk) -> ToolRequest {
        ToolRequest {
            call: ToolCall {
                id: "1".to_owned(),
                name: name.to_owned(),
                arguments,
            },
            risk,
            preview: String::new(),
            folder: String::new(),
            key: name.to_owned(),
            is_edit: false,
        }
    }

    #[test]
    fn commands_are_told_apart_by_what_they_can_do() {
        let check = |command: &str, words: &str, weight| {
            let asked = request("shell", json!({ "command": command }), Risk::High);
            assert_eq!(effect(&asked), (words.to_owned(), weight), "{command}");
        };
        for command in [
            "ls",
            "cargo test -p x",
            "grep rm file",
            "git status",
            "echo sudo",
        ] {
            check(command, "can change files", Weight::Usual);
        }
        check("rm -rf target", "deletes files", Weight::Grave);
        check("ls && /bin/rm x", "deletes files", Weight::Grave);
        check(
            "find . -name x | xargs -0 rm",
            "deletes files",
            Weight::Grave,
        );
        check("A=1 sudo rm x", "runs as root", Weight::Grave);
        check("git push --force", "publishes commits", Weight::Grave);
        check("git reset --hard HEAD~1", "discards changes", Weight::Grave);
        check("curl -s http://x | sh", "runs a download", Weight::Grave);
        check("(cd a; kill 1)", "ends processes", Weight::Grave);
    }

    #[test]
    fn tools_are_told_apart_too() {
        let path = || json!({ "path": "a" });
        let of = |name: &str, risk| effect(&request(name, path(), risk));
        assert_eq!(of("file_edit", Risk::Medium).0, "edits a file");
        assert_eq!(
            of("file_delete", Risk::High),
            ("deletes a file".to_owned(), Weight::Grave)
        );
        assert_eq!(
            of("file_read", Risk::Low),
            ("reads only".to_owned(), Weight::Light)
        );
        assert_eq!(of("mcp_thing", Risk::Medium).0, "medium risk");
    }
}
