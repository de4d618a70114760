//! The server's Unix socket: accessible to its owner only, never replaces another file, and removed
//! on drop.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode};

/// Maximum length of a socket path.
const LONGEST_PATH: usize = 107;

/// A bound socket.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    mark: Mark,
}

/// Removes the socket on drop, unless another one has replaced it.
#[derive(Debug)]
pub struct Mark {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Why the socket could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A server listens there.
    #[error("a server is running already at {}", .0.display())]
    Live(PathBuf),
    /// The path is something other than a socket.
    #[error("{} is there and is {what}; it is left as it is", path.display())]
    Occupied {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The path is too long.
    #[error("{} is too long for a socket: {} bytes, {LONGEST_PATH} are allowed", .0.display(), .0.as_os_str().len())]
    TooLong(PathBuf),
    /// Any other failure.
    #[error("the socket {} cannot be made", path.display())]
    Failed {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl Socket {
    /// Creates the socket. Replaces one that a dead server left behind; does not follow symbolic
    /// links.
    pub fn bind(path: &Path) -> Result<Socket, SocketError> {
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(SocketError::TooLong(path.to_owned()));
        }
        let failed = |source: std::io::Error| SocketError::Failed {
            path: path.to_owned(),
            source,
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
        // Serialises concurrent starts: each could take the other's new socket for a stale one.
        let turn = File::open(folder).map_err(failed)?;
        rustix::fs::flock(&turn, FlockOperation::LockExclusive)
            .map_err(|error| failed(error.into()))?;
        make_room(path)?;
        // The socket is private from the first moment.
        let usual = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
        let bound = UnixListener::bind(path);
        rustix::process::umask(usual);
        let listener = bound.map_err(failed)?;
        let made = path.symlink_metadata().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        drop(turn);
        Ok(Socket {
            listener,
            mark: Mark {
                path: path.to_owned(),
                device: made.dev(),
                inode: made.ino(),
            },
        })
    }

    /// Returns the listener, and the guard that removes the socket.
    pub fn split(self) -> (UnixListener, Mark) {
        (self.listener, self.mark)
    }
}

/// Removes a socket without a listener. Leaves anything else alone.
fn make_room(path: &Path) -> Result<(), SocketError> {
    let there = match path.symlink_metadata() {
        Ok(there) => there,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(SocketError::Failed {
                path: path.to_owned(),
                source,
            });
        }
    };
    let kind = there.file_type();
    if !kind.is_socket() {
        let what = match () {
            () if kind.is_symlink() => "a link",
            () if kind.is_dir() => "a folder",
            () => "a file",
        };
        return Err(SocketError::Occupied {
            path: path.to_owned(),
            what,
        });
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(SocketError::Live(path.to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|source| SocketError::Failed {
                path: path.to_owned(),
                source,
            })
        }
        // The backlog is full, so a server is listening.
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(SocketError::Live(path.to_owned()))
        }
        Err(source) => Err(SocketError::Failed {
            path: path.to_owned(),
            source,
        }),
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let ours = self
            .path
            .symlink_metadata()
            .is_ok_and(|there| (there.dev(), there.ino()) == (self.device, self.inode));
        if ours {
            // If removal fails, the next server removes it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn it_is_private_and_gone_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/t.sock");
        let socket = Socket::bind(&path).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert!(matches!(Socket::bind(&path), Err(SocketError::Live(_))));
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_was_left_behind_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        Socket::bind(&path).unwrap();
    }

    #[test]
    fn nothing_else_is_touched_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("t.sock"), dir.path().join("other"));
        symlink(&other, &path).unwrap();
        assert!(matches!(
            Socket::bind(&path),
            Err(SocketError::Occupied { what: "a link", .. })
        ));
        assert!(!other.exists() && path.symlink_metadata().unwrap().is_symlink());
        std::fs::write(&other, "words").unwrap();
        assert!(matches!(
            Socket::bind(&other),
            Err(SocketError::Occupied { what: "a file", .. })
        ));
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "words");
    }

    #[test]
    fn another_ones_socket_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.sock");
        let ours = Socket::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _theirs = UnixListener::bind(&path).unwrap();
        drop(ours);
        assert!(path.exists());
    }

    #[test]
    fn a_path_that_is_too_long_is_told() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
        assert!(matches!(Socket::bind(&path), Err(SocketError::TooLong(_))));
    }
}
