//! Classifies what a command does with git, from its text. This guards against mistakes of
//! well-meaning agents, not against attacks: a command can be hidden from any such check.

/// What a command does with git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitUse {
    /// One git command that is known to change nothing and to run nothing else.
    Looks,
    /// Only git commands, none of which changes the repository.
    Reads,
    /// Only git commands, of which some may change something.
    Writes,
    /// Other commands, and a git command that may change something.
    Among,
    /// No git command that changes anything.
    Nothing,
}

/// Commands that only read, with any arguments.
const READING: &[&str] = &[
    "blame",
    "cat-file",
    "check-ignore",
    "count-objects",
    "describe",
    "diff",
    "diff-tree",
    "for-each-ref",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "version",
    "whatchanged",
];

/// Commands that change something, or may.
const WRITING: &[&str] = &[
    "add",
    "am",
    "apply",
    "bisect",
    "branch",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "commit-tree",
    "config",
    "fast-import",
    "fetch",
    "filter-branch",
    "gc",
    "hash-object",
    "init",
    "maintenance",
    "merge",
    "mv",
    "notes",
    "prune",
    "pull",
    "push",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "reset",
    "restore",
    "revert",
    "rm",
    "send-email",
    "sparse-checkout",
    "stash",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "worktree",
    "write-tree",
];

/// Flags of commands that run without asking: they write nothing and start nothing. A command with
/// any other flag needs permission.
const PLAIN_FLAGS: &[&str] = &[
    "--abbrev-commit",
    "--all",
    "--branch",
    "--cached",
    "--decorate",
    "--first-parent",
    "--follow",
    "--graph",
    "--ignored",
    "--ignore-all-space",
    "--long",
    "--merges",
    "--name-only",
    "--name-status",
    "--no-color",
    "--no-merges",
    "--no-patch",
    "--numstat",
    "--oneline",
    "--patch",
    "--porcelain",
    "--raw",
    "--reverse",
    "--short",
    "--shortstat",
    "--staged",
    "--stat",
    "--summary",
    "--untracked-files",
    "--word-diff",
    "--",
    "-b",
    "-p",
    "-s",
    "-u",
    "-w",
];

/// The same for flags with a value.
const VALUED_FLAGS: &[&str] = &[
    "--author=",
    "--date=",
    "--format=",
    "--grep=",
    "--max-count=",
    "--pretty=",
    "--since=",
    "--unified=",
    "--until=",
];

/// Classifies a command.
pub(super) fn used_by(command: &str) -> GitUse {
    match pieces(command) {
        Some(pieces) if pieces.iter().all(|words| is_git(words)) && !pieces.is_empty() => {
            match pieces.as_slice() {
                [words] if looks(words) => GitUse::Looks,
                pieces if pieces.iter().any(|words| writes(words)) => GitUse::Writes,
                _ => GitUse::Reads,
            }
        }
        pieces => {
            let writes = pieces.is_some_and(|pieces| pieces.iter().any(|words| writes(words)));
            match writes || mentions_writing(command) {
                true => GitUse::Among,
                false => GitUse::Nothing,
            }
        }
    }
}

/// Rewrites a read-only command so that it runs nothing that the repository's configuration names.
pub(super) fn looking(command: &str) -> String {
    let safe = "-c core.fsmonitor=false -c core.pager=cat --no-optional-locks";
    let rest = command.trim_start().trim_start_matches("git");
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("--no-pager").unwrap_or(rest).trim_start();
    let (name, given) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match name {
        "diff" | "log" | "show" => {
            format!("git {safe} {name} --no-ext-diff --no-textconv {given}")
        }
        _ => format!("git {safe} {name} {given}"),
    }
}

/// Returns whether a git command may change something. An unknown one may be an alias.
fn writes(words: &[String]) -> bool {
    if !is_git(words) {
        return false;
    }
    match subcommand(&words[1..]) {
        None => false,
        Some((name, given)) => !READING.contains(&name) && !is_list(name, given),
    }
}

/// Returns whether the command only lists.
fn is_list(name: &str, given: &[String]) -> bool {
    let lists = |flags: &[&str]| given.iter().all(|word| flags.contains(&word.as_str()));
    match name {
        "branch" => lists(&["-a", "-r", "-v", "-vv", "--all", "--list", "--show-current"]),
        "tag" => lists(&["-l", "--list"]),
        "remote" => lists(&["-v"]),
        "stash" => given.first().is_some_and(|word| word == "list"),
        "reflog" => lists(&["show"]),
        _ => false,
    }
}

/// Returns whether a git command is known to read and do nothing else.
fn looks(words: &[String]) -> bool {
    let given = match words.get(1).map(String::as_str) {
        Some("--no-pager") => &words[2..],
        _ => &words[1..],
    };
    let Some((name, given)) = given.split_first() else {
        return false;
    };
    match name.as_str() {
        "branch" => given.is_empty(),
        "diff" | "log" | "show" | "status" => given.iter().all(|word| is_plain(word)),
        _ => false,
    }
}

fn is_plain(word: &str) -> bool {
    if let Some(flag) = word.strip_prefix('-') {
        let number =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        return PLAIN_FLAGS.contains(&word)
            || VALUED_FLAGS.iter().any(|flag| word.starts_with(flag))
            || word
                .strip_prefix("-n")
                .is_some_and(|n| n.is_empty() || number(n))
            || word.strip_prefix("-U").is_some_and(number)
            || number(flag);
    }
    // Two paths outside the repository are compared without it.
    let outside = word.starts_with('/') || word.split('/').any(|part| part == "..");
    !outside
}

fn is_git(words: &[String]) -> bool {
    words.first().is_some_and(|word| word == "git")
}

/// Returns the command after git's own flags, with its arguments.
fn subcommand(words: &[String]) -> Option<(&str, &[String])> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" => at += 2,
            word if word.starts_with('-') => at += 1,
            word => return Some((word, &words[at + 1..])),
        }
    }
    None
}

/// Returns whether a writing git command occurs anywhere in the text, in quotes or after another
/// program.
fn mentions_writing(command: &str) -> bool {
    let split = |c: char| c.is_whitespace() || "\"'`;|&()<>{}$\\".contains(c);
    let words: Vec<String> = command
        .split(split)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        let git = word == "git" || word.ends_with("/git");
        git && subcommand(&words[at + 1..])
            .is_some_and(|(name, given)| WRITING.contains(&name) && !is_list(name, first(given)))
    })
}

/// Returns the first argument only: where the command ends is not known here.
fn first(given: &[String]) -> &[String] {
    &given[..given.len().min(1)]
}

/// Splits a line into commands and words, if the shell would pass them unchanged. `None` if it
/// would not: variables, substitutions, redirections, patterns.
fn pieces(command: &str) -> Option<Vec<Vec<String>>> {
    let mut pieces = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' | '\\' => return None,
                        c => word.push(c),
                    }
                }
            }
            ';' | '\n' | '&' | '|' => {
                let doubled = chars.next_if_eq(&c).is_some();
                if !doubled && (c == '&' || c == '|') {
                    return None;
                }
                pieces.last_mut()?.extend(word.take());
                pieces.push(Vec::new());
            }
            c if c.is_whitespace() => pieces.last_mut()?.extend(word.take()),
            '$' | '`' | '\\' | '(' | ')' | '<' | '>' | '{' | '}' | '*' | '?' | '[' | ']' | '#'
            | '!' => return None,
            // The home folder, at the beginning of a word.
            '~' if word.is_none() => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    pieces.last_mut()?.extend(word);
    pieces.retain(|words| !words.is_empty());
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: GitUse, commands: &[&str]) {
        for command in commands {
            assert_eq!(used_by(command), expected, "{command}");
        }
    }

    #[test]
    fn looking_is_told_from_writing() {
        check(
            GitUse::Looks,
            &[
                "git status",
                " git  status --short",
                "git log --oneline -5 main..feature -- src/a.rs",
                "git log -n 3 --format='%h %s'",
                "git diff HEAD~1 -U5 --stat",
                "git --no-pager show HEAD:README.md",
                "git branch",
            ],
        );
        check(
            GitUse::Writes,
            &[
                "git commit -m 'a; b'",
                "git add -A && git commit -m \"it's done\"",
                "git push",
                "git branch -D x",
                "git status && git ci",
            ],
        );
        check(
            GitUse::Reads,
            &[
                "git blame a",
                "git branch -a",
                "git -C /elsewhere status",
                "git diff --output=x",
                "git diff --outp=x",
                "git diff --no-index /etc/passwd a",
                "git diff /etc/passwd /etc/hosts",
                "git diff ../../a ../b",
                "git log --ext-diff -p",
                "git show --textconv",
                "git -c core.pager=x log",
                "git status; git status",
                "git",
            ],
        );
    }

    #[test]
    fn a_writing_command_is_found_among_others() {
        check(
            GitUse::Among,
            &[
                "echo hi && git commit -am x",
                "sh -c 'git push --force'",
                "cd sub; git reset --hard",
                "git commit -m \"$(cat message)\"",
                "FOO=1 git -C . checkout main",
                "/usr/bin/git stash",
                "true | git apply",
                "make && git ci",
                "git -c a=b commit > log",
                "echo `git tag v1`",
            ],
        );
        check(
            GitUse::Nothing,
            &[
                "ls",
                "echo git is fine",
                "git log | head",
                "cat a; git status",
                "git diff > patch",
                "make test && git diff --stat",
                "git branch -a | wc -l",
                "echo digit commit",
                "",
            ],
        );
    }

    #[test]
    fn nothing_of_the_repository_is_run_for_a_look() {
        let safe = "-c core.fsmonitor=false -c core.pager=cat --no-optional-locks";
        assert_eq!(
            looking("git  log -3"),
            format!("git {safe} log --no-ext-diff --no-textconv -3")
        );
        assert_eq!(
            looking("git --no-pager status"),
            format!("git {safe} status ")
        );
    }
}
