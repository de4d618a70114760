//! A project's settings file: found at the project's root, and applied only as far as the folder is
//! trusted.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{
    AgentSettings, Faults, Settings, StoreUrl, TOP_KEYS, Untrusted, agent, parsed, seal,
    without_password,
};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::trust::Decisions;
use crate::{agents, env, project};

/// Folder of a project's own files.
const FOLDER: &str = ".tertulia";
/// Maximum length of a value that is shown.
const SHOWN: usize = 120;

/// A project's settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Root of the project.
    pub folder: PathBuf,
    /// Content of the file.
    pub text: String,
    /// Hash of the content: trust ends when it changes.
    pub hash: String,
}

/// A setting of a project file that needs trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrustedSetting {
    /// Full key, including the names of its tables.
    pub key: String,
    /// Value, on one line.
    pub value: String,
}

impl ProjectFile {
    /// Reads a project's file. Refuses, with the reason, a file that other users own or may write
    /// to.
    pub fn of(root: &Path) -> Result<Option<ProjectFile>, String> {
        let folder = root.join(FOLDER);
        let path = folder.join(super::FILE);
        let refused = |what: &str| Err(format!("{} is ignored: {what}", path.display()));
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return refused(&format!("it cannot be read ({error})")),
        };
        let all = [
            ("it", file.metadata()),
            ("its folder", fs::metadata(&folder)),
        ];
        for (what, found) in all {
            match found {
                Ok(found) if !found.is_dir() && !found.is_file() => {
                    return refused("it is not a file");
                }
                Ok(found) => {
                    if let Some(fault) = foreign(&found) {
                        return refused(&format!("{what} {fault}"));
                    }
                }
                Err(error) => return refused(&format!("it cannot be read ({error})")),
            }
        }
        // Anyone who may write to the root can replace the folder, unless the sticky bit is set.
        if let Ok(found) = fs::metadata(root)
            && found.permissions().mode() & 0o1002 == 0o0002
        {
            return refused("the project's folder may be written to by every user");
        }
        let mut text = String::new();
        match file.read_to_string(&mut text) {
            Ok(_) => {}
            Err(error) => return refused(&format!("it cannot be read ({error})")),
        }
        Ok(Some(ProjectFile {
            path: path.clone(),
            folder: root.to_owned(),
            hash: tertulia_core::entry::Hash::of_text(&text).to_string(),
            text,
        }))
    }
}

impl Settings {
    /// Reads the project's file and applies it as far as its folder is trusted.
    pub(super) fn read_project_file(&mut self, faults: Faults) -> CommandResult<()> {
        let file = match ProjectFile::of(&self.project.root) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(()),
            Err(reason) => {
                self.warnings.push(reason);
                return Ok(());
            }
        };
        let mut table = match parsed(&file.path, &file.text) {
            Ok(table) => table,
            Err(error) => return self.fault(error, faults),
        };
        for taken in forbid(&mut table) {
            self.warnings.push(format!(
                "{}: {taken} counts only in your own settings",
                file.path.display()
            ));
        }
        let decided = Decisions::read(&self.trust_file()).unwrap_or_else(|error| {
            self.warnings.push(error.to_string());
            Decisions::default()
        });
        let decided = decided.about(&file.folder, &file.hash);
        if decided != Some(true) {
            let claims = self.sift(&mut table);
            if !claims.is_empty() {
                self.untrusted = Some(Untrusted {
                    file: file.clone(),
                    claims,
                    denied: decided == Some(false),
                });
            }
        }
        let known = std::mem::take(&mut self.agents);
        let chooses_store = self.take(&file.path, &file.text, &table, &file.folder, faults)?;
        self.store_from_project = chooses_store;
        let described = std::mem::replace(&mut self.agents, known);
        let tables = table.get("agents").and_then(Value::as_table);
        for (name, project) in described {
            let known = self.agents.get(&name).cloned();
            let known =
                known.or_else(|| agents::is_built_in(&name).then(|| AgentSettings::plain(&name)));
            let table = tables.and_then(|tables| tables.get(&name)?.as_table());
            let agent = match (known, table) {
                (Some(known), Some(table)) => known.overridden_by(project, table),
                _ => project,
            };
            self.agents.insert(name, agent);
        }
        Ok(())
    }

    /// Returns the settings of a project's file that need trust.
    pub fn claims(&self, file: &ProjectFile) -> CommandResult<Vec<UntrustedSetting>> {
        let mut table = parsed(&file.path, &file.text)?;
        forbid(&mut table);
        Ok(self.sift(&mut table))
    }

    fn sift(&self, table: &mut Table) -> Vec<UntrustedSetting> {
        sift(table, TOP_KEYS, |name| match self.agents.get(name) {
            Some(known) => Some(known.kind.clone()),
            None => agents::is_built_in(name).then(|| name.to_owned()),
        })
    }

    /// Fails if the store that a project's file selects belongs to another user, who could read the
    /// sessions.
    pub(super) fn refuse_foreign_store(&self) -> CommandResult<()> {
        let (StoreUrl::Sqlite(path) | StoreUrl::Files(path)) = &self.store else {
            return Ok(());
        };
        let user = rustix::process::geteuid().as_raw();
        match fs::metadata(path) {
            Ok(found) if found.uid() != user => Err(CommandError::new(
                ErrorKind::Usage,
                format!(
                    "the store that this project's settings choose belongs to another user: {}",
                    path.display()
                ),
            )
            .hint("choose one with --store, or run `tertulia trust --revoke`")),
            _ => Ok(()),
        }
    }

    /// Returns the root of the project that a folder belongs to.
    pub fn root_of(&self, folder: &Path) -> PathBuf {
        match fs::canonicalize(folder) {
            Ok(folder) => project::root_of(&folder, env::path("HOME").as_deref()),
            Err(_) => folder.to_owned(),
        }
    }
}

/// Returns why a file or folder is not exclusively the user's own, or `None` if it is. Write
/// permission for the user's private group, which many systems create, is acceptable.
fn foreign(found: &Metadata) -> Option<&'static str> {
    let user = rustix::process::geteuid().as_raw();
    let mode = found.permissions().mode();
    if found.uid() != user {
        Some("belongs to another user")
    } else if mode & 0o002 != 0 || (mode & 0o020 != 0 && found.gid() != user) {
        Some("may be written to by other users (chmod go-w)")
    } else {
        None
    }
}

/// Removes the settings that no project may make, trusted or not, and returns a description of
/// each.
pub fn forbid(table: &mut Table) -> Vec<String> {
    let mut taken = Vec::new();
    if table.remove("retention").is_some() {
        // Retention would apply to the sessions of all projects.
        taken.push("[retention]".to_owned());
    }
    if let Some(Value::Table(seal)) = table.get_mut("seal") {
        taken.extend(seal::forbid(seal));
    }
    if table
        .get("redact")
        .is_some_and(|value| *value != Value::Boolean(true))
    {
        let value = table.remove("redact").map(|value| shown(&value));
        taken.push(format!("redact = {}", value.unwrap_or_default()));
    }
    if let Some(Value::String(url)) = table.get("store")
        && matches!(StoreUrl::parse(url, Path::new("/")), Ok(StoreUrl::Memory))
    {
        taken.push(format!("store = \"{url}\""));
        table.remove("store");
    }
    let agents = table.get_mut("agents").and_then(Value::as_table_mut);
    for (name, agent) in agents.into_iter().flatten() {
        for key in agent::USERS_ONLY {
            let value = agent.as_table_mut().and_then(|agent| agent.remove(*key));
            taken.extend(value.map(|value| format!("agents.{name}.{key} = {}", shown(&value))));
        }
    }
    taken
}

/// Removes and returns the settings that need trust. No trust is needed to choose an agent that the
/// user has and to change how it answers; `kind_of` returns the type of known agents.
pub fn sift(
    table: &mut Table,
    known_keys: &[&str],
    kind_of: impl Fn(&str) -> Option<String>,
) -> Vec<UntrustedSetting> {
    let mut claims = Vec::new();
    if let Some(Value::Table(seal)) = table.get_mut("seal")
        && let Some(value) = seal.remove("recipients")
    {
        claims.push(claim("seal.recipients".to_owned(), &value));
    }
    for key in known_keys {
        if !["agent", "agents", "seal"].contains(key)
            && let Some(value) = table.remove(*key)
        {
            claims.push(claim((*key).to_owned(), &value));
        }
    }
    let Some(Value::Table(agents)) = table.get_mut("agents") else {
        return claims;
    };
    agents.retain(|name, value| {
        let Value::Table(agent) = value else {
            return true;
        };
        let kind = kind_of(name);
        for key in agent::KEYS.iter().filter(|key| !agent::FREE.contains(key)) {
            let is_no_change = *key == "type"
                && agent.get("type").and_then(Value::as_str) == kind.as_deref()
                && kind.is_some();
            if let Some(value) = agent.remove(*key)
                && !is_no_change
            {
                claims.push(claim(format!("agents.{name}.{key}"), &value));
            }
        }
        kind.is_some()
    });
    claims
}

fn claim(key: String, value: &Value) -> UntrustedSetting {
    let value = shown(&hide_passwords(value));
    UntrustedSetting { key, value }
}

/// Returns a value without the passwords of URLs in it, such as those of stores.
fn hide_passwords(value: &Value) -> Value {
    match value {
        Value::String(url) if url.contains("://") => Value::String(without_password(url)),
        Value::Array(values) => Value::Array(values.iter().map(hide_passwords).collect()),
        Value::Table(table) => {
            let pairs = table.iter();
            let hidden = pairs.map(|(key, value)| (key.clone(), hide_passwords(value)));
            Value::Table(hidden.collect())
        }
        value => value.clone(),
    }
}

fn shown(value: &Value) -> String {
    crate::ui::fit(&value.to_string(), SHOWN)
}
