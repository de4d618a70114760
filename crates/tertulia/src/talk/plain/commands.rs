//! Slash commands of the line mode: their table, their help and their parser.

use tertulia_core::entry::Kind;

/// A command as the help shows it.
struct Command {
    name: &'static str,
    /// Placeholder of the argument; empty if the command takes none.
    argument: &'static str,
    /// Kinds of session that have the command. Elsewhere it reports that it does not apply.
    kinds: &'static [Kind],
    /// Help text; empty if another command's help covers it.
    help: &'static str,
}

const fn command(
    name: &'static str,
    argument: &'static str,
    kinds: &'static [Kind],
    help: &'static str,
) -> Command {
    Command {
        name,
        argument,
        kinds,
        help,
    }
}

const ALL: &[Kind] = &[Kind::Chat, Kind::Team, Kind::Pair];
const CHAT: &[Kind] = &[Kind::Chat];
const TEAM: &[Kind] = &[Kind::Team];
const PAIR: &[Kind] = &[Kind::Pair];

/// All commands, in the order of the help.
#[rustfmt::skip]
const COMMANDS: &[Command] = &[
    command("/help", "", ALL, "this"),
    command("/info", "", CHAT, "which session this is"),
    command("/info", "", TEAM, "this session's id, title and message counts"),
    command("/info", "", PAIR, "which session this is, and how far it is"),
    command("/compact", "", CHAT, "sum up the older part for the agent; the log keeps everything"),
    command("/approve", "MODE", ALL, "tool policy of this session: ask, low, all or none; revokes what was allowed"),
    command("/permissions", "[revoke N]", ALL, "what tools may do without asking; revoke one, or all"),
    command("/members", "", TEAM, "who is here"),
    command("/queue", "", TEAM, "who is still to speak"),
    command("/task", "", TEAM, "what the team works on"),
    command("/as", "NAME", TEAM, "speak as this person unless a message begins with [FROM: name]; without a name, as the one whose turn it is"),
    command("/go", "", PAIR, "continue unfinished work"),
    command("/exit", "", ALL, "exit (also /end, /quit, Ctrl+D)"),
    command("/end", "", ALL, ""),
    command("/quit", "", ALL, ""),
];

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
    let first = words.split_whitespace().next().unwrap_or_default();
    let rest = words.trim_start()[first.len()..].trim();
    let known = COMMANDS.iter().find(|command| command.name == first);
    if let Some(command) = known.filter(|known| rest.is_empty() || !known.argument.is_empty()) {
        return Read::Command(command.name, rest);
    }
    let is_word = first
        .strip_prefix('/')
        .is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic()));
    let names: Vec<&str> = of(kind).map(|command| command.name).collect();
    let near = nearest(first, &names);
    if !is_word || !(rest.is_empty() || near.is_some()) {
        return Read::Words;
    }
    let meant = match near {
        Some(near) if near == first => return Read::Wrong(format!("{first} stands alone")),
        Some(near) => format!("; did you mean {near}?"),
        None => ".".to_owned(),
    };
    let all = names.join(" ");
    Read::Wrong(format!(
        "there is no command {first}{meant} There are {all}"
    ))
}

/// Returns the help for a session of this kind.
pub fn help(kind: Kind) -> String {
    let shown = of(kind).filter(|command| !command.help.is_empty());
    let usage = |command: &Command| format!("{} {}", command.name, command.argument);
    let lines: Vec<(String, &str)> = shown
        .map(|command| (usage(command).trim_end().to_owned(), command.help))
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
    format!("{text}{before}A line that ends in \\ goes on in the next. Ctrl+C stops {stops}.")
}

/// Returns the commands of a session of this kind.
fn of(kind: Kind) -> impl Iterator<Item = &'static Command> {
    let here = move |command: &&Command| command.kinds.contains(&kind);
    COMMANDS.iter().filter(here)
}

/// Returns the command with the closest spelling. Short words must be closer: `/usr` is not `/as`.
fn nearest<'a>(word: &str, commands: &[&'a str]) -> Option<&'a str> {
    let most = if word.len() <= "/help".len() { 1 } else { 2 };
    let near = commands
        .iter()
        .map(|command| (strsim::damerau_levenshtein(word, command), *command));
    near.min()
        .filter(|(far, _)| *far <= most)
        .map(|(_, near)| near)
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
                "there is no command /hlep; did you mean /help? There are /help",
            );
            wrong(
                "/nonsense",
                kind,
                "there is no command /nonsense. There are /help",
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
            (Kind::Team, &["/compact", "/go"]),
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
        /approve MODE            tool policy of this session: ask, low, all or none; revokes what was allowed
        /permissions [revoke N]  what tools may do without asking; revoke one, or all
        /members                 who is here
        /queue                   who is still to speak
        /task                    what the team works on
        /as NAME                 speak as this person unless a message begins with [FROM: name]; without a name, as the one whose turn it is
        /exit                    exit (also /end, /quit, Ctrl+D)
        @name at the beginning or [NEXT: name] anywhere asks a member next, [TEAM_TASK: text] says what all work on, [DROP: ALL] empties the queue.
        A line that ends in \ goes on in the next. Ctrl+C stops the speaker and the queue, or exits if nobody is speaking.
        ");
    }
}
