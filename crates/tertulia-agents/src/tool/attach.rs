//! Reads the files that the user attaches to a message.

use std::fs;
use std::io::{ErrorKind, Read};

use rustix::io::Errno;

use super::Toolbox;
use super::confine::Place;
use tertulia_core::entry::Attachment;
use tertulia_core::preview::one_line;

/// Maximum number of bytes of one file.
pub const ATTACHMENT_LIMIT: usize = 100_000;

impl Toolbox {
    /// Returns true if a name is that of a folder, which cannot be attached. Blocks.
    pub fn is_folder(&self, name: &str) -> bool {
        self.work_dir.join(name).is_dir()
    }

    /// Reads a text file of the work folder, at most [`ATTACHMENT_LIMIT`] bytes of it. Returns
    /// `None` if nothing has this name or it names a folder; an error says why a file cannot be
    /// attached. Blocks.
    pub fn attach(&self, name: &str) -> Result<Option<Attachment>, String> {
        let shown = one_line(name);
        match fs::metadata(self.work_dir.join(name)) {
            Ok(metadata) if metadata.is_dir() => return Ok(None),
            Ok(_) => {}
            Err(error) if names_nothing(&error) => return Ok(None),
            Err(error) => return Err(format!("cannot read '{shown}': {error}")),
        }
        let place = Place::resolve(&self.work_dir, name).map_err(|_| {
            format!(
                "'{shown}' is outside the work folder {}, links followed; only files in it can be attached",
                self.work_dir.display()
            )
        })?;
        let mut opened = place.file()?;
        let size = opened.size();
        let mut bytes = Vec::new();
        let limit = ATTACHMENT_LIMIT as u64;
        let reader = opened.file.by_ref();
        reader
            .take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot read '{shown}': {error}"))?;
        let whole = bytes.len() <= ATTACHMENT_LIMIT;
        bytes.truncate(ATTACHMENT_LIMIT);
        let content = text(bytes, whole)
            .ok_or_else(|| format!("'{shown}' is not a text file; only text can be attached"))?;
        let size = size.max(content.len() as u64);
        Ok(Some(Attachment {
            path: place.shown(),
            bytes: size,
            cut: match whole {
                true => 0,
                false => size - content.len() as u64,
            },
            content,
        }))
    }
}

/// Returns true if an error says that nothing has the name.
fn names_nothing(error: &std::io::Error) -> bool {
    let wrong = [Errno::NAMETOOLONG, Errno::LOOP, Errno::INVAL].map(Errno::raw_os_error);
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput
    ) || error
        .raw_os_error()
        .is_some_and(|code| wrong.contains(&code))
}

/// Returns the bytes as text, without a character that the limit has split. `None` if they are no
/// text.
fn text(bytes: Vec<u8>, whole: bool) -> Option<String> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if !whole && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(end);
            String::from_utf8(bytes).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::ToolLimits;
    use super::*;

    fn tools(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Toolbox) {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir_all(work.join("src")).unwrap();
        for (name, content) in files {
            fs::write(work.join(name), content).unwrap();
        }
        let tools = Toolbox::new(work, ToolLimits::default(), Vec::new()).unwrap();
        (dir, tools)
    }

    #[test]
    fn a_file_of_the_folder_is_read_with_its_size() {
        let (_dir, tools) = tools(&[("src/a.rs", b"fn a() {}\n"), ("a b.txt", b"")]);
        let attached = tools.attach("./src/../src/a.rs").unwrap().unwrap();
        assert_eq!(attached.path, "src/a.rs");
        assert_eq!((attached.bytes, attached.cut), (10, 0));
        assert_eq!(attached.content, "fn a() {}\n");
        assert_eq!(tools.attach("a b.txt").unwrap().unwrap().content, "");
        let whole = tools.work_dir.join("src/a.rs");
        assert!(tools.attach(whole.to_str().unwrap()).unwrap().is_some());
    }

    #[test]
    fn what_names_no_file_is_text() {
        let (_dir, tools) = tools(&[("file", b"x")]);
        let long = "x".repeat(5000);
        for name in ["param", "src", "src/", "", ".", "file/x", "a\0b", &long] {
            assert_eq!(tools.attach(name), Ok(None), "{name}");
        }
    }

    #[test]
    fn a_long_file_is_cut_between_characters() {
        let long = format!("x{}", "é".repeat(60_000));
        let (_dir, tools) = tools(&[("long", long.as_bytes())]);
        let attached = tools.attach("long").unwrap().unwrap();
        assert_eq!(attached.content.len(), ATTACHMENT_LIMIT - 1);
        assert_eq!((attached.bytes, attached.cut), (120_001, 20_002));
    }

    #[test]
    fn what_cannot_be_attached_says_why() {
        let (dir, tools) = tools(&[
            ("bin", b"\x7fELF\0\0"),
            ("latin", b"a\xe9b"),
            ("locked", b"x"),
        ]);
        fs::write(dir.path().join("outside"), "x").unwrap();
        symlink("../outside", tools.work_dir.join("link")).unwrap();
        let why = |name: &str| tools.attach(name).unwrap_err();
        assert!(
            why("bin").contains("'bin' is not a text file"),
            "{}",
            why("bin")
        );
        assert!(why("latin").contains("is not a text file"));
        for name in ["link", "../outside", "/etc/hostname"] {
            assert!(
                why(name).contains("outside the work folder"),
                "{}",
                why(name)
            );
        }
        let locked = tools.work_dir.join("locked");
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
        // The super-user may read everything.
        if fs::read(&locked).is_err() {
            assert!(
                why("locked").contains("cannot open locked"),
                "{}",
                why("locked")
            );
        }
    }
}
