//! The agent registry on disk: where it is, reading it, and changing it so that nobody's change is lost.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tertulia::team::Registry;

use crate::error::{CommandError, CommandResult, ErrorKind};

/// The registry's file, in the folder of the user's settings.
const FILE: &str = "agents.json";
/// Where agent-chatter keeps its own, below the home folder.
const INHERITED: &str = ".agent-chatter/agents/config.json";
/// How long another program may take to write its change.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait before the lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Where the registry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    own: PathBuf,
    inherited: Option<PathBuf>,
}

impl Place {
    /// The registry next to the settings in `config`; as long as there is none, agent-chatter's in
    /// `home` is read.
    pub fn new(config: &Path, home: Option<&Path>) -> Place {
        Place {
            own: config.join(FILE),
            inherited: home.map(|home| home.join(INHERITED)),
        }
    }

    /// The file that is read now.
    pub fn file(&self) -> &Path {
        match &self.inherited {
            Some(inherited) if !self.own.exists() && inherited.exists() => inherited,
            _ => &self.own,
        }
    }

    /// The file that a change goes to.
    pub fn own(&self) -> &Path {
        &self.own
    }

    /// Reads the registry. Where there is no file nobody is registered.
    pub fn read(&self) -> CommandResult<Registry> {
        let file = self.file();
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Registry::default());
            }
            Err(error) => return Err(trouble(file, "cannot be read", error)),
        };
        let origin = file.display().to_string();
        let unusable = |error: CommandError| {
            error.hint(format!(
                "correct {origin}, or move it away; it stays as it is"
            ))
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let place = error.utf8_error().valid_up_to();
            unusable(CommandError::new(
                ErrorKind::Invalid,
                format!("{origin} is not UTF-8 at position {place}"),
            ))
        })?;
        Registry::read(&text, &origin).map_err(|error| unusable(error.into()))
    }

    /// Changes the registry while nobody else does. What the change refuses, and what changes nothing,
    /// is not written. The first change takes over what was read from agent-chatter.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut Registry) -> CommandResult<T>,
    ) -> CommandResult<T> {
        let folder = self.own.parent().unwrap_or(Path::new("."));
        make_folder(folder)?;
        let _held = lock(&folder.join(format!(".{FILE}.lock")))?;
        let before = self.read()?;
        let mut registry = before.clone();
        let result = change(&mut registry)?;
        if registry != before {
            self.write(&registry)?;
        }
        Ok(result)
    }

    /// Replaces the file as a whole: readers see the old one or the new one.
    fn write(&self, registry: &Registry) -> CommandResult<()> {
        let text = registry.write()?;
        // Whoever keeps it elsewhere and links to it wants the link to stay.
        let file = fs::canonicalize(&self.own).unwrap_or_else(|_| self.own.clone());
        let temporary = file.with_extension("json.new");
        let write = || -> io::Result<()> {
            // What a program left that was killed while it wrote.
            if let Err(error) = fs::remove_file(&temporary)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
            let mut made = private().create_new(true).open(&temporary)?;
            made.set_permissions(Permissions::from_mode(0o600))?;
            made.write_all(text.as_bytes())?;
            made.sync_all()?;
            fs::rename(&temporary, &file)?;
            sync_folder_of(&file)
        };
        write().map_err(|error| trouble(&file, "cannot be written", error))
    }
}

/// A file for its owner alone, to be opened for writing.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Makes a folder and what is missing above it, each for its owner alone whatever the umask.
pub fn make_folder(folder: &Path) -> CommandResult<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folder(parent)?;
    }
    let make = || -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => {
                fs::set_permissions(folder, Permissions::from_mode(0o700))?;
                sync_folder_of(folder)
            }
            // Another program was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    };
    make().map_err(|error| trouble(folder, "cannot be made", error))
}

/// Syncs the folder that holds `path`, so that the name survives a crash as well as the content.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Waits for the lock. It is on a file of its own, since the registry's is replaced by each change;
/// the system lets go of it when its holder ends, however that ends.
pub fn lock(path: &Path) -> CommandResult<File> {
    let failed = |error| trouble(path, "cannot be locked", error);
    let file = private()
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed)?;
    // Under an odd umask the next one could not open it. If it is somebody else's, it is theirs to set.
    let _ = file.set_permissions(Permissions::from_mode(0o600));
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(CommandError::new(
                    ErrorKind::Conflict,
                    format!("another program holds {}", path.display()),
                )
                .hint("wait for it, or end it; nothing was changed"));
            }
        }
    }
}

fn trouble(path: &Path, what: &str, error: io::Error) -> CommandError {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
        _ => ErrorKind::Failed,
    };
    CommandError::new(kind, format!("{} {what}", path.display())).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia::team::Registered;

    fn agent(command: &str) -> Registered {
        Registered {
            display_name: "A".to_owned(),
            command: command.to_owned(),
            args: Vec::new(),
            use_pty: false,
            version: None,
            installed_at: None,
            last_verified: None,
        }
    }

    fn add(place: &Place, name: &str) {
        let added = place.change(|registry| {
            registry.agents.insert(name.to_owned(), agent("/bin/true"));
            Ok(())
        });
        added.unwrap();
    }

    #[test]
    fn the_inherited_one_is_read_and_never_written() {
        let home = tempfile::tempdir().unwrap();
        let inherited = home.path().join(INHERITED);
        let place = Place::new(&home.path().join("config"), Some(home.path()));
        assert_eq!(place.read().unwrap(), Registry::default());
        fs::create_dir_all(inherited.parent().unwrap()).unwrap();
        let mut old = Registry::default();
        old.agents.insert("old".to_owned(), agent("/bin/old"));
        let text = old.write().unwrap();
        fs::write(&inherited, &text).unwrap();
        assert_eq!(place.read().unwrap(), old);
        assert_eq!(place.file(), inherited);
        add(&place, "new");
        assert_eq!(fs::read_to_string(&inherited).unwrap(), text);
        let names: Vec<String> = place.read().unwrap().agents.into_keys().collect();
        assert_eq!(names, ["new", "old"]);
        fs::write(&inherited, "{").unwrap();
        assert_eq!(place.read().unwrap().agents.len(), 2);
    }

    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = home.path().join("dotfiles.json");
        fs::write(&elsewhere, Registry::default().write().unwrap()).unwrap();
        let place = Place::new(home.path(), None);
        std::os::unix::fs::symlink(&elsewhere, place.own()).unwrap();
        add(&place, "new");
        assert!(fs::symlink_metadata(place.own()).unwrap().is_symlink());
        assert!(fs::read_to_string(&elsewhere).unwrap().contains("new"));
    }

    #[test]
    fn what_changes_nothing_is_not_written() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::new(home.path(), None);
        place.change(|_| Ok(())).unwrap();
        assert!(!place.own().exists());
        let refused = place.change(|registry| {
            registry.agents.insert("x".to_owned(), agent("/bin/true"));
            Err::<(), _>(CommandError::new(ErrorKind::Usage, "no"))
        });
        assert!(refused.is_err() && !place.own().exists());
        // What could not be read again is not written either.
        let unreadable = place.change(|registry| {
            registry.agents.insert("x".to_owned(), agent(""));
            Ok(())
        });
        assert!(unreadable.is_err() && !place.own().exists());
    }

    #[test]
    fn what_a_killed_program_left_is_no_obstacle() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::new(home.path(), None);
        fs::write(home.path().join("agents.json.new"), "half a regis").unwrap();
        add(&place, "new");
        assert_eq!(place.read().unwrap().agents.len(), 1);
        assert!(!home.path().join("agents.json.new").exists());
    }
}
