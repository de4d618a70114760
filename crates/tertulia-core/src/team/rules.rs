//! Validation rules that a JSON Schema cannot express. They inspect the raw document, so that their
//! problems can be reported together with schema errors.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::problem::{A_TIME, Problem, below, found, quoted};

/// Returns a name in the form used for comparison: lower case, without spaces, `-` and `_`.
pub fn address(name: &str) -> String {
    name.chars()
        .filter(|char| !char.is_whitespace() && !matches!(char, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the rule violations of a team file.
pub(super) fn team(document: &Value) -> Vec<Problem> {
    let mut problems = repeated_agents(document);
    problems.extend(unfit_names(document));
    if let Some(members) = document.pointer("/team/members").and_then(Value::as_array) {
        problems.extend(ambiguous_names(members));
        problems.extend(nobody_human(members));
    }
    problems
}

/// Returns the rule violations of a registry.
pub(super) fn registry(document: &Value) -> Vec<Problem> {
    let agents = document.get("agents").and_then(Value::as_object);
    agents
        .into_iter()
        .flatten()
        .flat_map(|(key, agent)| {
            let path = below("/agents", key);
            let times = ["installedAt", "lastVerified"]
                .into_iter()
                .filter_map(|field| unreadable_time(agent, &path, field));
            times
                .chain(other_name(&path, key, agent))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Checks that an agent's name equals its key.
fn other_name(path: &str, key: &str, agent: &Value) -> Option<Problem> {
    let name = agent.get("name")?.as_str()?;
    (name != key).then(|| Problem {
        path: below(path, "name"),
        found: quoted(name),
        expected: format!("{}, the name under which it is listed", quoted(key)),
    })
}

/// Reports a timestamp that matches the schema's format but cannot be parsed, such as one after the
/// year 9999.
pub fn unreadable_time(object: &Value, path: &str, field: &str) -> Option<Problem> {
    let value = object.get(field)?;
    let path = below(path, field);
    let readable = value.as_str()?.parse::<Timestamp>().is_ok();
    (!readable).then(|| Problem {
        found: found(&path, value),
        expected: A_TIME.to_owned(),
        path,
    })
}

/// Where a name is used, and by which member.
struct Use<'a> {
    path: String,
    name: &'a str,
    member: usize,
}

/// Reports names that could mean two members. Members are addressed by name and by display name;
/// only a display name shared by two members is allowed: it means the first, and the other is
/// addressed by name.
fn ambiguous_names(members: &[Value]) -> Vec<Problem> {
    let mut uses: BTreeMap<String, Use<'_>> = BTreeMap::new();
    let mut displayed = BTreeSet::new();
    let mut problems = Vec::new();
    for (member, value) in members.iter().enumerate() {
        for field in ["name", "displayName"] {
            let Some(name) = value.get(field).and_then(Value::as_str) else {
                continue;
            };
            let path = format!("/team/members/{member}/{field}");
            let address = address(name);
            if address.is_empty() {
                // Empty names are reported by the schema; a display name without letters is fine,
                // because the member still has a name.
                if field == "name" && !name.is_empty() {
                    problems.push(unspeakable(path, name));
                }
                continue;
            }
            if field == "displayName" && !displayed.insert(address.clone()) {
                continue;
            }
            match uses.get(&address) {
                Some(first) if first.member != member => {
                    problems.push(ambiguous(path, name, first));
                }
                Some(_) => {}
                None => {
                    uses.insert(address, Use { path, name, member });
                }
            }
        }
    }
    problems
}

fn unspeakable(path: String, name: &str) -> Problem {
    Problem {
        path,
        found: quoted(name),
        expected: "a name with at least one letter or digit".to_owned(),
    }
}

fn ambiguous(path: String, name: &str, first: &Use<'_>) -> Problem {
    Problem {
        path,
        found: quoted(name),
        expected: format!(
            "a name that cannot be taken for {} at {} (case, spaces, - and _ do not count)",
            quoted(first.name),
            first.path
        ),
    }
}

/// Lists of named objects, with their name fields. The schema checks the `name` of members.
const NAMED: &[(&str, &[&str])] = &[
    ("/agents", &["name"]),
    ("/team/roleDefinitions", &["name", "displayName"]),
    (
        "/team/members",
        &["displayName", "role", "displayRole", "agentType"],
    ),
];

/// Reports names with line breaks or control characters. Names are shown before messages, to people
/// and to agents: a line break in one could fake a message of another speaker.
fn unfit_names(document: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(team) = document.get("team") {
        problems.extend(unfit(team, "/team", &["name", "displayName"]));
    }
    for (list, fields) in NAMED {
        let items = document.pointer(list).and_then(Value::as_array);
        for (index, item) in items.into_iter().flatten().enumerate() {
            problems.extend(unfit(item, &format!("{list}/{index}"), fields));
        }
    }
    problems
}

fn unfit<'a>(
    object: &'a Value,
    path: &'a str,
    fields: &'a [&str],
) -> impl Iterator<Item = Problem> + 'a {
    fields.iter().filter_map(move |field| {
        let name = object.get(field)?.as_str()?;
        name.contains(breaks_or_turns).then(|| Problem {
            path: below(path, field),
            found: quoted(name),
            expected: "a text on one line, without control characters".to_owned(),
        })
    })
}

/// Returns true for characters that end a line, control a terminal or change the text direction.
/// Joiners are allowed, because names in many scripts need them.
fn breaks_or_turns(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Reports a team without people. Only if all members are of type `ai`: the schema reports misspelt
/// types.
fn nobody_human(members: &[Value]) -> Option<Problem> {
    let all_agents = members.iter().all(|member| member["type"] == "ai");
    (all_agents && !members.is_empty()).then(|| Problem {
        path: "/team/members".to_owned(),
        found: "no member of type \"human\"".to_owned(),
        expected: "at least one, who begins and decides".to_owned(),
    })
}

/// Reports agents that are defined twice, since it would be undefined which definition counts.
fn repeated_agents(document: &Value) -> Vec<Problem> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    let agents = document.get("agents").and_then(Value::as_array);
    for (index, agent) in agents.into_iter().flatten().enumerate() {
        let Some(name) = agent.get("name").and_then(Value::as_str) else {
            continue;
        };
        match first.get(name) {
            Some(first) => problems.push(Problem {
                path: format!("/agents/{index}/name"),
                found: quoted(name),
                expected: format!("another name than /agents/{first}/name"),
            }),
            None => {
                first.insert(name, index);
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_join_letters_and_break_no_lines() {
        for name in [
            "Zo\u{e}",
            "A\nB",
            "A\u{2028}B",
            "\u{202e}A",
            "\u{2066}A",
            "\u{9b}2J",
        ] {
            assert!(name.contains(breaks_or_turns), "{name:?}");
        }
        for name in ["Zoë", "👩\u{200d}💻", "می\u{200c}خواهم", "a b"] {
            assert!(!name.contains(breaks_or_turns), "{name:?}");
        }
    }

    #[test]
    fn names_are_compared_without_what_people_leave_out() {
        let check = |name: &str, expected: &str| assert_eq!(address(name), expected);
        check("Max_Power", "maxpower");
        check(" max - power ", "maxpower");
        check("ÄRZTIN 1", "ärztin1");
        check("-_-", "");
    }
}
