//! Tool permissions as text for users, and the arguments of `/approve` and `/permissions`.

use tertulia_agents::approval::{Approval, PermissionChange, PermissionState, ToolRequest};

use super::tools::{self, Verb};
use tertulia_core::preview::one_line;

/// Describes a tool policy in a phrase.
pub fn meaning(mode: Approval) -> &'static str {
    match mode {
        Approval::Ask => "read-only tools run, others ask first",
        Approval::Edits => "read-only tools and edits of files run, others ask first",
        Approval::Low => "read-only tools run, others are denied",
        Approval::All => "every tool runs without asking",
        Approval::None => "agents get no tools",
    }
}

/// Describes what "always" would allow, in plain words.
pub fn covers(request: &ToolRequest) -> String {
    let key = one_line(&request.key);
    let command = tools::command(&request.call);
    if command.is_some_and(|command| !command.is_empty() && request.key.ends_with(&command)) {
        return "allow exactly this command in this session".to_owned();
    }
    let every = match (request.key == request.call.name, tools::verb(&request.call)) {
        (true, Verb::Edit) => "all file edits".to_owned(),
        (true, Verb::Write) => "all file writes".to_owned(),
        (true, _) => format!("every {key}"),
        // The key names more than the tool: only what is equal to it runs.
        (false, _) => format!("exactly this ({key})"),
    };
    format!("allow {every} in this session")
}

/// Describes the permissions in force in one line.
pub fn line(state: &PermissionState) -> String {
    let mut words = format!(
        "tool policy: {} ({})",
        state.mode.name(),
        meaning(state.mode)
    );
    if !state.always.is_empty() {
        words.push_str(&format!("; always allowed: {}", state.always.join(", ")));
    }
    words
}

/// Lists the permissions in force, with the commands that change them.
pub fn lines(state: &PermissionState) -> Vec<String> {
    let mode = state.mode;
    let mut lines = vec![
        format!("tool policy: {} ({})", mode.name(), meaning(mode)),
        format!("/approve {} changes it for this session", modes("|")),
        String::new(),
    ];
    if state.always.is_empty() {
        lines.push("nothing else is allowed without asking".to_owned());
        return lines;
    }
    lines.push("always allowed in this session:".to_owned());
    let keys = state.always.iter().zip(1..);
    lines.extend(keys.map(|(key, number)| format!("  {number}  {key}")));
    lines.push(String::new());
    lines.push("/permissions revoke N asks again about one, revoke all about all".to_owned());
    lines
}

/// Parses the argument of `/approve`.
pub fn mode(argument: &str) -> Result<Approval, String> {
    match argument {
        "" => Err(format!("needs a mode: {}", modes(", "))),
        name => Approval::named(name)
            .ok_or_else(|| format!("knows no mode '{name}', only {}", modes(", "))),
    }
}

/// Parses the argument of `/permissions`: what to revoke, if anything.
pub fn revoked(argument: &str) -> Result<Option<String>, String> {
    match argument.split_once(char::is_whitespace) {
        None if argument.is_empty() => Ok(None),
        Some(("revoke", what)) => Ok(Some(what.trim().to_owned())),
        None if argument == "revoke" => Err("revoke needs a number or 'all'".to_owned()),
        _ => Err("knows only 'revoke N' and 'revoke all'".to_owned()),
    }
}

/// Resolves what to revoke: `all`, a number in the list, or a permission's name.
pub fn revocation(what: &str, state: &PermissionState) -> Result<PermissionChange, String> {
    if state.always.is_empty() {
        return Err("nothing is always allowed: there is nothing to revoke".to_owned());
    }
    if what == "all" {
        return Ok(PermissionChange::RevokeAll);
    }
    let number: Option<usize> = what.parse().ok();
    let numbered = number.and_then(|number| state.always.get(number.checked_sub(1)?));
    let named = state.always.iter().find(|key| *key == what);
    match named.or(numbered) {
        Some(key) => Ok(PermissionChange::Revoke(key.clone())),
        None => Err(format!(
            "'{what}' is not always allowed; /permissions lists what is"
        )),
    }
}

fn modes(between: &str) -> String {
    Approval::ALL.map(Approval::name).join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(always: &[&str]) -> PermissionState {
        PermissionState {
            mode: Approval::Ask,
            always: always.iter().map(|key| (*key).to_owned()).collect(),
        }
    }

    #[test]
    fn what_is_allowed_is_told_with_the_way_to_change_it() {
        insta::assert_snapshot!(lines(&state(&["file_edit", "shell ls"])).join("\n"), @r"
        tool policy: ask (read-only tools run, others ask first)
        /approve ask|edits|low|all|none changes it for this session

        always allowed in this session:
          1  file_edit
          2  shell ls

        /permissions revoke N asks again about one, revoke all about all
        ");
        assert!(lines(&state(&[])).concat().contains("nothing else"));
        let line = line(&state(&["file_edit"]));
        assert!(line.ends_with("always allowed: file_edit"), "{line}");
    }

    #[test]
    fn arguments_are_read_or_refused_with_what_is_possible() {
        assert_eq!(mode("none"), Ok(Approval::None));
        assert_eq!(
            mode("maybe").unwrap_err(),
            "knows no mode 'maybe', only ask, edits, low, all, none"
        );
        assert!(mode("").is_err());
        assert_eq!(revoked(""), Ok(None));
        assert_eq!(revoked("revoke  shell ls"), Ok(Some("shell ls".to_owned())));
        assert!(revoked("revoke").is_err() && revoked("file_edit").is_err());
    }

    #[test]
    fn a_permission_is_revoked_by_number_and_by_name() {
        let state = state(&["file_edit", "shell ls"]);
        let key = |key: &str| Ok(PermissionChange::Revoke(key.to_owned()));
        assert_eq!(revocation("2", &state), key("shell ls"));
        assert_eq!(revocation("file_edit", &state), key("file_edit"));
        assert_eq!(revocation("all", &state), Ok(PermissionChange::RevokeAll));
        for wrong in ["0", "3", "shell rm"] {
            assert!(revocation(wrong, &state).is_err(), "{wrong}");
        }
        assert!(revocation("all", &PermissionState::default()).is_err());
    }
}
