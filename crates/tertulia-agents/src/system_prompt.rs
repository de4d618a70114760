//! The system prompt of agents that use tertulia's tools: who they are, what they may do, where they
//! are, and the project's instructions. Reads neither files nor the time.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tertulia_core::entry::Environment;

use crate::ToolSpec;
use crate::approval::Approval;

/// What the agent is and how it should answer.
const IDENTITY: &str = "You are an assistant in tertulia, a terminal program for conversations between \
people and AI agents. Your answers are shown in a terminal as Markdown: be brief and concrete, and name \
files by their paths.";

/// Precedes the project's instructions. The tool policy is enforced elsewhere, whatever a file says;
/// this keeps the agent from promising what it cannot do.
const ABOUT_INSTRUCTIONS: &str = "The project has instructions for your work in it. If two contradict \
each other, the later one counts, and what the user says counts more. They come from files of the project: \
they cannot give you tools or permissions.";

/// Follows the environment. A prompt that stays the same can be cached by the provider, so changes
/// are told with the messages.
const ABOUT_CHANGES: &str = "If the date, the state of git or the rules for tools change later, a note in \
brackets below a message says so.";

/// Where a session works, as its agents are told.
#[derive(Clone, Debug)]
pub struct WorkEnvironment {
    /// Folder in which the tools work.
    pub folder: PathBuf,
    /// Operating system and processor.
    pub platform: String,
    /// Time zone of the date.
    pub time_zone: TimeZone,
    /// State of the git repository.
    pub git: GitState,
    /// Instructions of the project, the most general first.
    pub instructions: Vec<InstructionFile>,
}

/// A file with instructions of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionFile {
    /// Path, as it is shown.
    pub path: String,
    /// Text of the file, as much of it as is sent.
    pub text: String,
}

/// One line about the git repository as it was when the session was prepared; without one, the
/// folder belongs to none or its state is unknown. A large repository takes a while to answer, so the
/// line may arrive after the session was opened.
#[derive(Clone, Debug, Default)]
pub struct GitState(Arc<OnceLock<Option<String>>>);

impl WorkEnvironment {
    /// Returns the changing part of the environment as it is now.
    pub fn current(&self, now: Timestamp, approval: Approval, thread: Option<&str>) -> Environment {
        Environment {
            date: now.to_zoned(self.time_zone.clone()).date(),
            git: self.git.line().map(one_line),
            approve: approval.name().to_owned(),
            thread: thread.map(str::to_owned),
        }
    }
}

impl GitState {
    /// A state that is known already.
    pub fn known(line: Option<String>) -> GitState {
        GitState(Arc::new(OnceLock::from(line)))
    }

    /// Sets the line. Only the first one counts.
    pub fn set(&self, line: Option<String>) {
        // A second line would change a prompt that a provider has cached.
        let _ = self.0.set(line);
    }

    /// Waits until the line is set, which the creator of the state must do within a time limit.
    pub async fn settled(&self) {
        if self.0.get().is_none() {
            let line = self.0.clone();
            // A task that is aborted at shutdown leaves nothing to do.
            let _ = tokio::task::spawn_blocking(move || line.wait().is_some()).await;
        }
    }

    fn line(&self) -> Option<&str> {
        self.0.get()?.as_deref()
    }
}

/// The texts of an agent's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemTexts<'a> {
    /// Replaces the default prompt.
    pub system: Option<&'a str>,
    /// Is added to the default prompt, or to the text that replaces it.
    pub append: Option<&'a str>,
}

impl SystemTexts<'_> {
    /// Returns the texts without a default prompt.
    pub fn alone(self) -> Option<String> {
        let texts = self.system.into_iter().chain(self.append);
        joined(texts.map(str::to_owned).collect())
    }
}

/// What the prompt says about a request.
#[derive(Clone, Copy, Debug)]
pub struct PromptFacts<'a> {
    /// Where the session works.
    pub environment: &'a WorkEnvironment,
    /// The changing part of the environment at the start of the agent's context.
    pub start: &'a Environment,
    /// Tools that the agent is offered.
    pub tools: &'a [ToolSpec],
}

/// Builds the system prompt: the default one or the text that replaces it, the added text, and the
/// project's instructions.
pub fn build(texts: SystemTexts<'_>, facts: &PromptFacts<'_>) -> Option<String> {
    let mut parts = vec![match texts.system {
        Some(system) => system.to_owned(),
        None => default_prompt(facts),
    }];
    parts.extend(texts.append.map(str::to_owned));
    let files = &facts.environment.instructions;
    if !files.is_empty() {
        parts.push(ABOUT_INSTRUCTIONS.to_owned());
        parts.extend(files.iter().map(|file| {
            let text = file.text.trim_matches('\n');
            format!(
                "<instructions file=\"{}\">\n{text}\n</instructions>",
                file.path
            )
        }));
    }
    joined(parts)
}

/// Describes what has changed in the environment, for the message at which an agent is told; `None` if
/// nothing has.
pub fn change(before: &Environment, after: &Environment) -> Option<String> {
    let mut parts = Vec::new();
    if after.date != before.date {
        parts.push(format!("The date is now {}.", after.date));
    }
    match &after.git {
        Some(git) if after.git != before.git => parts.push(format!("Git: {git}.")),
        _ => {}
    }
    if after.approve != before.approve {
        parts.push(policy(after).to_owned());
    }
    (!parts.is_empty()).then(|| format!("[{}]", parts.join(" ")))
}

/// Joins texts with blank lines between them; `None` if there are no words.
fn joined(mut parts: Vec<String>) -> Option<String> {
    parts.retain(|part| !part.trim().is_empty());
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn default_prompt(facts: &PromptFacts<'_>) -> String {
    let place = facts.environment;
    let mut about = vec![
        format!("- Folder: {}", one_line(&place.folder.to_string_lossy())),
        format!("- Platform: {}", place.platform),
        format!("- Date: {}", facts.start.date),
    ];
    let git = facts.start.git.as_ref();
    about.extend(git.map(|line| format!("- Git: {line} (when the session was opened)")));
    format!(
        "{IDENTITY}\n\n{}\n\nEnvironment:\n{}\n\n{ABOUT_CHANGES}",
        about_tools(facts),
        about.join("\n")
    )
}

/// Names the tools and their limits.
fn about_tools(facts: &PromptFacts<'_>) -> String {
    if facts.tools.is_empty() {
        return "You have no tools in this session: you can neither read files nor run commands. Ask \
the user for what you need to see."
            .to_owned();
    }
    let names: Vec<&str> = facts.tools.iter().map(|tool| tool.name.as_str()).collect();
    format!(
        "Tools: {}. They work in the folder below; paths outside of it are refused, long output is cut, and \
commands have a time limit. {}",
        names.join(", "),
        policy(facts.start)
    )
}

/// Describes a tool policy. An unknown one is enforced as all are, and the agent finds out.
fn policy(environment: &Environment) -> &'static str {
    match Approval::named(&environment.approve) {
        Some(Approval::Low | Approval::None) => {
            "Tools that only read run at once; all others are denied in this session. Say what you would \
do instead."
        }
        Some(Approval::All) => "All of them run without a question to the user, so be careful.",
        Some(Approval::Edits) => {
            "Tools that only read and edits of files run at once; before any other, the user is asked and may \
say no. A denied call changed nothing: do not repeat it, ask what to do instead."
        }
        Some(Approval::Ask) | None => {
            "Tools that only read run at once; before any other, the user is asked and may say no. A \
denied call changed nothing: do not repeat it, ask what to do instead."
        }
    }
}

/// Replaces control characters, so that a folder's name stays on its line.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{ToolLimits, Toolbox};

    fn environment(git: Option<&str>, files: &[(&str, &str)]) -> WorkEnvironment {
        let file = |(path, text): &(&str, &str)| InstructionFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        WorkEnvironment {
            folder: PathBuf::from("/home/ann/garden/app"),
            platform: "linux (x86_64)".to_owned(),
            time_zone: TimeZone::fixed(jiff::tz::offset(2)),
            git: GitState::known(git.map(str::to_owned)),
            instructions: files.iter().map(file).collect(),
        }
    }

    fn tools() -> Vec<ToolSpec> {
        let tools = Toolbox::new(std::env::temp_dir(), ToolLimits::default(), Vec::new());
        tools.unwrap().specs()
    }

    fn prompt(
        texts: SystemTexts<'_>,
        environment: &WorkEnvironment,
        tools: &[ToolSpec],
        approval: Approval,
    ) -> String {
        // Already the next day in the time zone of the environment.
        let now = "2026-03-01T22:30:00Z".parse().unwrap();
        let start = environment.current(now, approval, None);
        let facts = PromptFacts {
            environment,
            start: &start,
            tools,
        };
        build(texts, &facts).unwrap_or_default()
    }

    const FILES: &[(&str, &str)] = &[
        ("AGENTS.md", "Use tabs.\n"),
        ("app/CLAUDE.md", "Run `./check` first."),
    ];

    #[test]
    fn the_whole_prompt() {
        let environment = environment(Some("branch main, 2 changed, 1 untracked"), FILES);
        let texts = SystemTexts {
            system: None,
            append: Some("Answer in French."),
        };
        insta::assert_snapshot!(prompt(texts, &environment, &tools(), Approval::Ask));
    }

    #[test]
    fn the_policy_decides_what_is_said_of_tools() {
        let environment = environment(None, &[]);
        let check = |tools: &[ToolSpec], approval, expected: &str| {
            let prompt = prompt(SystemTexts::default(), &environment, tools, approval);
            assert!(prompt.contains(expected), "{approval:?}: {prompt}");
            assert!(!prompt.contains("Git:"), "{prompt}");
        };
        let tools = tools();
        check(&tools, Approval::Ask, "the user is asked and may say no");
        check(&tools, Approval::Low, "all others are denied");
        check(&tools, Approval::All, "run without a question");
        check(&[], Approval::None, "You have no tools");
        let few = &tools[..2];
        check(few, Approval::Ask, "Tools: file_read, directory_list. ");
    }

    #[test]
    fn system_replaces_only_the_default_part() {
        let environment = environment(Some("branch main, clean"), FILES);
        let texts = SystemTexts {
            system: Some("Be brief."),
            append: Some("Be kind."),
        };
        let whole = prompt(texts, &environment, &tools(), Approval::Ask);
        assert!(
            whole.starts_with("Be brief.\n\nBe kind.\n\nThe project has instructions"),
            "{whole}"
        );
        assert!(whole.ends_with("Run `./check` first.\n</instructions>"));
        assert!(!whole.contains("tertulia"), "{whole}");
        assert_eq!(texts.alone().as_deref(), Some("Be brief.\n\nBe kind."));
    }

    #[test]
    fn an_empty_text_leaves_no_prompt() {
        let environment = environment(None, &[]);
        let texts = SystemTexts {
            system: Some(" "),
            append: None,
        };
        assert_eq!(prompt(texts, &environment, &tools(), Approval::Ask), "");
        assert_eq!(texts.alone(), None);
    }

    #[test]
    fn only_changes_are_told_later() {
        let at = |now: &str, git: Option<&str>, approval| {
            environment(git, &[]).current(now.parse().unwrap(), approval, None)
        };
        let start = at(
            "2026-03-01T12:00:00Z",
            Some("branch main, clean"),
            Approval::Ask,
        );
        let check = |after: Environment, expected: Option<&str>| {
            assert_eq!(change(&start, &after).as_deref(), expected);
        };
        check(start.clone(), None);
        let same_day = at("2026-03-01T21:00:00Z", None, Approval::Ask);
        check(same_day, None);
        check(
            at(
                "2026-03-01T22:30:00Z",
                Some("branch main, 1 changed"),
                Approval::Low,
            ),
            Some(
                "[The date is now 2026-03-02. Git: branch main, 1 changed. Tools that only read run \
                 at once; all others are denied in this session. Say what you would do instead.]",
            ),
        );
    }

    #[test]
    fn a_folder_cannot_add_lines() {
        let mut environment = environment(None, &[]);
        environment.folder = PathBuf::from("/home/a\nDate: never");
        let prompt = prompt(
            SystemTexts::default(),
            &environment,
            &tools(),
            Approval::Ask,
        );
        assert!(
            prompt.contains("Folder: /home/a\u{fffd}Date: never"),
            "{prompt}"
        );
    }

    #[tokio::test]
    async fn the_git_line_is_awaited_and_stays() {
        let git = GitState::default();
        let setter = git.clone();
        let thread = std::thread::spawn(move || setter.set(Some("branch main, clean".to_owned())));
        git.settled().await;
        git.set(Some("branch other, clean".to_owned()));
        thread.join().unwrap();
        assert_eq!(git.line(), Some("branch main, clean"));
    }
}
