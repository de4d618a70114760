//! Where team files are, and reading them.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use tertulia::session::Summary;
use tertulia::team::TeamFile;

use crate::agents;
use crate::error::{CommandError, CommandResult, ErrorKind};

/// The folders of team files, below this folder or one above it.
const FOLDERS: &[&str] = &[".tertulia/teams", ".agent-chatter/team-config"];
/// The folder that new ones go to.
pub const HOME: &str = FOLDERS[0];

/// A team file has at most so many bytes.
const LARGEST: u64 = 10_000_000;

/// Reads the team that a person named: a path, or a name in one of the folders.
pub fn read(cwd: &Path, name: &str) -> CommandResult<(PathBuf, TeamFile)> {
    let file = find(cwd, name)?;
    let team = TeamFile::read(&text(&file)?, &file.display().to_string())?;
    Ok((file, team))
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

/// The team of a session: as its log has it, else the one of that name that can be found from here or from
/// where it began.
pub fn of_session(cwd: &Path, summary: &Summary) -> CommandResult<(PathBuf, TeamFile)> {
    if let Some(file) = summary
        .team_file
        .as_deref()
        .map(Path::new)
        .filter(|file| file.is_file())
    {
        return read(cwd, &file.display().to_string());
    }
    let team = summary.team.as_deref().unwrap_or_default();
    let began = summary.cwd.as_deref().map(Path::new);
    for folder in began.into_iter().chain([cwd]) {
        for file in all(folder).unwrap_or_default() {
            if let Ok((file, read)) = read(cwd, &file.display().to_string())
                && read.id() == team
            {
                return Ok((file, read));
            }
        }
    }
    let session = summary.id.short();
    let was = summary
        .team_file
        .as_deref()
        .map(|file| format!("; it was {file}"));
    Err(CommandError::new(
        ErrorKind::NotFound,
        format!(
            "the file of the team '{team}' is not found{}",
            was.unwrap_or_default()
        ),
    )
    .hint(format!("name it: tertulia team CONFIG --resume {session}"))
    .hint(format!(
        "`tertulia show {session}` reads the talk without it"
    )))
}

/// The names by which teams can be named here, to be shown.
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
    let error = CommandError::new(ErrorKind::NotFound, format!("there is no team '{name}'")).hint(
        format!("a team is a file, or a name in {}", FOLDERS.join(" or ")),
    );
    Err(if known.is_empty() {
        error.hint("`tertulia team init` makes one to begin with")
    } else {
        error.hint(format!("there are: {}", known.join(", ")))
    })
}

/// All team files that can be named here, by name.
pub fn all(cwd: &Path) -> CommandResult<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let Some(folder) = cwd
            .ancestors()
            .map(|above| above.join(folder))
            .find(|folder| folder.is_dir())
        else {
            continue;
        };
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
