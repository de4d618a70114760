//! Finds and reads team files.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;
use tertulia_core::session::SessionMeta;
use tertulia_core::team::{TeamFile, migrate};

use crate::agents;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::{Settings, quoted};

/// Folders of team files, in the current folder or one above it.
const FOLDERS: &[&str] = &[".tertulia/teams", ".agent-chatter/team-config"];
/// Folder for new team files.
pub const HOME: &str = FOLDERS[0];

/// File in the data folder that lists the team files the user has named.
const NAMED: &str = "teams-named";
/// Maximum size of a team file in bytes.
const LARGEST: u64 = 10_000_000;

/// Reads a team by path, or by its name in one of the folders.
pub fn read(cwd: &Path, name: &str) -> CommandResult<(PathBuf, TeamFile)> {
    let (file, text) = read_text(cwd, name)?;
    let shown = file.display().to_string();
    let team = TeamFile::read(&text, &shown).map_err(|error| {
        let error = CommandError::from(error);
        // An older published format is not the user's mistake.
        match migrate(&text, &shown) {
            Ok(_) => error.hint(format!("tertulia team migrate {}", quoted(&shown))),
            Err(_) => error,
        }
    })?;
    Ok((file, team))
}

/// Returns the path and the text of a team file.
pub fn read_text(cwd: &Path, name: &str) -> CommandResult<(PathBuf, String)> {
    let file = find(cwd, name)?;
    let text = text(&file)?;
    Ok((file, text))
}

fn text(file: &Path) -> CommandResult<String> {
    let shown = file.display();
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|open| open.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| {
            CommandError::new(ErrorKind::Failed, format!("{shown} cannot be read")).because(error)
        })?;
    let invalid = |words: String| CommandError::new(ErrorKind::Invalid, words);
    if bytes.len() as u64 > LARGEST {
        return Err(invalid(format!(
            "{shown} is larger than {} MB, which no team file is",
            LARGEST / 1_000_000
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        invalid(format!("{shown} is not UTF-8 at position {place}"))
    })
}

/// Returns the team of a session: from the file that its log records, else from a file of that name
/// near the folder where it began or near the current one. A log may be imported from another
/// author, so beyond files that can be named here anyway, it leads only to files that the user has
/// named before.
pub fn of_session(settings: &Settings, meta: &SessionMeta) -> CommandResult<(PathBuf, TeamFile)> {
    let cwd = &settings.cwd;
    let named = Named::of(settings);
    let recorded = meta.team_file.as_deref().map(Path::new);
    let recorded = recorded.filter(|file| file.is_file());
    if let Some(file) = recorded.filter(|file| named.has(file)) {
        return read(cwd, &file.display().to_string());
    }
    let team = meta.team.as_deref().unwrap_or_default();
    let began = meta.cwd.as_deref().map(Path::new);
    let there = began.map(|began| all(began).unwrap_or_default());
    let there = there.into_iter().flatten().filter(|file| named.has(file));
    for file in there.chain(all(cwd).unwrap_or_default()) {
        if let Ok((file, read)) = read(cwd, &file.display().to_string())
            && read.id() == team
        {
            return Ok((file, read));
        }
    }
    let session = meta.id.short();
    let (kind, words) = match (recorded, &meta.team_file) {
        (Some(_), Some(file)) => (
            ErrorKind::Usage,
            format!(
                "the session says that its team is in {file}, a file that you have not named before: what it would run is yours to decide"
            ),
        ),
        (_, Some(file)) => (
            ErrorKind::NotFound,
            format!("the file of the team '{team}' is not found; it was {file}"),
        ),
        (_, None) => (
            ErrorKind::NotFound,
            format!("the file of the team '{team}' is not found"),
        ),
    };
    Err(CommandError::new(kind, words)
        .hint(format!("name it: tertulia team CONFIG --resume {session}"))
        .hint(format!(
            "`tertulia show {session}` shows the session without it"
        )))
}

/// Team files that the user has named on the command line, which sessions may therefore refer to.
/// One JSON string with a path per line.
#[derive(Debug)]
pub struct Named {
    list: PathBuf,
}

impl Named {
    pub fn of(settings: &Settings) -> Named {
        Named {
            list: settings.data.join(NAMED),
        }
    }

    /// Adds a file.
    pub fn add(&self, file: &Path) -> CommandResult<()> {
        if self.has(file) {
            return Ok(());
        }
        let line = format!("{}\n", json!(resolved(file)));
        let kept = || -> io::Result<()> {
            if let Some(folder) = self.list.parent() {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(folder)?;
            }
            let mut options = File::options();
            // One write in append mode, so that two programs do not overwrite each other's lines.
            let mut list = options
                .create(true)
                .append(true)
                .mode(0o600)
                .open(&self.list)?;
            list.write_all(line.as_bytes())
        };
        kept().map_err(|error| {
            let words = format!("{} cannot be written", self.list.display());
            CommandError::new(ErrorKind::Failed, words).because(error)
        })
    }

    fn has(&self, file: &Path) -> bool {
        let line = json!(resolved(file)).to_string();
        let list = fs::read_to_string(&self.list).unwrap_or_default();
        list.lines().any(|known| known == line)
    }
}

/// Returns the canonical path of a file.
fn resolved(file: &Path) -> String {
    let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    path.to_string_lossy().into_owned()
}

/// Returns the names of the teams that can be named here, for display.
pub fn names(cwd: &Path) -> CommandResult<Vec<String>> {
    let stem = |file: &PathBuf| Some(agents::shown(&file.file_stem()?.to_string_lossy()));
    Ok(all(cwd)?.iter().filter_map(stem).collect())
}

fn find(cwd: &Path, name: &str) -> CommandResult<PathBuf> {
    let named = cwd.join(name);
    if named.is_file() {
        return Ok(named);
    }
    let is_bare = Path::new(name).components().count() == 1;
    let wanted = |file: &PathBuf| {
        file.file_name().is_some_and(|file| file == name)
            || file.file_stem().is_some_and(|stem| stem == name)
    };
    let all = all(cwd)?;
    if let Some(file) = all.iter().filter(|_| is_bare).find(|file| wanted(file)) {
        return Ok(file.clone());
    }
    let known = names(cwd)?;
    let mut error = CommandError::new(ErrorKind::NotFound, format!("there is no team '{name}'"))
        .hint(format!(
            "a team is a file, or a name in {}",
            FOLDERS.join(" or ")
        ));
    if let Some(others) = passed_over(cwd) {
        error = error.hint(others);
    }
    Err(if known.is_empty() {
        error.hint("`tertulia team init` writes an example")
    } else {
        error.hint(format!("known: {}", known.join(", ")))
    })
}

/// Returns all team files that can be named here, by name.
pub fn all(cwd: &Path) -> CommandResult<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in Folders::of(cwd, user()).own {
        let unreadable = |error| {
            CommandError::new(
                ErrorKind::Failed,
                format!("{} cannot be read", folder.display()),
            )
            .because(error)
        };
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|end| end == "json") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Describes the folders of other users that were skipped in the search for teams.
pub fn passed_over(cwd: &Path) -> Option<String> {
    let others = Folders::of(cwd, user()).others;
    let others: Vec<String> = others
        .iter()
        .map(|folder| agents::shown(&folder.to_string_lossy()))
        .collect();
    (!others.is_empty()).then(|| {
        format!(
            "{} belongs to another user: teams there are not found by name, only by path",
            others.join(", ")
        )
    })
}

/// Returns the id of the user who runs this program.
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The nearest folders of team files, at or above a folder.
#[derive(Debug, Default, PartialEq, Eq)]
struct Folders {
    own: Vec<PathBuf>,
    /// Folders of other users: in a folder that everyone can write to, such as `/tmp`, anyone could
    /// place a team for users who work below it.
    others: Vec<PathBuf>,
}

impl Folders {
    fn of(cwd: &Path, user: u32) -> Folders {
        let mut folders = Folders::default();
        for name in FOLDERS {
            let above = cwd.ancestors().map(|above| (above, above.join(name)));
            for (above, folder) in above.filter(|(_, folder)| folder.is_dir()) {
                if belongs_to(user, above, &folder) {
                    folders.own.push(folder);
                    break;
                }
                folders.others.push(folder);
            }
        }
        folders
    }
}

/// Returns true if the user owns every step from `above` down to `folder`, links and their targets.
fn belongs_to(user: u32, above: &Path, folder: &Path) -> bool {
    let owns = |meta: io::Result<Metadata>| meta.is_ok_and(|meta| meta.uid() == user);
    let mut steps = folder.ancestors().take_while(|step| *step != above);
    steps.all(|step| owns(fs::symlink_metadata(step)) && owns(fs::metadata(step)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_others_is_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let below = place.path().join("a/b");
        let (near, far) = (place.path().join("a").join(HOME), place.path().join(HOME));
        for folder in [&below, &near, &far] {
            fs::create_dir_all(folder).unwrap();
        }
        let mine = user();
        let folders = Folders::of(&below, mine);
        assert_eq!((folders.own, folders.others), (vec![near.clone()], vec![]));
        let folders = Folders::of(&below, mine + 1);
        assert_eq!((folders.own, folders.others), (vec![], vec![near, far]));
    }
}
