//! Slash commands of all frontends: the one table, and finding a command by its name.

use tertulia_core::entry::Kind;

/// Kind of a command's argument, for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// None, or not completable.
    Free,
    /// Session.
    Session,
    /// Agent.
    Agent,
    /// Model.
    Model,
    /// Person of the team.
    Member,
    /// Export format, then a file.
    Export,
    /// `deploy`, `list` or `map`, then a team file.
    Team,
    /// Tool policy.
    Approve,
}

/// A command as the help of the full-screen frontend shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Name, including the slash.
    pub name: &'static str,
    /// Arguments; those in brackets are optional.
    pub arguments: &'static str,
    /// Explanation.
    pub help: &'static str,
    /// Kind of the argument.
    pub argument: Argument,
    /// The command in line mode; empty if line mode does not have it.
    pub lines: &'static [LineCommand],
}

/// A command as the help of line mode shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCommand {
    /// Kinds of session that have the command. Elsewhere it reports that it does not apply.
    pub kinds: &'static [Kind],
    /// Placeholder of the argument; empty if the command takes none.
    pub argument: &'static str,
    /// Explanation; empty if another command's help covers it.
    pub help: &'static str,
}

impl Command {
    /// Returns true if the command takes no argument.
    pub fn stands_alone(&self) -> bool {
        self.arguments.is_empty()
    }

    /// Returns true if the command needs an argument.
    pub fn wants_more(&self) -> bool {
        !self.stands_alone() && !self.arguments.starts_with('[')
    }

    /// Returns the command in line mode, for a session of this kind.
    pub fn line(&self, kind: Kind) -> Option<&'static LineCommand> {
        self.lines.iter().find(|line| line.kinds.contains(&kind))
    }
}

const fn command(
    name: &'static str,
    arguments: &'static str,
    argument: Argument,
    help: &'static str,
    lines: &'static [LineCommand],
) -> Command {
    Command {
        name,
        arguments,
        help,
        argument,
        lines,
    }
}

const fn line(kinds: &'static [Kind], argument: &'static str, help: &'static str) -> LineCommand {
    LineCommand {
        kinds,
        argument,
        help,
    }
}

use Argument::{Agent, Approve, Export, Free, Member, Model, Session, Team};

const ALL: &[Kind] = &[Kind::Chat, Kind::Team, Kind::Pair];
const CHAT: &[Kind] = &[Kind::Chat];
const OTHERS: &[Kind] = &[Kind::Team, Kind::Pair];
const TEAM: &[Kind] = &[Kind::Team];
const PAIR: &[Kind] = &[Kind::Pair];

/// All commands, in the order of the help.
#[rustfmt::skip]
pub const COMMANDS: &[Command] = &[
    command("/help", "", Free, "keys and commands", &[line(ALL, "", "this")]),
    command("/sessions", "", Free, "the list of sessions", &[
        line(ALL, "", "list this project's sessions"),
    ]),
    command("/resume", "[REF]", Session, "resume another session", &[
        line(ALL, "REF", "resume another session"),
    ]),
    command("/new", "", Free, "begin a new session", &[
        line(ALL, "", "begin a new session"),
    ]),
    command("/rename", "TITLE", Free, "give this session a title", &[
        line(ALL, "TITLE", "give this session a title"),
    ]),
    command("/tag", "+TAG -TAG", Free, "add and remove tags", &[
        line(ALL, "+TAG -TAG", "add and remove tags"),
    ]),
    command("/fork", "[N]", Free, "fork from entry N or the end, and continue there", &[
        line(ALL, "[N]", "fork from entry N or the end, and continue there"),
    ]),
    command("/rewind", "[N]", Free, "go back to before entry N, or choose", &[
        line(ALL, "N", "go back to before entry N, in a fork"),
    ]),
    command("/compact", "", Free, "summarise older messages for the agent", &[
        line(CHAT, "", "summarise older messages for the agent; the log keeps all"),
        line(TEAM, "", "summarise what the agents' prompts leave out; the log keeps all"),
    ]),
    command("/retry", "", Free, "ask again for an answer that failed", &[
        line(CHAT, "", "ask again for an answer that failed"),
    ]),
    command("/undo", "", Free, "undo the last rename, tag or trash", &[
        line(ALL, "", "undo the last rename, tag or trash"),
    ]),
    command("/export", "[FORMAT] [FILE]", Export, "write this session to a file", &[
        line(ALL, "[FORMAT] [FILE]", "write this session to a file"),
    ]),
    command("/search", "WORDS", Free, "search all sessions", &[
        line(ALL, "WORDS", "search all sessions"),
    ]),
    command("/compare", "REF", Session, "diff this session with another", &[
        line(ALL, "REF", "diff this session with another"),
    ]),
    command("/tree", "", Free, "this session and its forks", &[
        line(ALL, "", "this session and its forks"),
    ]),
    command("/stats", "", Free, "messages and tokens, by day, agent and model", &[
        line(ALL, "", "messages and tokens of this project"),
    ]),
    command("/model", "[NAME]", Model, "use another model; alone: choose one", &[
        line(CHAT, "[NAME]", "use another model, or list the models"),
    ]),
    command("/agents", "[NAME]", Agent, "use another agent; alone: choose one", &[
        line(CHAT, "[NAME]", "use another agent, or list those that are ready"),
        line(OTHERS, "", "which agents are ready"),
    ]),
    command("/approve", "ask|edits|low|all|none", Approve, "tool policy of this session; revokes what was allowed", &[
        line(ALL, "MODE", "tool policy of this session: ask, edits, low, all or none; revokes what was allowed"),
    ]),
    command("/permissions", "[revoke N|all]", Free, "what tools may do without asking; revoke it", &[
        line(ALL, "[revoke N]", "what tools may do without asking; revoke one, or all"),
    ]),
    command("/team", "deploy FILE|list|map OLD=NEW", Team, "use a team, list teams, map a former member to a new one", &[
        line(ALL, "list", "list the teams"),
    ]),
    command("/members", "", Free, "who is here", &[line(TEAM, "", "who is here")]),
    command("/queue", "", Free, "who is still to speak, and your queued messages", &[line(TEAM, "", "who is still to speak")]),
    command("/task", "", Free, "what the team works on", &[line(TEAM, "", "what the team works on")]),
    command("/as", "[NAME]", Member, "speak as this person; alone: as whose turn it is", &[
        line(TEAM, "NAME", "speak as this person unless a message begins with [FROM: name]; without a name, as the one whose turn it is"),
    ]),
    command("/go", "", Free, "continue a pair's unfinished work", &[line(PAIR, "", "continue unfinished work")]),
    command("/info", "", Free, "which session this is", &[
        line(CHAT, "", "which session this is"),
        line(TEAM, "", "this session's id, title and message counts"),
        line(PAIR, "", "which session this is, and how far it is"),
    ]),
    command("/end", "", Free, "end the session and exit", &[line(ALL, "", "")]),
    command("/exit", "", Free, "leave", &[line(ALL, "", "exit (also /end, /quit, Ctrl+D)")]),
    command("/quit", "", Free, "leave", &[line(ALL, "", "")]),
];

/// Splits text that begins like a command, with a slash and a word, from the rest. A message may
/// begin with a path, which does not.
pub fn split(words: &str) -> Option<(&str, &str)> {
    let words = words.trim();
    let name = words.split_whitespace().next()?;
    let word = name.strip_prefix('/')?;
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word.then(|| (name, words[name.len()..].trim_start()))
}

/// Returns the command with the closest spelling. Short names must be closer: `/tmp` is not `/tag`.
pub fn nearest<'a>(name: &str, commands: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let most = if name.len() <= "/team".len() { 1 } else { 2 };
    let near = commands.map(|command| (strsim::damerau_levenshtein(&name, command), command));
    near.min()
        .filter(|(far, _)| *far <= most)
        .map(|(_, near)| near)
}
