//! The agent registry on disk: its path, reading it, and changing it without losing concurrent
//! changes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tertulia_core::team::Registry;

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::private_file::{lock_of, replace, trouble};

/// Registry file, in the folder of the user's settings.
const FILE: &str = "agents.json";
/// Registry of agent-chatter, below the home folder.
const INHERITED: &str = ".agent-chatter/agents/config.json";

/// Location of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    own: PathBuf,
    inherited: Option<PathBuf>,
}

impl Place {
    /// Uses the registry next to the settings in `config`; as long as there is none,
    /// agent-chatter's in `home` is read.
    pub fn new(config: &Path, home: Option<&Path>) -> Place {
        Place {
            own: config.join(FILE),
            inherited: home.map(|home| home.join(INHERITED)),
        }
    }

    /// Returns the file to read.
    pub fn file(&self) -> &Path {
        match &self.inherited {
            Some(inherited) if !self.own.exists() && inherited.exists() => inherited,
            _ => &self.own,
        }
    }

    /// Returns the file to write.
    pub fn own(&self) -> &Path {
        &self.own
    }

    /// Reads the registry. A missing file means that no agent is registered.
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

    /// Changes the registry under its lock. Writes nothing if `change` fails or changes nothing.
    /// The first change copies what was read from agent-chatter.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut Registry) -> CommandResult<T>,
    ) -> CommandResult<T> {
        let _held = lock_of(&self.own)?;
        let before = self.read()?;
        let mut registry = before.clone();
        let result = change(&mut registry)?;
        if registry != before {
            replace(&self.own, &registry.write()?)?;
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia_core::team::Registered;

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
        // A registry that could not be read again is not written either.
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
