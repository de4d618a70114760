//! Settings, resolved once into plain structs: flag > environment > project file > user file >
//! default.

mod agent;
mod keys;
mod notify;
#[cfg(feature = "postgres")]
pub mod postgres_password;
mod prices;
mod project_file;
mod retention;
#[cfg(feature = "tui")]
mod screen;
mod seal;
mod store_url;
mod values;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use tertulia_agents::approval::Approval;
use tertulia_agents::tool::ToolLimits;
use tertulia_core::price::PriceRow;
use toml::{Table, Value};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::project::{Folders, Project};
use crate::ui::Ui;
use crate::{env, registry};
pub use agent::AgentSettings;
use keys::{POSTGRES_KEYS, REDACT_KEYS, RETENTION_KEYS, TOP_KEYS};
pub use notify::Caller;
pub use project_file::{ProjectFile, UntrustedSetting};
pub use retention::Retention;
#[cfg(feature = "tui")]
pub use screen::ScreenSettings;
pub use seal::SealSettings;
pub use store_url::{StoreUrl, without_password};
use values::Reader;

/// Name of the settings file, in the user's folder and in a project's `.tertulia`.
const FILE: &str = "config.toml";
/// Name of the file that lists known project folders, in the data folder.
const PROJECTS: &str = "projects.json";

/// Default time that a write waits for another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Pace of the demo agent on a terminal, slow enough to read along.
const DEMO_PACE: Duration = Duration::from_millis(12);

/// Resolved settings and environment of a command.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where sessions are stored.
    pub store: StoreUrl,
    /// True if secrets are redacted before entries are written.
    pub redact: bool,
    /// How long a write waits for another process that holds the store.
    pub lock_timeout: Duration,
    /// File with additional redaction rules.
    pub redact_rules: Option<PathBuf>,
    /// The selected agent, if any, and who selected it.
    pub agent: Option<(String, Source)>,
    /// Agents described in the settings.
    pub agents: BTreeMap<String, AgentSettings>,
    /// Tool policy of sessions for which none was chosen.
    pub approve: Option<Approval>,
    /// What is moved to the trash automatically; nothing by default.
    pub retention: Retention,
    /// The user's own prices of models. Of two for the same, the first counts.
    pub prices: Vec<PriceRow>,
    /// Whether agents get the project's instructions.
    pub project_instructions: bool,
    /// Whether the messages that fall out of a team's context are summarised.
    pub team_summary: bool,
    /// Longest time that an agent may ask for when it runs a command.
    pub shell_timeout: Duration,
    /// Whether to show automatic tags.
    pub auto_tags: bool,
    /// Name of the user as the author of entries, if it is not that of the system.
    pub author: Option<String>,
    /// How sessions are sealed.
    pub seal: SealSettings,
    /// Program that prints the password of a PostgreSQL store, with its arguments.
    pub password_command: Option<Vec<String>>,
    /// Partner of `sync`, and the folder that a relative path in it belongs to.
    pub sync_with: Option<(String, PathBuf)>,
    /// How the full-screen interface looks and calls the user.
    #[cfg(feature = "tui")]
    pub screen: ScreenSettings,
    /// Location of the agent registry.
    pub registry: registry::Place,
    /// Folder of the program's own data.
    pub data: PathBuf,
    /// Default pause of the demo agent after each word.
    pub demo_pace: Duration,
    /// Folder to work in: that of the process, or that of a session.
    pub cwd: PathBuf,
    /// Project of the working directory.
    pub project: Project,
    /// Known project folders.
    pub folders: Folders,
    /// Program name with the flags that select the store: printed commands work from any folder.
    pub program: String,
    /// Flags of the command.
    global: GlobalArgs,
    /// True if the project's file selects the store.
    store_from_project: bool,
    /// Settings of the project's file that are ignored without trust.
    pub untrusted: Option<Untrusted>,
    /// Problems found in the settings files.
    pub warnings: Vec<String>,
}

/// Who made a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A flag or the environment: the user running the command.
    Person,
    /// A settings file: the user's own, or a project's as far as it is trusted.
    UserFile,
    /// A team file, which may have come with a project.
    TeamFile,
}

/// A project file with settings that need trust.
#[derive(Clone, Debug)]
pub struct Untrusted {
    /// The file.
    pub file: ProjectFile,
    /// The ignored settings.
    pub claims: Vec<UntrustedSetting>,
    /// True if the user was asked and denied trust.
    pub denied: bool,
}

/// How to handle an invalid value in a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Fail.
    Refuse,
    /// Warn and treat the value as unset, for commands that only read.
    Ignore,
}

/// Name of the file that lists trust decisions, in the data folder.
const TRUST: &str = "trust.json";

impl Settings {
    /// Resolves the settings from flags, environment and files.
    pub fn resolve(global: &GlobalArgs, ui: &Ui, faults: Faults) -> CommandResult<Settings> {
        let cwd = std::env::current_dir().map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the current folder cannot be read").because(error)
        })?;
        let demo_pace = match ui.has_screen() {
            true => DEMO_PACE,
            false => Duration::ZERO,
        };
        let mut settings = Settings::of_files(cwd, global, demo_pace, faults)?;
        if let Some(url) = global.store.clone().or_else(|| env::text(env::STORE)) {
            settings.store = StoreUrl::parse(&url, &settings.cwd)?;
        } else if settings.store_from_project {
            settings.refuse_foreign_store()?;
        }
        settings.program.push_str(&settings.flags(global));
        Ok(settings)
    }

    /// Returns the settings of another folder, as a command in it would have them. The store stays.
    pub fn in_folder(&self, folder: &Path) -> CommandResult<Settings> {
        let (folder, faults) = (folder.to_owned(), Faults::Refuse);
        let mut there = Settings::of_files(folder, &self.global, self.demo_pace, faults)?;
        there.store.clone_from(&self.store);
        there.program.clone_from(&self.program);
        // Those of the user's own file were shown before.
        there
            .warnings
            .retain(|warning| !self.warnings.contains(warning));
        Ok(there)
    }

    /// Reads the files that hold in a folder, and the environment but for the store.
    fn of_files(
        cwd: PathBuf,
        global: &GlobalArgs,
        demo_pace: Duration,
        faults: Faults,
    ) -> CommandResult<Settings> {
        let folders = UserFolders::find(global)?;
        let known = Folders::read(&folders.data.join(PROJECTS)).unwrap_or_default();
        let mut settings = Settings {
            store: StoreUrl::Sqlite(folders.data.join("tertulia.db")),
            redact: true,
            lock_timeout: LOCK_TIMEOUT,
            redact_rules: None,
            agent: None,
            agents: BTreeMap::new(),
            approve: None,
            retention: Retention::default(),
            prices: Vec::new(),
            auto_tags: false,
            project_instructions: true,
            team_summary: true,
            shell_timeout: ToolLimits::default().longest,
            author: None,
            seal: SealSettings::default(),
            password_command: None,
            sync_with: None,
            #[cfg(feature = "tui")]
            screen: ScreenSettings::default(),
            registry: registry::Place::new(&folders.config, env::path("HOME").as_deref()),
            data: folders.data.clone(),
            demo_pace,
            project: Project::of(&cwd, env::path("HOME").as_deref(), &known),
            folders: known,
            cwd,
            program: "tertulia".to_owned(),
            global: global.clone(),
            store_from_project: false,
            untrusted: None,
            warnings: Vec::new(),
        };
        settings.read_user_file(&folders.config.join(FILE), faults)?;
        settings.read_project_file(faults)?;
        if let Some(seconds) = env::text(env::LOCK_TIMEOUT) {
            settings.lock_timeout = values::seconds(&seconds).ok_or_else(|| {
                let words = format!("{}={seconds} is no number of seconds", env::LOCK_TIMEOUT);
                CommandError::new(ErrorKind::Usage, words)
            })?;
        }
        if let Some(agent) = env::text(env::AGENT) {
            settings.agent = Some((agent, Source::Person));
        }
        Ok(settings)
    }

    /// Shows the problems of the files, and what is ignored without trust.
    pub fn tell(&self, ui: &mut Ui) {
        for warning in &self.warnings {
            ui.warn(warning);
        }
        if let Some(untrusted) = self.untrusted.as_ref().filter(|found| !found.denied) {
            let keys = untrusted.claims.iter();
            let keys: Vec<String> = keys.map(|claim| format!("'{}'", claim.key)).collect();
            ui.warn(&format!(
                "{}: ignored without your trust: {}; `tertulia trust` allows it",
                untrusted.file.path.display(),
                keys.join(", ")
            ));
        }
    }

    /// Returns the file that lists known project folders.
    pub fn projects_file(&self) -> PathBuf {
        self.data.join(PROJECTS)
    }

    /// Returns the flags that select the store, with absolute paths.
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

    fn read_user_file(&mut self, file: &Path, faults: Faults) -> CommandResult<()> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return self.fault(wrong(file, "it cannot be read").because(error), faults);
            }
        };
        match parsed(file, &text) {
            Ok(table) => {
                let base = file.parent().unwrap_or(Path::new("."));
                self.take(file, &text, &table, base, faults).map(|_| ())
            }
            Err(error) => self.fault(error, faults),
        }
    }

    /// Returns the file that lists trust decisions.
    pub fn trust_file(&self) -> PathBuf {
        self.data.join(TRUST)
    }

    /// Applies the settings of a file. Returns true if the file selects the store.
    fn take(
        &mut self,
        file: &Path,
        text: &str,
        table: &Table,
        base: &Path,
        faults: Faults,
    ) -> CommandResult<bool> {
        self.warn_unknown(file, "", table, TOP_KEYS);
        let wrong = RefCell::new(Vec::new());
        let reader = Reader::new(file, text, &wrong);
        let mut chooses_store = false;
        if let Some(url) = reader.text(table, "store") {
            match StoreUrl::parse(&url, base) {
                Ok(store) => {
                    self.store = store;
                    chooses_store = true;
                }
                // It says what is wrong with the URL.
                Err(error) if StoreUrl::is_postgres(&url) => {
                    reader.tell("store", &format!("is wrong: {}", error.words()));
                }
                Err(_) => reader.expected("store", store_url::FORMS),
            }
        }
        match table.get("redact") {
            Some(Value::Table(redact)) => {
                self.warn_unknown(file, "redact.", redact, REDACT_KEYS);
                let reader = reader.within("redact");
                self.redact_rules = reader.text(redact, "rules").map(|path| base.join(path));
                self.redact = reader.flag(redact, "enabled").unwrap_or(self.redact);
            }
            _ => self.redact = reader.flag(table, "redact").unwrap_or(self.redact),
        }
        let (wait, longest) = ("lock_timeout", "shell_timeout");
        self.lock_timeout = reader.seconds(table, wait).unwrap_or(self.lock_timeout);
        self.shell_timeout = reader.seconds(table, longest).unwrap_or(self.shell_timeout);
        if let Some(agent) = reader.text(table, "agent") {
            self.agent = Some((agent, Source::UserFile));
        }
        self.author = reader.text(table, "author").or(self.author.take());
        if let Some(sync) = reader.table(table, "sync") {
            self.warn_unknown(file, "sync.", sync, &["with"]);
            let with = reader.within("sync").text(sync, "with");
            self.sync_with = with.map(|with| (with, base.to_owned()));
        }
        // A project can only turn off what the user left on.
        self.project_instructions &= reader.flag(table, "project_instructions").unwrap_or(true);
        self.approve = reader.approval(table, "approve").or(self.approve);
        self.team_summary &= reader.flag(table, "team_summary").unwrap_or(true);
        self.auto_tags = reader.flag(table, "auto_tags").unwrap_or(self.auto_tags);
        if let Some(postgres) = reader.table(table, "postgres") {
            self.warn_unknown(file, "postgres.", postgres, POSTGRES_KEYS);
            let reader = reader.within("postgres");
            self.password_command = agent::command_words(&reader, postgres, "password_command");
        }
        self.read_retention(file, &reader, table);
        if let Some(seal) = reader.table(table, "seal") {
            self.warn_unknown(file, "seal.", seal, seal::KEYS);
            let read = seal::read(&reader.within("seal"), seal, base);
            self.seal.extend(read);
        }
        #[cfg(feature = "tui")]
        self.read_screen(file, &reader, table);
        let own = reader.table(table, "prices");
        let own = own.map(|own| self.read_prices(file, &reader.within("prices"), own));
        // A project's prices come before the user's.
        self.prices.splice(0..0, own.unwrap_or_default());
        for (name, value) in reader.table(table, "agents").into_iter().flatten() {
            let Value::Table(agent) = value else {
                reader.expected(&format!("agents.{name}"), "a table such as [agents.NAME]");
                continue;
            };
            self.warn_unknown(file, &format!("agents.{name}."), agent, agent::KEYS);
            let reader = reader.within("agents").within(name);
            let read = AgentSettings::read(&reader, name, agent);
            self.agents.insert(name.clone(), read);
        }
        let wrong = wrong.into_inner();
        match faults {
            Faults::Refuse if !wrong.is_empty() => {
                Err(CommandError::new(ErrorKind::Usage, wrong.join("\n")))
            }
            _ => {
                let ignored = wrong.iter().map(|fault| format!("{fault}; it is ignored"));
                self.warnings.extend(ignored);
                Ok(chooses_store)
            }
        }
    }

    fn read_retention(&mut self, file: &Path, reader: &Reader<'_>, table: &Table) {
        if let Some(retention) = reader.table(table, "retention") {
            self.warn_unknown(file, "retention.", retention, RETENTION_KEYS);
            self.retention = reader.within("retention").retention(retention);
        }
    }

    #[cfg(feature = "tui")]
    fn read_screen(&mut self, file: &Path, reader: &Reader<'_>, table: &Table) {
        if let Some(notify) = reader.table(table, "notify") {
            self.warn_unknown(file, "notify.", notify, screen::NOTIFY_KEYS);
            self.screen.read_notify(&reader.within("notify"), notify);
        }
        match table.get("theme") {
            Some(Value::Table(theme)) => {
                self.warn_unknown(file, "theme.", theme, &screen::theme_keys());
                self.screen.read_theme(&reader.within("theme"), theme);
            }
            _ => self.screen.read_theme_name(reader, table, "theme"),
        }
        if let Some(keys) = reader.table(table, "keys") {
            self.screen.read_keys(&reader.within("keys"), keys);
        }
        self.screen.vim = reader.flag(table, "vim").unwrap_or(self.screen.vim);
    }

    fn read_prices(&mut self, file: &Path, reader: &Reader<'_>, models: &Table) -> Vec<PriceRow> {
        let mut rows = Vec::new();
        for (model, value) in models {
            let Some(tables) = prices::tables(value) else {
                reader.expected(model, "a table such as [prices.\"MODEL\"]");
                continue;
            };
            let reader = reader.within(model);
            for table in tables {
                self.warn_unknown(file, &format!("prices.{model}."), table, prices::KEYS);
                rows.extend(prices::row(&reader, model, table));
            }
        }
        rows
    }

    /// Handles a file that cannot be used at all.
    fn fault(&mut self, error: CommandError, faults: Faults) -> CommandResult<()> {
        match faults {
            Faults::Refuse => Err(error),
            Faults::Ignore => {
                self.warnings.push(format!("{error}; the file is ignored"));
                Ok(())
            }
        }
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

/// The user's data and configuration folders.
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
        // A relative HOME would mean a different folder in every working directory.
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

fn parsed(file: &Path, text: &str) -> CommandResult<Table> {
    text.parse().map_err(|error: toml::de::Error| {
        let line = error
            .span()
            .map_or(1, |span| values::line_at(text, span.start));
        let message = format!(
            "{}:{line}: it is not TOML: {}",
            file.display(),
            error.message()
        );
        CommandError::new(ErrorKind::Usage, message).hint(error.to_string().trim().to_owned())
    })
}

/// Quotes a word for a shell, if needed.
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
