//! Flags of earlier systems, understood where they stood and hidden from help: a command line with one
//! of them becomes command lines of today.

use std::ffi::OsString;

/// Command lines to run, one after the other, and what to tell the user first.
#[derive(Debug, PartialEq, Eq)]
pub struct Translated {
    pub lines: Vec<Vec<OsString>>,
    pub note: Option<String>,
}

/// What a flag is today. `rest` stands for the other arguments, in their order.
struct EarlierFlag {
    name: &'static str,
    today: Today,
}

enum Today {
    /// Another flag.
    Flag(&'static str),
    /// A command, which takes the rest.
    Command(&'static str),
    /// A fork of the session that is resumed, with the value of the flag.
    ForkAtRound,
    /// A command, and then the rest.
    Before(&'static str),
}

/// The one table.
const FLAGS: [EarlierFlag; 9] = [
    flag("--restore", Today::Flag("--resume")),
    flag("--list-sessions", Today::Command("list")),
    flag("--clean-sessions", Today::Command("prune")),
    flag("--fork-at-round", Today::ForkAtRound),
    flag("--replay", Today::Command("replay")),
    flag("--diff", Today::Command("diff")),
    flag("--merge", Today::Command("merge")),
    flag("--save-to-cloud", Today::Command("push")),
    flag("--from-cloud", Today::Before("pull")),
];

const fn flag(name: &'static str, today: Today) -> EarlierFlag {
    EarlierFlag { name, today }
}

/// Translates a command line. `is_command` tells the commands of today: their flags are their own.
pub fn translate(words: Vec<OsString>, is_command: impl Fn(&str) -> bool) -> Translated {
    // Knowing the commands takes time, which most command lines need not spend.
    let may_be = |word: &OsString| word.to_str().is_some_and(|word| earlier(word).is_some());
    if !words.iter().any(may_be) {
        return Translated {
            lines: vec![words],
            note: None,
        };
    }
    let found = words.iter().enumerate().skip(1).map_while(|(at, word)| {
        let word = word.to_str().unwrap_or_default();
        let names_command = is_command(word);
        (word != "--" && !names_command).then(|| Some((at, earlier(word)?)))
    });
    let Some((at, flag)) = found.flatten().next() else {
        return Translated {
            lines: vec![words],
            note: None,
        };
    };
    let (before, after) = (&words[..at], &words[at + 1..]);
    // `--restore=ID` is one word.
    let value = words[at].to_str().and_then(|word| word.split_once('='));
    let value = value.map(|(_, value)| OsString::from(value));
    let with = |new: &str| {
        let new = std::iter::once(OsString::from(new));
        let own = before.iter().cloned().chain(new).chain(value.clone());
        own.chain(after.iter().cloned()).collect::<Vec<_>>()
    };
    let lines = match flag.today {
        Today::Flag(name) | Today::Command(name) => vec![with(name)],
        Today::Before(command) => {
            let rest = before.iter().chain(after).cloned().collect();
            vec![vec![words[0].clone(), command.into()], rest]
        }
        Today::ForkAtRound => vec![forking(&words, at, value)],
    };
    let shown: Vec<String> = lines.iter().map(|line| shown(line)).collect();
    Translated {
        note: Some(format!(
            "{} is now `{}`",
            flag.name,
            shown.join("` and then `")
        )),
        lines,
    }
}

fn earlier(word: &str) -> Option<&'static EarlierFlag> {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    FLAGS.iter().find(|flag| flag.name == name)
}

/// Returns the fork that `--resume [REF] --fork-at-round N` stands for.
fn forking(words: &[OsString], at: usize, value: Option<OsString>) -> Vec<OsString> {
    let own = usize::from(value.is_none());
    let round = value.or_else(|| words.get(at + 1).cloned());
    let mut rest: Vec<OsString> = words[1..at].to_vec();
    rest.extend(words.iter().skip(at + 1 + own).cloned());
    let resumed = rest.iter().position(|word| {
        ["--resume", "-r", "-c", "--continue", "--session", "-s"]
            .iter()
            .any(|flag| word == flag)
    });
    if let Some(at) = resumed {
        rest.remove(at);
    }
    let reference = match resumed.and_then(|at| rest.get(at)?.to_str()) {
        Some(word) if !word.starts_with('-') => rest.remove(resumed.unwrap_or(0)),
        _ => "@".into(),
    };
    let program = words.first().cloned().unwrap_or_default();
    let mut line = vec![program, "fork".into(), reference, "--at-round".into()];
    line.extend(round);
    line.extend(rest);
    line
}

/// Formats a command line as the user would type it.
fn shown(line: &[OsString]) -> String {
    let words = line.iter().skip(1).map(|word| {
        let word = word.to_string_lossy();
        match word.contains(char::is_whitespace) {
            true => format!("{word:?}"),
            false => word.into_owned(),
        }
    });
    std::iter::once("tertulia".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> Vec<String> {
        let words = line.split(' ').map(OsString::from).collect();
        let is_command = |word: &str| ["list", "diff", "chat", "export"].contains(&word);
        let translated = translate(words, is_command);
        let lines = translated.lines.iter();
        lines
            .map(|line| {
                let words = line.iter().skip(1);
                words
                    .map(|word| word.to_str().unwrap())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    }

    #[test]
    fn every_flag_of_the_earlier_systems() {
        for (line, expected) in [
            ("t --restore 5f3a9c1e", &["--resume 5f3a9c1e"][..]),
            ("t --restore=5f3a9c1e hi", &["--resume 5f3a9c1e hi"]),
            ("t --list-sessions", &["list"]),
            ("t --json --list-sessions", &["--json list"]),
            (
                "t --clean-sessions --older-than 7d",
                &["prune --older-than 7d"],
            ),
            ("t --resume --fork-at-round 15", &["fork @ --at-round 15"]),
            (
                "t --resume 5f3a --fork-at-round 15",
                &["fork 5f3a --at-round 15"],
            ),
            (
                "t --fork-at-round=3 --session x --json",
                &["fork x --at-round 3 --json"],
            ),
            (
                "t --replay 5f3a --with-model haiku",
                &["replay 5f3a --with-model haiku"],
            ),
            ("t --diff 1 2", &["diff 1 2"]),
            ("t --merge 1 2", &["merge 1 2"]),
            ("t --save-to-cloud", &["push"]),
            ("t --resume --from-cloud", &["pull", "--resume"]),
        ] {
            assert_eq!(translated(line), expected, "{line}");
        }
    }

    /// Flags of commands, and words after `--`, are not the flags of earlier systems.
    #[test]
    fn other_command_lines_stay() {
        for line in [
            "t",
            "t --resume x",
            "t list --diff",
            "t -- --diff",
            "t chat --merge a",
        ] {
            let words: Vec<&str> = line.split(' ').skip(1).collect();
            assert_eq!(translated(line), [words.join(" ")], "{line}");
        }
    }

    #[test]
    fn the_new_name_is_said() {
        let words = ["t", "--resume", "--from-cloud"].map(OsString::from);
        let note = translate(words.to_vec(), |_| false).note;
        let expected = "--from-cloud is now `tertulia pull` and then `tertulia --resume`";
        assert_eq!(note.as_deref(), Some(expected));
    }
}
