//! Converts older published versions of team files and agent registries to the current one, and
//! reports each change as a line.

use serde_json::{Map, Value, json};

use super::problem::TeamError;
use super::rules;
use super::schema::{Form, parse};

/// A document in the current version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Kind of document.
    pub form: Form,
    /// Text, valid under its schema and rules.
    pub text: String,
    /// Changes, one line each; empty if the document was already current.
    pub changes: Vec<String>,
}

/// Obsolete fields of a member, and why they were removed.
const GONE: &[(&str, &str)] = &[
    (
        "workDir",
        "every agent works in the folder where tertulia is started",
    ),
    ("homeDir", "agents keep their own home"),
    ("additionalArgs", "they were never used"),
    ("id", "a member's id is its name"),
    ("order", "the order of the list counts"),
    ("instructionFileText", "the file is read when it is needed"),
];

/// Earlier names of the member field `agentType`.
const AGENT_NAMES: &[&str] = &["agentConfigId", "agentConfigName", "agentName", "agent"];

/// Converts a team file or an agent registry to the current version. `origin` names the source in
/// error messages.
pub fn migrate(text: &str, origin: &str) -> Result<Migration, TeamError> {
    let mut document = parse(text, origin)?;
    let form = form_of(&document);
    form.check_not_newer(&document, origin)?;
    let mut changes = Changes::default();
    if let Value::Object(object) = &mut document {
        changes.version(object, form);
        match form {
            Form::Registry => registry(object, &mut changes),
            Form::Team | Form::Snapshot => team_file(object, &mut changes),
        }
    }
    let rules = match form {
        Form::Registry => rules::registry,
        Form::Team | Form::Snapshot => rules::team,
    };
    Ok(Migration {
        form,
        text: form.write(&document, origin, rules)?,
        changes: changes.lines,
    })
}

/// Distinguishes registries (an object of agents and no team) from team files.
fn form_of(document: &Value) -> Form {
    let has_team = document.get("team").is_some();
    match document.get("agents") {
        Some(Value::Object(_)) if !has_team => Form::Registry,
        _ => Form::Team,
    }
}

/// Changes made so far.
#[derive(Default)]
struct Changes {
    lines: Vec<String>,
}

impl Changes {
    fn say(&mut self, line: String) {
        self.lines.push(line);
    }

    fn version(&mut self, object: &mut Map<String, Value>, form: Form) {
        let newest = form.newest().to_string();
        let before = object.get("schemaVersion").cloned();
        if before.as_ref().and_then(Value::as_str) == Some(&newest) {
            return;
        }
        self.say(match before {
            Some(before) => format!("schemaVersion: {} -> \"{newest}\"", shown(&before)),
            None => format!("schemaVersion: added \"{newest}\""),
        });
        // Inserts the version as the first field.
        let rest = std::mem::take(object);
        object.insert("schemaVersion".to_owned(), json!(newest));
        object.extend(rest.into_iter().filter(|(key, _)| key != "schemaVersion"));
    }

    /// Removes fields that are not in `known`.
    fn only(&mut self, object: &mut Map<String, Value>, path: &str, known: &[&str], why: &str) {
        let unknown: Vec<String> = object
            .keys()
            .filter(|key| !known.contains(&key.as_str()))
            .cloned()
            .collect();
        for key in unknown {
            if let Some(value) = object.shift_remove(&key) {
                self.say(format!("{path}{key}: removed {} ({why})", shown(&value)));
            }
        }
    }

    /// Renames a field, unless the new name already exists.
    fn rename(&mut self, object: &mut Map<String, Value>, path: &str, old: &str, new: &str) {
        if object.contains_key(new) {
            return;
        }
        if let Some(value) = object.shift_remove(old) {
            self.say(format!("{path}{old}: renamed to {new}"));
            object.insert(new.to_owned(), value);
        }
    }

    /// Adds a field if it is missing.
    fn add(&mut self, object: &mut Map<String, Value>, path: &str, key: &str, value: Value) {
        if !object.contains_key(key) {
            self.say(format!("{path}{key}: added {}", shown(&value)));
            object.insert(key.to_owned(), value);
        }
    }
}

fn team_file(document: &mut Map<String, Value>, changes: &mut Changes) {
    changes.only(
        document,
        "",
        &[
            "schemaVersion",
            "agents",
            "team",
            "maxRounds",
            "conversation",
        ],
        "not part of a team file",
    );
    if let Some(Value::Object(agents)) = document.get("agents") {
        changes.say("agents: an object -> a list".to_owned());
        let listed = agents.iter().map(|(name, agent)| {
            let mut agent = agent.clone();
            if let Value::Object(agent) = &mut agent {
                agent.entry("name").or_insert_with(|| json!(name));
            }
            agent
        });
        let listed: Vec<Value> = listed.collect();
        document.insert("agents".to_owned(), Value::Array(listed));
    }
    let mut agents = Vec::new();
    for (path, agent) in items(document, "agents") {
        agent_fields(
            agent,
            &path,
            &["name", "command", "args", "usePty"],
            changes,
        );
        agents.extend(text_of(agent, "name"));
    }
    if let Some(Value::Object(conversation)) = document.get_mut("conversation") {
        let path = "conversation.";
        changes.rename(
            conversation,
            path,
            "contextMessageCount",
            "contextWindowSize",
        );
        let known = [
            "maxAgentResponseTime",
            "showThinkingTimer",
            "allowEscCancel",
            "contextWindowSize",
            "maxBytes",
        ];
        changes.only(conversation, path, &known, "not a setting of a team");
    }
    if let Some(Value::Object(team)) = document.get_mut("team") {
        team_fields(team, &agents, changes);
    }
}

/// Removes `endMarker`: answers are read as events, so their end is known without a marker.
fn agent_fields(agent: &mut Map<String, Value>, path: &str, known: &[&str], changes: &mut Changes) {
    let marker = text_of(agent, "endMarker");
    if let Some(value) = agent.shift_remove("endMarker") {
        changes.say(format!(
            "{path}endMarker: removed {} (the end of an answer is known without it)",
            shown(&value)
        ));
    }
    let args = agent.get("args").and_then(Value::as_array);
    if let (Some(marker), Some(args)) = (marker, args) {
        let asks = |arg: &Value| arg.as_str().is_some_and(|arg| arg.contains(&marker));
        if args.iter().any(asks) {
            changes.say(format!(
                "{path}args: kept, but they still ask for {marker} at the end of each answer"
            ));
        }
    }
    changes.only(agent, path, known, "not part of an agent");
}

fn team_fields(team: &mut Map<String, Value>, agents: &[String], changes: &mut Changes) {
    changes.rename(team, "team.", "roles", "members");
    if let Some(value) = team.shift_remove("workDir") {
        changes.say(format!(
            "team.workDir: removed {} (agents work in the folder where tertulia is started)",
            shown(&value)
        ));
    }
    let name = text_of(team, "displayName").or_else(|| text_of(team, "name"));
    if let Some(name) = name {
        changes.add(team, "team.", "name", json!(name));
        changes.add(team, "team.", "description", json!(name));
    }
    let known = [
        "name",
        "displayName",
        "description",
        "instructionFile",
        "roleDefinitions",
        "members",
    ];
    changes.only(team, "team.", &known, "not part of a team");
    for (path, role) in items_below(team, "team.", "roleDefinitions") {
        changes.rename(role, &path, "title", "displayName");
        changes.only(
            role,
            &path,
            &["name", "displayName", "description"],
            "not part of a role",
        );
    }
    in_order(team, changes);
    let mut taken = Vec::new();
    for (path, member) in items_below(team, "team.", "members") {
        member_fields(member, &path, agents, changes);
        if let Some(name) = text_of(member, "name") {
            let fitting = fitting_name(&name, &taken);
            if fitting != name {
                changes.say(format!("{path}name: {name:?} -> {fitting:?}"));
                member.insert("name".to_owned(), json!(fitting));
            }
            taken.push(fitting);
        }
    }
}

/// Sorts members by their `order` numbers; today the order of the list counts.
fn in_order(team: &mut Map<String, Value>, changes: &mut Changes) {
    let Some(members) = team.get_mut("members").and_then(Value::as_array_mut) else {
        return;
    };
    let place = |member: &Value| member.get("order").and_then(Value::as_u64);
    let is_numbered = members.iter().all(|member| place(member).is_some());
    if is_numbered && !members.is_sorted_by_key(place) {
        members.sort_by_key(place);
        changes.say("team.members: sorted by their order".to_owned());
    }
}

fn member_fields(
    member: &mut Map<String, Value>,
    path: &str,
    agents: &[String],
    changes: &mut Changes,
) {
    changes.rename(member, path, "title", "displayName");
    for old in AGENT_NAMES {
        changes.rename(member, path, old, "agentType");
        if let Some(value) = member.shift_remove(*old) {
            let value = shown(&value);
            changes.say(format!("{path}{old}: removed {value} (agentType counts)"));
        }
    }
    let is_ai = match text_of(member, "type").map(|kind| kind.to_lowercase()) {
        Some(kind) => kind == "ai",
        None => member.contains_key("agentType"),
    };
    let kind = if is_ai { "ai" } else { "human" };
    let known = text_of(member, "type").is_some_and(|kind| kind == "ai" || kind == "human");
    if !known {
        changes.say(format!("{path}type: set to \"{kind}\""));
        member.insert("type".to_owned(), json!(kind));
    }
    if let ([only], true) = (agents, is_ai) {
        changes.add(member, path, "agentType", json!(only));
    }
    let name = text_of(member, "name").or_else(|| text_of(member, "displayName"));
    if let Some(name) = name {
        for field in ["name", "displayName", "role"] {
            changes.add(member, path, field, json!(name));
        }
    }
    base_dir(member, path, changes);
    changes.add(member, path, "systemInstruction", json!(""));
    for (field, why) in GONE {
        if let Some(value) = member.shift_remove(*field) {
            changes.say(format!("{path}{field}: removed {} ({why})", shown(&value)));
        }
    }
    if let Some(Value::Object(env)) = member.get_mut("env") {
        for (name, value) in env.iter_mut().filter(|(_, value)| !value.is_string()) {
            changes.say(format!(
                "{path}env.{name}: a value that is no text -> a text"
            ));
            *value = json!(value.to_string());
        }
    }
}

/// Renames `roleDir` to `baseDir`. Instruction files were relative to the working directory of the
/// program; now they are relative to `baseDir`.
fn base_dir(member: &mut Map<String, Value>, path: &str, changes: &mut Changes) {
    changes.rename(member, path, "roleDir", "baseDir");
    changes.add(member, path, "baseDir", json!("."));
    let (Some(folder), Some(file)) = (
        text_of(member, "baseDir"),
        text_of(member, "instructionFile"),
    ) else {
        return;
    };
    let below = file
        .strip_prefix(folder.trim_end_matches('/'))
        .and_then(|rest| rest.strip_prefix('/'));
    if let Some(below) = below.filter(|below| !below.is_empty()) {
        changes.say(format!(
            "{path}instructionFile: {file:?} -> {below:?} (from baseDir)"
        ));
        let below = below.to_owned();
        member.insert("instructionFile".to_owned(), json!(below));
    }
}

fn registry(document: &mut Map<String, Value>, changes: &mut Changes) {
    changes.only(
        document,
        "",
        &["schemaVersion", "agents"],
        "not part of a registry",
    );
    let known = [
        "name",
        "displayName",
        "command",
        "args",
        "usePty",
        "version",
        "installedAt",
        "lastVerified",
    ];
    let agents = document.get_mut("agents").and_then(Value::as_object_mut);
    for (name, agent) in agents.into_iter().flatten() {
        let Value::Object(agent) = agent else {
            continue;
        };
        let path = format!("agents.{name}.");
        agent_fields(agent, &path, &known, changes);
        changes.add(agent, &path, "name", json!(name));
        changes.add(agent, &path, "displayName", json!(name));
        changes.add(agent, &path, "args", json!([]));
        changes.add(agent, &path, "usePty", json!(false));
    }
}

/// Returns the objects of a list, each with its path.
fn items<'a>(
    object: &'a mut Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (String, &'a mut Map<String, Value>)> {
    items_below(object, "", key)
}

fn items_below<'a>(
    object: &'a mut Map<String, Value>,
    path: &str,
    key: &str,
) -> impl Iterator<Item = (String, &'a mut Map<String, Value>)> {
    let path = format!("{path}{key}");
    let list = object.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter()
        .flatten()
        .enumerate()
        .filter_map(move |(place, item)| Some((format!("{path}[{place}]."), item.as_object_mut()?)))
}

fn text_of(object: &Map<String, Value>, key: &str) -> Option<String> {
    let text = object.get(key)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns a name that markers can use and that is not taken.
fn fitting_name(name: &str, taken: &[String]) -> String {
    let letters: String = name
        .chars()
        .map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() || "_-".contains(letter) => letter,
            _ => '-',
        })
        .collect();
    let letters = match letters.trim_matches('-') {
        "" => "member",
        letters => letters,
    };
    let is_taken = |wanted: &str| {
        let wanted = rules::address(wanted);
        taken.iter().any(|name| rules::address(name) == wanted)
    };
    let mut fitting = letters.to_owned();
    let mut number = 2;
    while is_taken(&fitting) {
        fitting = format!("{letters}-{number}");
        number += 1;
    }
    fitting
}

/// Returns a value on one line, truncated if it is long.
fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
