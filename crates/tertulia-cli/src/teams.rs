//! Where team files are, and reading them.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
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
    let mut error = CommandError::new(ErrorKind::NotFound, format!("there is no team '{name}'"))
        .hint(format!(
            "a team is a file, or a name in {}",
            FOLDERS.join(" or ")
        ));
    if let Some(others) = passed_over(cwd) {
        error = error.hint(others);
    }
    Err(if known.is_empty() {
        error.hint("`tertulia team init` makes one to begin with")
    } else {
        error.hint(format!("there are: {}", known.join(", ")))
    })
}

/// All team files that can be named here, by name.
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

/// The folders of other people that were passed over when teams were looked for.
pub fn passed_over(cwd: &Path) -> Option<String> {
    let others = Folders::of(cwd, user()).others;
    let others: Vec<String> = others
        .iter()
        .map(|folder| agents::shown(&folder.to_string_lossy()))
        .collect();
    (!others.is_empty()).then(|| {
        format!(
            "{} belongs to somebody else, and no team is looked for there by name; a path names its files",
            others.join(", ")
        )
    })
}

/// Who runs this program.
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The nearest folders of team files, at or above a place.
#[derive(Debug, Default, PartialEq, Eq)]
struct Folders {
    own: Vec<PathBuf>,
    /// Those of other people: in a folder that all may write to, like that for temporary files, anybody
    /// could leave a team for whoever works below it.
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

/// Whether all steps down to a folder are a user's own, and where they lead.
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
