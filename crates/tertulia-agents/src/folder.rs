//! The folder of an agent's own session: some programs find a session only in the folder where it
//! began.

use std::path::{Path, PathBuf};

use super::NativeSession;

/// Folder in which an agent resumes its own session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Folder {
    /// The folder in which the agent works now.
    Own,
    /// Another folder: the one in which the session began.
    Other(PathBuf),
    /// None: the folder in which the session began is gone.
    Gone(PathBuf),
}

impl Folder {
    /// Returns the folder for an agent that works in `own`.
    pub(super) fn of(native: &NativeSession, own: Option<&Path>) -> Folder {
        let Some(began) = &native.cwd else {
            return Folder::Own;
        };
        let Ok(real) = began.canonicalize() else {
            return Folder::Gone(began.clone());
        };
        match own.and_then(|own| own.canonicalize().ok()) {
            Some(own) if own == real => Folder::Own,
            _ if !real.is_dir() => Folder::Gone(began.clone()),
            _ => Folder::Other(began.clone()),
        }
    }

    /// Returns the remark for the user about the folder, if it is not the agent's own.
    pub(super) fn remark(&self, agent: &str) -> Option<String> {
        match self {
            Folder::Own => None,
            Folder::Other(folder) => Some(format!(
                "{agent} works in {}, where its session began",
                folder.display()
            )),
            Folder::Gone(folder) => Some(format!(
                "{} is gone, where the session of {agent} began: it begins another here and is given everything",
                folder.display()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia_core::entry::Usage;

    #[test]
    fn a_session_is_gone_on_with_where_it_began() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let check = |cwd: Option<PathBuf>, expected: Folder| {
            let native = NativeSession {
                id: "x".into(),
                cwd,
                known: 0,
                spent: Usage::default(),
                fork: false,
            };
            assert_eq!(Folder::of(&native, Some(here)), expected);
        };
        check(None, Folder::Own);
        check(Some(here.join("src/..")), Folder::Own);
        check(Some(here.join("src")), Folder::Other(here.join("src")));
        let gone = here.join("no such folder");
        check(Some(gone.clone()), Folder::Gone(gone));
        let file = here.join("Cargo.toml");
        check(Some(file.clone()), Folder::Gone(file));
    }
}
