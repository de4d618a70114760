//! The helper process that ends an agent's child processes when this program is killed. It runs
//! this program's own executable with a hidden first argument.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use tertulia_agents::process::guard::{Guard, watch};
use uuid::Uuid;

/// First argument of the helper.
const WORD: &str = "__guard";
/// This program's own executable, even after the file was replaced by another version.
#[cfg(target_os = "linux")]
const OWN_FILE: &str = "/proc/self/exe";

/// Creates a guard for one session.
pub fn guard() -> Guard {
    let run = Uuid::new_v4().to_string();
    Guard::new(own_file(), vec![WORD.into()], run)
}

#[cfg(target_os = "linux")]
fn own_file() -> PathBuf {
    PathBuf::from(OWN_FILE)
}

#[cfg(not(target_os = "linux"))]
fn own_file() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("tertulia"))
}

/// Returns the run to guard, if this process was started as a helper.
pub fn asked_for(args: impl IntoIterator<Item = OsString>) -> Option<String> {
    let mut words = args.into_iter().skip(1);
    if words.next()? != WORD {
        return None;
    }
    words.next()?.into_string().ok()
}

/// Guards until the program that started this process has ended.
pub fn keep(run: &str) -> ExitCode {
    watch(run, std::io::stdin().lock());
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_starts_a_helper() {
        let words = |words: &[&str]| asked_for(words.iter().map(OsString::from));
        assert_eq!(words(&["tertulia", "__guard", "r"]), Some("r".to_owned()));
        assert_eq!(words(&["tertulia", "__guard"]), None);
        assert_eq!(words(&["tertulia", "chat", "__guard"]), None);
        assert_eq!(words(&["tertulia"]), None);
    }
}
