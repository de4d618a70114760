//! Slash commands of the line mode: their parser and their help.

use tertulia_core::entry::Kind;
use tertulia_engine::slash::{self, COMMANDS, LineCommand};

/// Parsed input.
#[derive(Debug, PartialEq, Eq)]
pub enum Read<'a> {
    /// A message.
    Words,
    /// A command and its argument.
    Command(&'static str, &'a str),
    /// An unknown or misused command, with a hint.
    Wrong(String),
}

/// Parses input. A message may begin with a path, so only a slash and a word counts as a command:
/// alone, or if it resembles a known command.
pub fn read(words: &str, kind: Kind) -> Read<'_> {
    let Some((first, rest)) = slash::split(words) else {
        return Read::Words;
    };
    let known = COMMANDS
        .iter()
        .filter(|command| command.name == first)
        .find(|command| {
            command
                .lines
                .iter()
                .any(|line| rest.is_empty() || !line.argument.is_empty())
        });
    if let Some(command) = known {
        return Read::Command(command.name, rest);
    }
    let names: Vec<&str> = of(kind).into_iter().map(|(name, _)| name).collect();
    let near = slash::nearest(first, names.iter().copied());
    if !rest.is_empty() && near.is_none() {
        return Read::Words;
    }
    let meant = match near {
        Some(near) if near == first => return Read::Wrong(format!("{first} stands alone")),
        Some(near) => format!("; did you mean {near}?"),
        None => ".".to_owned(),
    };
    let all = names.join(" ");
    Read::Wrong(format!(
        "there is no command {first}{meant} Commands: {all}"
    ))
}

/// Returns the help for a session of this kind.
pub fn help(kind: Kind) -> String {
    let shown = of(kind)
        .into_iter()
        .filter(|(_, line)| !line.help.is_empty());
    let lines: Vec<(String, &str)> = shown
        .map(|(name, line)| (format!("{name} {}", line.argument), line.help))
        .map(|(usage, help)| (usage.trim_end().to_owned(), help))
        .collect();
    let width = lines
        .iter()
        .map(|(usage, _)| usage.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (usage, help) in lines {
        text.push_str(&format!("{usage:<width$}  {help}\n"));
    }
    let (before, stops) = match kind {
        Kind::Chat => ("", "the answer, or exits if no answer is running"),
        Kind::Team => (
            "@name at the beginning or [NEXT: name] anywhere asks a member next, [TEAM_TASK: text] says what all work on, [DROP: ALL] empties the queue.\n",
            "the speaker and the queue, or exits if nobody is speaking",
        ),
        Kind::Pair => (
            "What you write goes to the instructor. [r+5] or [r=10] at the beginning changes how often the worker may be called.\n",
            "the running agent, or exits if none is running",
        ),
    };
    let more = "!command runs a shell command as you, whose output the agent sees with your next prompt; @path attaches a text file.\n";
    format!("{text}{before}{more}A line that ends in \\ goes on in the next. Ctrl+C stops {stops}.")
}

/// Returns the commands of a session of this kind, in the order of the help: the session itself
/// comes right after the help.
fn of(kind: Kind) -> Vec<(&'static str, &'static LineCommand)> {
    let here = COMMANDS.iter();
    let here = here.filter_map(|command| Some((command.name, command.line(kind)?)));
    let mut here: Vec<_> = here.collect();
    here.sort_by_key(|(name, _)| !["/help", "/info"].contains(name));
    here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_words() {
        let wrong = |words: &str, kind, expected: &str| match read(words, kind) {
            Read::Wrong(why) => assert!(why.starts_with(expected), "{words}: {why}"),
            other => panic!("{words}: {other:?}"),
        };
        for kind in [Kind::Chat, Kind::Team, Kind::Pair] {
            assert_eq!(read(" /info ", kind), Read::Command("/info", ""));
            assert_eq!(read("/as  ann b", kind), Read::Command("/as", "ann b"));
            assert_eq!(read("/quit", kind), Read::Command("/quit", ""));
            for words in ["", "/", "/tmp/x is full", "/usr is full", "what is /help?"] {
                assert_eq!(read(words, kind), Read::Words, "{words}");
            }
            wrong("/help me", kind, "/help stands alone");
            wrong(
                "/hlep me",
                kind,
                "there is no command /hlep; did you mean /help? Commands: /help",
            );
            wrong(
                "/nonsense",
                kind,
                "there is no command /nonsense. Commands: /help",
            );
        }
        // Commands of other kinds are recognised alone, and may begin a message.
        assert_eq!(read("/members", Kind::Chat), Read::Command("/members", ""));
        assert_eq!(read("/members of it", Kind::Chat), Read::Words);
        wrong("/members of it", Kind::Team, "/members stands alone");
    }

    #[test]
    fn the_help_is_made_of_the_commands_that_have_a_meaning() {
        for (kind, others) in [
            (Kind::Chat, &["/members", "/go"][..]),
            (Kind::Team, &["/retry", "/go"]),
            (Kind::Pair, &["/compact", "/members"]),
        ] {
            let help = help(kind);
            for own in ["/help", "/approve MODE", "/permissions", "/exit"] {
                assert!(help.contains(own), "{own}: {help}");
            }
            for other in others {
                assert!(!help.contains(other), "{other}: {help}");
            }
        }
        insta::assert_snapshot!(help(Kind::Team), @r"
        /help                    this
        /info                    this session's id, title and message counts
        /sessions                list this project's sessions
        /resume REF              resume another session
        /new                     begin a new session
        /rename TITLE            give this session a title
        /tag +TAG -TAG           add and remove tags
        /fork [N]                fork from entry N or the end, and continue there
        /rewind N                go back to before entry N, in a fork
        /compact                 summarise what the agents' prompts leave out; the log keeps all
        /undo                    undo the last rename, tag or trash
        /export [FORMAT] [FILE]  write this session to a file
        /search WORDS            search all sessions
        /compare REF             diff this session with another
        /tree                    this session and its forks
        /stats                   messages and tokens of this project
        /agents                  which agents are ready
        /approve MODE            tool policy of this session: ask, edits, low, all or none; revokes what was allowed
        /permissions [revoke N]  what tools may do without asking; revoke one, or all
        /team list               list the teams
        /members                 who is here
        /queue                   who is still to speak
        /task                    what the team works on
        /as NAME                 speak as this person unless a message begins with [FROM: name]; without a name, as the one whose turn it is
        /exit                    exit (also /end, /quit, Ctrl+D)
        @name at the beginning or [NEXT: name] anywhere asks a member next, [TEAM_TASK: text] says what all work on, [DROP: ALL] empties the queue.
        !command runs a shell command as you, whose output the agent sees with your next prompt; @path attaches a text file.
        A line that ends in \ goes on in the next. Ctrl+C stops the speaker and the queue, or exits if nobody is speaking.
        ");
    }
}
