//! Describes the state of a git repository in one line, for agents: branch, and how many files are
//! changed. Bounded in time and size, and runs nothing that the repository's settings name: those of
//! a project that was downloaded as an archive are another author's.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::git::Repository;

/// Time limit for all commands together.
const LIMIT: Duration = Duration::from_secs(1);
/// Number of bytes that are read of a command's output.
const OUTPUT: u64 = 1024 * 1024;
/// Maximum length of a branch's name.
const NAME: usize = 120;

/// Options that keep git from running other programs, from fetching, and from writing.
const SAFE: &[&str] = &[
    "--no-optional-locks",
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "protocol.allow=never",
];

/// Returns the line, or `None` if the folder belongs to no repository or git does not answer.
pub fn git_state(folder: &Path, home: Option<&Path>) -> Option<String> {
    let repository = Repository::of(folder, home)?;
    let git = |args: &[&str], until| git(repository.command(folder), args, until);
    let until = Instant::now() + LIMIT;
    if runs_filters(git, until) {
        let head = git(&["symbolic-ref", "-q", "--short", "HEAD"], until)?;
        return Some(branch(head.text.trim()));
    }
    let status = [
        "status",
        "--porcelain=v2",
        "--branch",
        "--untracked-files=normal",
        "--ignore-submodules=all",
        "--no-renames",
    ];
    match git(&status, until) {
        Some(status) => described(&status),
        None => {
            // A large repository; its branch is found at once.
            let until = Instant::now() + LIMIT;
            let head = git(&["symbolic-ref", "-q", "--short", "HEAD"], until)?;
            Some(branch(head.text.trim()))
        }
    }
}

/// Returns true if the repository's own settings name filters, which are programs that `git status`
/// runs; also if that cannot be found out.
fn runs_filters(git: impl Fn(&[&str], Instant) -> Option<Output>, until: Instant) -> bool {
    let names = [
        "config",
        "--show-scope",
        "--includes",
        "--name-only",
        "--list",
    ];
    let Some(names) = git(&names, until) else {
        return true;
    };
    let mut own = names.text.lines().filter_map(|line| line.split_once('\t'));
    names.cut || own.any(|(scope, name)| is_own(scope) && name.starts_with("filter."))
}

/// Returns true if a setting comes neither from the user nor from the system.
fn is_own(scope: &str) -> bool {
    !["global", "system", "command"].contains(&scope)
}

/// Output of a git command.
struct Output {
    text: String,
    /// Whether there was more of it.
    cut: bool,
}

/// Runs a git command. Returns `None` if it fails or takes too long.
fn git(mut command: Command, args: &[&str], until: Instant) -> Option<Output> {
    let mut child = command
        .args(SAFE)
        .args(args)
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let pipe = child.stdout.take();
    let (sender, output) = mpsc::channel();
    let reader = std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.map(|pipe| pipe.take(OUTPUT).read_to_end(&mut bytes));
        // The receiver is gone once the time is up.
        let _ = sender.send((read.is_some_and(|read| read.is_ok()), bytes));
    });
    // Without a reader, the channel is closed and nothing is received.
    drop(reader);
    let left = until.saturating_duration_since(Instant::now());
    let received = output.recv_timeout(left).ok();
    let cut = matches!(&received, Some((_, bytes)) if bytes.len() as u64 == OUTPUT);
    if received.is_none() || cut {
        let _ = child.kill();
    }
    let ended = child.wait().ok()?;
    let (true, bytes) = received? else {
        return None;
    };
    (cut || ended.success()).then(|| Output {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        cut,
    })
}

/// Describes the output of `git status --porcelain=v2 --branch`.
fn described(status: &Output) -> Option<String> {
    let (mut head, mut changed, mut untracked, mut conflicts) = (None, 0_u64, 0_u64, 0_u64);
    for line in status.text.lines() {
        match line.split_once(' ') {
            Some(("#", header)) => head = header.strip_prefix("branch.head ").or(head),
            Some(("1" | "2", _)) => changed += 1,
            Some(("u", _)) => conflicts += 1,
            Some(("?", _)) => untracked += 1,
            _ => {}
        }
    }
    let counts = [
        (changed, "changed"),
        (conflicts, "in conflict"),
        (untracked, "untracked"),
    ];
    let more = if status.cut { "more than " } else { "" };
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what)| format!("{more}{count} {what}"))
        .collect();
    let counts = match counts.is_empty() {
        true => "clean".to_owned(),
        false => counts.join(", "),
    };
    Some(format!("{}, {counts}", branch(head?)))
}

/// Names a branch, shortened and without control characters.
fn branch(name: &str) -> String {
    if name.is_empty() || name == "(detached)" {
        return "no branch (detached HEAD)".to_owned();
    }
    let plain = name.chars().filter(|c| !c.is_control());
    format!("branch {}", plain.take(NAME).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(text: &str, cut: bool, expected: &str) {
        let text = text.to_owned();
        let line = described(&Output { text, cut });
        assert_eq!(line.as_deref(), Some(expected));
    }

    #[test]
    fn a_status_is_one_line() {
        let head = "# branch.oid 01\n# branch.head main\n# branch.ab +1 -0\n";
        check(head, false, "branch main, clean");
        let files = "1 .M N... 1 a b\n1 A. N... 1 c d\nu UU N... e f\n? g\n? h i\n";
        check(
            &format!("{head}{files}"),
            false,
            "branch main, 2 changed, 1 in conflict, 2 untracked",
        );
        check(
            &format!("{head}? g\n"),
            true,
            "branch main, more than 1 untracked",
        );
        check(
            "# branch.head (detached)\n",
            false,
            "no branch (detached HEAD), clean",
        );
        let long = "b".repeat(1000);
        check(
            &format!("# branch.head {long}\n"),
            false,
            &format!("branch {}, clean", &long[..NAME]),
        );
    }

    fn run(folder: &Path, args: &[&str]) {
        let done = Command::new("git").args(args).current_dir(folder).output();
        assert!(done.unwrap().status.success(), "{args:?}");
    }

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), &["init", "-q", "-b", "main"]);
        for setting in ["user.name=a", "user.email=a@example.org"] {
            let (key, value) = setting.split_once('=').unwrap();
            run(folder.path(), &["config", key, value]);
        }
        folder
    }

    #[test]
    fn a_real_repository_is_described() {
        let folder = repository();
        let state = || git_state(folder.path(), None);
        assert_eq!(state().as_deref(), Some("branch main, clean"));
        fs::write(folder.path().join("a"), "1").unwrap();
        run(folder.path(), &["add", "a"]);
        fs::write(folder.path().join("b"), "1").unwrap();
        assert_eq!(
            state().as_deref(),
            Some("branch main, 1 changed, 1 untracked")
        );
        // Below another repository: what is there is not what is asked for.
        let none = folder.path().join("none");
        fs::create_dir(&none).unwrap();
        assert_eq!(git_state(&none, Some(&none)), None);
        fs::create_dir(none.join(".git")).unwrap();
        assert_eq!(git_state(&none, Some(&none)), None);
    }

    /// Settings that came with a folder must not run programs.
    #[test]
    fn programs_that_a_repository_names_do_not_run() {
        let folder = repository();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "1").unwrap();
        run(folder.path(), &["add", "a"]);
        run(folder.path(), &["commit", "-q", "-m", "a"]);
        let touch = |name: &str| format!("touch '{}'; cat", at(name).display());
        fs::write(at(".gitattributes"), "* filter=evil\n").unwrap();
        run(folder.path(), &["config", "core.fsmonitor", &touch("ran1")]);
        assert!(
            git_state(folder.path(), None)
                .unwrap()
                .contains("1 untracked")
        );
        run(
            folder.path(),
            &["config", "filter.evil.clean", &touch("ran2")],
        );
        fs::write(at("a"), "2").unwrap();
        assert_eq!(
            git_state(folder.path(), None).as_deref(),
            Some("branch main")
        );
        assert!(!at("ran1").exists() && !at("ran2").exists());
        // Without the precautions they would.
        run(folder.path(), &["status"]);
        assert!(at("ran2").exists());
    }
}
