//! Finds the folder that a session works in: its own, in every frontend and from every folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tertulia_core::entry::{Kind, Terms};
use tertulia_core::query::Row;
use tertulia_engine::setup::{FolderQuestion, WorkFolder};
use tertulia_engine::spec::{ParticipantSpec, SessionSpec};

use super::{OpenOptions, existing_folder};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::project::Folders;
use crate::ui::Ui;

/// Where a session works.
pub struct Place {
    /// The workspace in that folder, with its settings.
    pub workspace: Workspace,
    pub folder: WorkFolder,
    /// Whether agents may work there only in a frontend that can ask the user, and why not else.
    pub refusal: Option<CommandError>,
}

/// What is known of the recorded folder of a session.
enum Recorded {
    /// It is the folder of the program, or none is recorded.
    Here,
    /// The user has worked in it on this machine.
    Known(PathBuf),
    /// It is there, but was recorded elsewhere.
    Foreign(PathBuf),
    /// The project was moved, and the folder with it.
    Moved(PathBuf),
    /// It does not exist.
    Gone(PathBuf),
}

/// Finds the folder of a session. A new one works in the folder of `spec`, or here.
pub fn find(
    spec: &SessionSpec,
    row: Option<&Row>,
    options: &OpenOptions,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<Place> {
    let here = &workspace.settings.cwd;
    let named = match &spec.participants {
        ParticipantSpec::Pair(pair) => pair.work_dir.as_deref(),
        _ => None,
    };
    if let Some(named) = named {
        let folder = existing_folder(&here.join(named), false)?;
        return known(&folder, workspace, ui);
    }
    let Some(row) = row else {
        let folder = spec.cwd.as_deref().unwrap_or(here);
        return known(folder, workspace, ui);
    };
    if options.here {
        return Ok(moved(row, workspace));
    }
    match recorded(row, workspace) {
        Recorded::Here => known(here, workspace, ui),
        Recorded::Known(folder) => {
            ui.note(&format!(
                "Working in {}, the folder of this session; --here moves it to this one.",
                folder.display()
            ));
            known(&folder, workspace, ui)
        }
        Recorded::Moved(folder) => {
            let there = known(&folder, workspace, ui)?;
            ui.note(&format!(
                "Working in {}: its project was moved.",
                folder.display()
            ));
            Ok(moved(row, &there.workspace))
        }
        Recorded::Foreign(folder) => {
            let text = format!(
                "The session was written on another machine or by another program, in\n  {}\nYou have not worked in this folder with tertulia yet. Work in it from now on?",
                folder.display()
            );
            let mut place = known(&folder, workspace, ui)?;
            place.folder.question = Some(question(text, row, place.workspace.clone()));
            place.refusal = Some(refusal(
                format!(
                    "session {} was recorded in {}, where you have not worked with tertulia yet",
                    row.meta.id.short(),
                    folder.display()
                ),
                row.meta.kind,
            ));
            Ok(place)
        }
        Recorded::Gone(folder) => {
            let words = format!("the folder of this session is gone: {}", folder.display());
            ui.warn(&words);
            let text = format!(
                "{words}\nMove the session to this folder, {}?",
                here.display()
            );
            let mut place = moved(row, workspace);
            place.folder.question = Some(question(text, row, workspace.clone()));
            place.refusal = Some(refusal(
                format!(
                    "the folder of session {} is gone: {}",
                    row.meta.id.short(),
                    folder.display()
                ),
                row.meta.kind,
            ));
            Ok(place)
        }
    }
}

fn recorded(row: &Row, workspace: &Workspace) -> Recorded {
    let meta = &row.meta;
    let pair = meta.pair.as_deref().map(|pair| pair.work_dir.as_str());
    let recorded = pair.filter(|folder| !folder.is_empty());
    let Some(recorded) = recorded.or(meta.cwd.as_deref()).map(Path::new) else {
        return Recorded::Here;
    };
    let settings = &workspace.settings;
    // A name that is not text is recorded only nearly.
    if recorded.as_os_str() == settings.cwd.to_string_lossy().as_ref() {
        return Recorded::Here;
    }
    // Resolved: a path with `..` or a link in it leads elsewhere than it says.
    let Some(folder) = recorded.canonicalize().ok().filter(|path| path.is_dir()) else {
        return match settings.project.moved(recorded) {
            Some(folder) => Recorded::Moved(folder),
            None => Recorded::Gone(recorded.to_owned()),
        };
    };
    let here = settings.cwd.canonicalize();
    match here.is_ok_and(|here| here == folder) {
        true => Recorded::Here,
        false if is_known(&folder, workspace) => Recorded::Known(folder),
        false => Recorded::Foreign(folder),
    }
}

/// Returns true if the user has worked in a folder on this machine.
pub fn is_known(folder: &Path, workspace: &Workspace) -> bool {
    // Read again: a server runs for long.
    let now = Folders::read(&workspace.settings.projects_file());
    now.as_ref()
        .unwrap_or(&workspace.settings.folders)
        .knows(folder)
}

/// Returns the folder of the session that is left, for a new session: if the user stands in it or has
/// worked in it. One that was never confirmed is no folder to begin in.
pub fn known_folder(folder: &Path, from: &Workspace) -> Option<PathBuf> {
    let may_begin = folder == from.settings.cwd || is_known(folder, from);
    may_begin.then(|| folder.to_owned())
}

/// Returns a place in which the user works already.
fn known(folder: &Path, workspace: &Workspace, ui: &mut Ui) -> CommandResult<Place> {
    let from = workspace.settings.cwd.clone();
    let workspace = match folder == from {
        true => workspace.clone(),
        false => {
            let there = workspace.in_folder(folder)?;
            there.settings.tell(ui);
            there
        }
    };
    Ok(Place {
        folder: WorkFolder {
            path: folder.to_owned(),
            is_elsewhere: folder != from,
            ..WorkFolder::default()
        },
        workspace,
        refusal: None,
    })
}

/// Returns the place of a session that moves to the folder of a workspace.
fn moved(row: &Row, workspace: &Workspace) -> Place {
    let settings = &workspace.settings;
    let path = settings.cwd.display().to_string();
    let is_there = row.meta.cwd.as_deref() == Some(&*path) && row.meta.pair.is_none();
    let terms = Terms {
        cwd: Some(path),
        project: Some(settings.project.id.clone()),
        project_ids: settings.project.identities(),
        ..Terms::default()
    };
    Place {
        folder: WorkFolder {
            path: settings.cwd.clone(),
            is_elsewhere: false,
            moved: (!is_there).then_some(terms),
            question: None,
        },
        workspace: workspace.clone(),
        refusal: None,
    }
}

/// Asks about a folder, which is a known one as soon as the user agrees. The folder of a sealed session
/// is written down nowhere.
fn question(text: String, row: &Row, workspace: Workspace) -> FolderQuestion {
    let is_sealed = row.meta.seal.is_some();
    FolderQuestion {
        text,
        agreed: Arc::new(move || {
            if !is_sealed {
                workspace.remember_project();
            }
        }),
    }
}

fn refusal(words: String, kind: Kind) -> CommandError {
    let error = CommandError::new(ErrorKind::Usage, words)
        .hint("--here moves the session to the current folder");
    match kind {
        Kind::Pair => error.hint("--work-dir DIR moves it to another one"),
        Kind::Chat | Kind::Team => error,
    }
}
