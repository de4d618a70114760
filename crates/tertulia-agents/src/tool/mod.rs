//! Tools for agents that have none of their own: descriptions, risks, previews, and execution
//! confined to one folder.

mod arguments;
mod attach;
mod background;
mod change;
mod confine;
mod cut;
mod edit;
mod folder;
mod git;
mod lines;
mod read;
mod replace;
mod search;
mod shell;
pub(crate) mod tail;
mod user_command;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::ToolSpec;
use crate::approval::{Risk, ToolRequest};
use arguments::Arguments;
pub use attach::ATTACHMENT_LIMIT;
use background::{Jobs, Poll};
use change::{FileDelete, FileEdit, FileWrite};
use git::GitUse;
use read::{DirectoryList, FileRead};
use search::{Glob, Grep};
use shell::{Run, Shell};
use tertulia_core::entry::ToolCall;
pub use user_command::CommandOutput;
use walk::Watch;

/// The tools of one session.
#[derive(Clone, Debug)]
pub struct Toolbox {
    /// Folder in which the tools work and which they cannot leave, links resolved.
    work_dir: PathBuf,
    limits: ToolLimits,
    /// Variables that a command does not inherit: the keys of the agents.
    hidden: Vec<String>,
    /// Owner of the tools.
    owner: Owner,
    /// Commands in the background.
    jobs: Arc<Jobs>,
}

/// Owner of the tools: in a pair the roles have different permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// A participant that may use all tools.
    #[default]
    Anybody,
    /// An instructor: reads, and is the only one to use git.
    Instructor,
    /// A worker: may not run git commands that write.
    Worker,
}

/// Time and output limits of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLimits {
    /// Maximum time that a command runs, unless the agent requests another.
    pub time: Duration,
    /// Maximum time that the agent may request.
    pub longest: Duration,
    /// Maximum number of bytes of output for the agent and the log.
    pub output: usize,
}

impl Default for ToolLimits {
    fn default() -> ToolLimits {
        ToolLimits {
            time: Duration::from_secs(120),
            longest: Duration::from_secs(60 * 60),
            output: 64 * 1024,
        }
    }
}

/// Result of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// Text for the agent, cut at the limit with a mark that says how much is missing.
    pub text: String,
    /// Whether the tool succeeded.
    pub ok: bool,
}

/// Why a toolbox cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("{} is not a folder to work in", .path.display())]
pub struct WorkDirError {
    /// The folder.
    pub path: PathBuf,
    /// Error of the system.
    pub source: std::io::Error,
}

impl Toolbox {
    /// Creates tools that work in `work_dir` and hide these variables from the commands that they
    /// run.
    pub fn new(
        work_dir: PathBuf,
        limits: ToolLimits,
        hidden: Vec<String>,
    ) -> Result<Toolbox, WorkDirError> {
        match work_dir.canonicalize() {
            Ok(work_dir) => Ok(Toolbox {
                work_dir,
                limits,
                hidden,
                owner: Owner::Anybody,
                jobs: Arc::default(),
            }),
            Err(source) => Err(WorkDirError {
                path: work_dir,
                source,
            }),
        }
    }

    /// Returns the same tools for another owner.
    #[must_use]
    pub fn owned_by(mut self, owner: Owner) -> Toolbox {
        self.owner = owner;
        self
    }

    /// Returns the descriptions of the tools for an agent.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let mut specs = Vec::new();
        specs.extend(read::specs());
        specs.extend(search::specs());
        if self.owner != Owner::Instructor {
            specs.extend(change::specs());
        }
        let mut shell = shell::spec(&self.limits);
        shell.description.push_str(match self.owner {
            Owner::Anybody => "",
            Owner::Instructor => " You may run git commands with it, and nothing else.",
            Owner::Worker => " Git commands that change anything are not yours to run.",
        });
        specs.push(shell);
        specs.push(background::spec());
        specs
    }

    /// Ends the commands in the background, and returns those that still ran.
    pub async fn end_background(&self) -> Vec<String> {
        self.jobs.end().await
    }

    /// Parses a call, and returns its risk for this owner.
    fn task(&self, call: &ToolCall) -> Result<(Task, Risk), String> {
        let task = Task::parse(call, self)?;
        let risk = task.risk();
        let risk = match (self.owner, &task) {
            (Owner::Anybody, _) => risk,
            (owner, Task::Shell(shell)) => match (git::used_by(shell.command()), owner) {
                (GitUse::Looks, _) => Risk::Low,
                (GitUse::Writes | GitUse::Among, Owner::Worker) => {
                    return Err("[not run: git commands that change anything are the instructor's; say what you would do]".to_owned());
                }
                (GitUse::Among | GitUse::Nothing, Owner::Instructor) => {
                    return Err("[not run: you may run git commands and nothing else; have the worker run it]".to_owned());
                }
                _ => risk,
            },
            (Owner::Instructor, _) if risk != Risk::Low => {
                return Err(
                    "[not run: you change no files yourself; have the worker do it]".to_owned(),
                );
            }
            _ => risk,
        };
        Ok((task, risk))
    }

    /// Returns the folder that the tools work in.
    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// Returns the permission request for a call: its risk and a preview. A call that cannot be run
    /// (unknown tool, wrong arguments, a path outside the folder) is an output for the agent. Reads
    /// the file that would be changed, at most some megabytes of it.
    pub fn request(&self, call: &ToolCall) -> Result<ToolRequest, ToolOutput> {
        let described = self
            .task(call)
            .and_then(|(task, risk)| Ok((risk, task.preview()?, task.key(&call.name))));
        match described {
            Ok((risk, preview, key)) => Ok(ToolRequest {
                call: call.clone(),
                risk,
                preview,
                folder: self.work_dir.display().to_string(),
                key,
                // Everything else of that risk asks.
                is_edit: risk == Risk::Medium
                    && ["file_write", "file_edit"].contains(&call.name.as_str()),
            }),
            Err(why) => Err(self.output(Err(why))),
        }
    }

    /// Runs a call. `marker` identifies the processes of this call. Returns when none of them is
    /// running any more, also after cancellation.
    pub async fn run(
        &self,
        call: &ToolCall,
        marker: &str,
        cancel: &CancellationToken,
    ) -> ToolOutput {
        let (tail, _) = watch::channel(String::new());
        self.run_watched(call, marker, cancel, tail).await
    }

    /// Runs a call like [`Toolbox::run`]. `tail` always has the last lines of its output so far.
    pub async fn run_watched(
        &self,
        call: &ToolCall,
        marker: &str,
        cancel: &CancellationToken,
        tail: watch::Sender<String>,
    ) -> ToolOutput {
        if cancel.is_cancelled() {
            return self.output(Err("stopped".to_owned()));
        }
        let watch = Watch::start(cancel, self.limits.time);
        let (call, tools, output) = (call.clone(), self.clone(), self.limits.output);
        // File access blocks, so it runs on the blocking pool.
        let done = tokio::task::spawn_blocking(move || tools.task(&call)?.0.run(&watch, output));
        match done.await {
            Ok(Ok(Ran::Said(text))) => self.output(Ok(text)),
            Ok(Ok(Ran::Command(shell))) => {
                let (dir, limits) = (&self.work_dir, &self.limits);
                let looks =
                    self.owner != Owner::Anybody && git::used_by(shell.command()) == GitUse::Looks;
                let shell = if looks { shell.looking() } else { shell };
                if shell.is_in_background() {
                    return self.start(shell, marker, cancel);
                }
                let run = Run {
                    work_dir: dir,
                    limits,
                    hidden: &self.hidden,
                    marker,
                    cancel,
                };
                shell.run(run, &tail).await
            }
            Ok(Ok(Ran::Poll(poll))) => match self.jobs.poll(&poll, cancel).await {
                Ok(output) => output,
                Err(why) => self.output(Err(why)),
            },
            Ok(Err(why)) => self.output(Err(why)),
            Err(error) => self.output(Err(format!("the tool failed: {error}"))),
        }
    }

    /// Starts a command in the background. It is cancelled with the turn.
    fn start(&self, shell: Shell, marker: &str, cancel: &CancellationToken) -> ToolOutput {
        let (tools, marker) = (self.clone(), marker.to_owned());
        let (command, cancel) = (shell.command().to_owned(), cancel.child_token());
        let stop = cancel.clone();
        let run = |tail: watch::Sender<String>| async move {
            let run = Run {
                work_dir: &tools.work_dir,
                limits: &tools.limits,
                hidden: &tools.hidden,
                marker: &marker,
                cancel: &stop,
            };
            shell.run(run, &tail).await
        };
        self.jobs.start(&command, cancel, run)
    }

    fn output(&self, done: Result<String, String>) -> ToolOutput {
        let ok = done.is_ok();
        let (Ok(text) | Err(text)) = done;
        ToolOutput {
            text: cut::within(text, self.limits.output),
            ok,
        }
    }
}

/// Result of a task on the blocking pool.
enum Ran {
    /// The task is done.
    Said(String),
    /// The task is a command, which runs asynchronously.
    Command(Shell),
    /// The task waits for a command in the background.
    Poll(Poll),
}

/// A call with valid arguments and a path inside the folder.
#[derive(Debug)]
enum Task {
    FileRead(FileRead),
    DirectoryList(DirectoryList),
    Glob(Glob),
    Grep(Grep),
    FileWrite(FileWrite),
    FileEdit(FileEdit),
    FileDelete(FileDelete),
    Shell(Shell),
    Poll(Poll),
}

impl Task {
    fn parse(call: &ToolCall, tools: &Toolbox) -> Result<Task, String> {
        let root = tools.work_dir.as_path();
        let given = Arguments::of(&call.arguments)?;
        Ok(match call.name.as_str() {
            "file_read" => Task::FileRead(FileRead::parse(&given, root)?),
            "directory_list" => Task::DirectoryList(DirectoryList::parse(&given, root)?),
            "glob" => Task::Glob(Glob::parse(&given, root)?),
            "grep" => Task::Grep(Grep::parse(&given, root)?),
            "file_write" => Task::FileWrite(FileWrite::parse(&given, root)?),
            "file_edit" => Task::FileEdit(FileEdit::parse(&given, root)?),
            "file_delete" => Task::FileDelete(FileDelete::parse(&given, root)?),
            "shell" => Task::Shell(Shell::parse(&given)?),
            "shell_poll" => Task::Poll(Poll::parse(&given)?),
            name => {
                let names = tools.specs().into_iter().map(|spec| spec.name);
                let names = names.collect::<Vec<_>>().join(", ");
                return Err(format!("there is no tool '{name}'; the tools are: {names}"));
            }
        })
    }

    fn risk(&self) -> Risk {
        match self {
            Task::FileRead(_) | Task::DirectoryList(_) | Task::Glob(_) | Task::Grep(_) => Risk::Low,
            // The command itself was permitted.
            Task::Poll(_) => Risk::Low,
            Task::FileWrite(_) | Task::FileEdit(_) if self.obeyed().is_some() => Risk::High,
            Task::FileWrite(_) | Task::FileEdit(_) => Risk::Medium,
            Task::FileDelete(_) | Task::Shell(_) => Risk::High,
        }
    }

    /// Returns the path of a file that programs act on, if the call would change one.
    fn obeyed(&self) -> Option<&Path> {
        let place = match self {
            Task::FileWrite(task) => task.place(),
            Task::FileEdit(task) => task.place(),
            _ => return None,
        };
        place.obeyed.then(|| place.inside())
    }

    /// Returns the key for "always": any visible change, but only this deletion or command.
    fn key(&self, name: &str) -> String {
        if let Some(path) = self.obeyed() {
            return format!("{name} {}", path.display());
        }
        match self {
            Task::FileDelete(task) => task.key(),
            Task::Shell(task) => task.key(),
            _ => name.to_owned(),
        }
    }

    fn preview(&self) -> Result<String, String> {
        match self {
            Task::FileRead(task) => Ok(task.preview()),
            Task::DirectoryList(task) => Ok(task.preview()),
            Task::Glob(task) => Ok(task.preview()),
            Task::Grep(task) => Ok(task.preview()),
            Task::FileWrite(task) => task.preview(),
            Task::FileEdit(task) => task.preview(),
            Task::FileDelete(task) => task.preview(),
            Task::Shell(task) => Ok(task.preview()),
            Task::Poll(task) => Ok(task.preview()),
        }
    }

    fn run(self, watch: &Watch, output: usize) -> Result<Ran, String> {
        let said = match self {
            Task::FileRead(task) => task.run(watch, output),
            Task::DirectoryList(task) => task.run(watch),
            Task::Glob(task) => task.run(watch),
            Task::Grep(task) => task.run(watch, output),
            Task::FileWrite(task) => task.run(),
            Task::FileEdit(task) => task.run(),
            Task::FileDelete(task) => task.run(),
            Task::Shell(task) => return Ok(Ran::Command(task)),
            Task::Poll(task) => return Ok(Ran::Poll(task)),
        };
        said.map(Ran::Said)
    }
}
