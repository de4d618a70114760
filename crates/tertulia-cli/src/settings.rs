//! Settings, resolved once into plain structs: flag > environment > project file > user file > default.

mod agent;
mod values;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use toml::{Table, Value};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::project::{Folders, Project};
use crate::ui::Ui;
use crate::{agents, env, registry};
pub use agent::AgentSettings;
use values::Reader;

/// The settings file's name, in the user's folder and in a project's `.tertulia`.
const FILE: &str = "config.toml";
/// The file of the folders that were seen, in the folder of the program's data.
const PROJECTS: &str = "projects.json";

/// A write waits so long for another program, where nothing else is set.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// On a screen the demo speaks at a pace that one can follow.
const DEMO_PACE: Duration = Duration::from_millis(12);

/// Everything that a command needs to know about where it runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where sessions live.
    pub store: StoreUrl,
    /// Whether secrets are replaced before they are written.
    pub redact: bool,
    /// How long a write waits for another program that holds the store.
    pub lock_timeout: Duration,
    /// The agent that answers, if one was chosen, and who chose it.
    pub agent: Option<(String, Source)>,
    /// The agents that the settings describe.
    pub agents: BTreeMap<String, AgentSettings>,
    /// What is moved to the trash unasked: nothing, unless somebody set it.
    pub retention: Retention,
    /// Where the registered agents are.
    pub registry: registry::Place,
    /// The folder of the program's own data.
    pub data: PathBuf,
    /// How long the demo rests after each word where its own settings do not say.
    pub demo_pace: Duration,
    /// The folder in which the program was started.
    pub cwd: PathBuf,
    /// The project that it belongs to.
    pub project: Project,
    /// The folders that were seen before.
    pub folders: Folders,
    /// The program with the flags that chose the store, so that what is printed works from any folder.
    pub program: String,
    /// Whether the project's file says where sessions live.
    store_from_project: bool,
    /// What was odd in the settings files.
    pub warnings: Vec<String>,
}

/// Which sessions are too old or too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Those in which nobody has spoken for so long.
    pub max_age: Option<jiff::SignedDuration>,
    /// Those beyond the newest so many.
    pub max_count: Option<usize>,
    /// But none in which somebody has spoken since.
    pub min_age: jiff::SignedDuration,
    /// How long the trash keeps.
    pub trash: jiff::SignedDuration,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            max_age: None,
            max_count: None,
            min_age: jiff::SignedDuration::from_hours(24),
            trash: jiff::SignedDuration::from_hours(30 * 24),
        }
    }
}

impl Retention {
    /// Whether anything is ever moved unasked.
    pub fn is_on(&self) -> bool {
        self.max_age.is_some() || self.max_count.is_some()
    }
}

/// Who set something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A flag or the environment: the person at the keyboard.
    Person,
    /// The project's file: whoever wrote the project.
    ProjectFile,
    /// The user's own file.
    UserFile,
}

/// A place for sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A database file.
    Sqlite(PathBuf),
    /// A folder of logs.
    Files(PathBuf),
    /// Nothing is kept.
    Memory,
}

const TOP_KEYS: &[&str] = &[
    "store",
    "redact",
    "lock_timeout",
    "agent",
    "agents",
    "retention",
];
const RETENTION_KEYS: &[&str] = &["max_age", "max_count", "min_age", "trash"];
impl Settings {
    /// Reads flags, environment and files.
    pub fn resolve(global: &GlobalArgs, ui: &Ui) -> CommandResult<Settings> {
        let cwd = std::env::current_dir().map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the current folder cannot be read").because(error)
        })?;
        let folders = UserFolders::find(global)?;
        let known = Folders::read(&folders.data.join(PROJECTS)).unwrap_or_default();
        let mut settings = Settings {
            store: StoreUrl::Sqlite(folders.data.join("tertulia.db")),
            redact: true,
            lock_timeout: LOCK_TIMEOUT,
            agent: None,
            agents: BTreeMap::new(),
            retention: Retention::default(),
            registry: registry::Place::new(&folders.config, env::path("HOME").as_deref()),
            data: folders.data.clone(),
            demo_pace: if ui.has_screen() {
                DEMO_PACE
            } else {
                Duration::ZERO
            },
            project: Project::of(&cwd, env::path("HOME").as_deref(), &known),
            folders: known,
            cwd,
            program: "tertulia".to_owned(),
            store_from_project: false,
            warnings: Vec::new(),
        };
        settings.read(&folders.config.join(FILE), Source::UserFile)?;
        if let Some(file) = project_file(&settings.cwd) {
            settings.read(&file, Source::ProjectFile)?;
        }
        if let Some(url) = global.store.clone().or_else(|| env::text(env::STORE)) {
            settings.store = StoreUrl::parse(&url, &settings.cwd)?;
        }
        if let Some(seconds) = env::text(env::LOCK_TIMEOUT) {
            settings.lock_timeout = values::seconds(&seconds).ok_or_else(|| {
                let words = format!("{}={seconds} is no number of seconds", env::LOCK_TIMEOUT);
                CommandError::new(ErrorKind::Usage, words)
            })?;
        }
        settings.program.push_str(&settings.flags(global));
        if let Some(agent) = env::text(env::AGENT) {
            settings.agent = Some((agent, Source::Person));
        }
        Ok(settings)
    }

    /// The file of the folders that were seen.
    pub fn projects_file(&self) -> PathBuf {
        self.data.join(PROJECTS)
    }

    /// The flags that chose the store, with their paths made absolute.
    fn flags(&self, global: &GlobalArgs) -> String {
        let mut flags = String::new();
        if let Some(folder) = &global.data_dir {
            flags.push_str(&format!(
                " --data-dir {}",
                quoted(&self.cwd.join(folder).display().to_string())
            ));
        }
        if global.store.is_some() || (self.store_from_project && env::text(env::STORE).is_none()) {
            flags.push_str(&format!(" --store {}", quoted(&self.store.to_string())));
        }
        flags
    }

    fn read(&mut self, file: &Path, source: Source) -> CommandResult<()> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(wrong(file, "it cannot be read").because(error)),
        };
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            wrong(file, &format!("it is not TOML: {}", error.message()))
                .hint(error.to_string().trim().to_owned())
        })?;
        self.warn_unknown(file, "", &table, TOP_KEYS);
        let reader = Reader { file };
        if let Some(url) = reader.text(&table, "store")? {
            let base = file.parent().unwrap_or(Path::new("."));
            let base = if source == Source::ProjectFile {
                base.parent().unwrap_or(base)
            } else {
                base
            };
            self.store = StoreUrl::parse(&url, base)?;
            self.store_from_project = source == Source::ProjectFile;
        }
        if let Some(redact) = reader.flag(&table, "redact")? {
            self.redact = redact;
        }
        if let Some(timeout) = reader.seconds(&table, "lock_timeout")? {
            self.lock_timeout = timeout;
        }
        if let Some(agent) = reader.text(&table, "agent")? {
            self.agent = Some((agent, source));
        }
        if let Some(retention) = reader.table(&table, "retention")? {
            self.warn_unknown(file, "retention.", retention, RETENTION_KEYS);
            let retention = reader.retention(retention)?;
            if source == Source::ProjectFile {
                // Sessions of all projects would follow what somebody wrote into one of them.
                self.warnings.push(format!(
                    "{}: [retention] counts only in your own settings",
                    file.display()
                ));
            } else {
                self.retention = retention;
            }
        }
        for (name, value) in reader.table(&table, "agents")?.into_iter().flatten() {
            let Value::Table(agent) = value else {
                return Err(
                    reader.expected(&format!("agents.{name}"), "a table such as [agents.NAME]")
                );
            };
            self.warn_unknown(file, &format!("agents.{name}."), agent, agent::KEYS);
            let read = AgentSettings::read(&reader, name, agent, source)?;
            let read = match self.agents.get(name).cloned() {
                Some(known) if source == Source::ProjectFile => {
                    self.adjusted(file, name, agent, known, read)
                }
                None if source == Source::ProjectFile
                    && agents::built_in().any(|kind| kind == name) =>
                {
                    self.adjusted(file, name, agent, AgentSettings::plain(name), read)
                }
                _ => read,
            };
            self.agents.insert(name.clone(), read);
        }
        Ok(())
    }

    /// An agent that the person knows, as a project wants it: how it answers may be the project's
    /// affair, but what is run, where words go and with which key is not.
    fn adjusted(
        &mut self,
        file: &Path,
        name: &str,
        table: &Table,
        known: AgentSettings,
        project: AgentSettings,
    ) -> AgentSettings {
        for key in agent::REACH.iter().filter(|key| table.contains_key(**key)) {
            self.warnings.push(format!(
                "{}: '{key}' of the agent '{name}' counts only in your own settings",
                file.display()
            ));
        }
        known.adjusted_by(project)
    }

    fn warn_unknown(&mut self, file: &Path, prefix: &str, table: &Table, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
            self.warnings.push(format!(
                "{}: unknown setting '{prefix}{key}'",
                file.display()
            ));
        }
    }
}

/// The folders of this user.
struct UserFolders {
    data: PathBuf,
    config: PathBuf,
}

impl UserFolders {
    fn find(global: &GlobalArgs) -> CommandResult<UserFolders> {
        if let Some(home) = global.data_dir.clone().or_else(|| env::path(env::HOME)) {
            return Ok(UserFolders {
                data: home.clone(),
                config: home,
            });
        }
        let missing = |words: String| {
            CommandError::new(ErrorKind::Usage, words)
                .hint("set HOME to an absolute path, or name a folder with --data-dir")
        };
        // It would mean another folder in every folder.
        if let Some(home) = env::path("HOME").filter(|home| home.is_relative()) {
            let words = format!(
                "HOME is '{}', which is not an absolute path",
                home.display()
            );
            return Err(missing(words));
        }
        let base = etcetera::base_strategy::Xdg::new().map_err(|error| {
            missing("there is no home folder to keep sessions in".to_owned()).because(error)
        })?;
        Ok(UserFolders {
            data: base.data_dir().join("tertulia"),
            config: base.config_dir().join("tertulia"),
        })
    }
}

fn project_file(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors()
        .map(|folder| folder.join(".tertulia").join(FILE))
        .find(|file| file.is_file())
}

impl StoreUrl {
    /// Reads `sqlite:FILE`, `sqlite::memory:` or `files:DIR`; relative paths are taken from `base`.
    pub fn parse(url: &str, base: &Path) -> CommandResult<StoreUrl> {
        let place = |path: &str| {
            let path = path
                .strip_prefix("//")
                .filter(|rest| rest.starts_with('/'))
                .unwrap_or(path);
            match path.strip_prefix("~/").zip(env::path("HOME")) {
                Some((rest, home)) => home.join(rest),
                None => base.join(path),
            }
        };
        match url.split_once(':') {
            Some(("sqlite", ":memory:")) => Ok(StoreUrl::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(StoreUrl::Sqlite(place(path))),
            Some(("files", path)) if !path.is_empty() => Ok(StoreUrl::Files(place(path))),
            _ => Err(
                CommandError::new(ErrorKind::Usage, format!("'{url}' is not a store"))
                    .hint("write sqlite:FILE, sqlite::memory: or files:DIR"),
            ),
        }
    }
}

/// A store's URL as it could be typed.
impl std::fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            StoreUrl::Files(path) => write!(f, "files:{}", path.display()),
            StoreUrl::Memory => f.write_str("sqlite::memory:"),
        }
    }
}

/// A word as a shell takes it.
pub fn quoted(text: &str) -> String {
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"/.:_-".contains(&b));
    if plain {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn wrong(file: &Path, what: &str) -> CommandError {
    CommandError::new(ErrorKind::Usage, format!("{}: {what}", file.display()))
}
