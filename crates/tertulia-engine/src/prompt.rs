//! [`Prompt`]: a message of the user with the files attached to it, and the `@path` in its text that
//! name them.

use tertulia_agents::tool::Toolbox;
use tertulia_core::entry::{Attachment, MESSAGE_LIMIT};
use tertulia_core::team::code::code;

use crate::error::{ErrorBody, ErrorKind};

/// Maximum number of files attached to one message.
const MOST_FILES: usize = 20;
/// Characters after which a word may begin.
const OPENING: &[char] = &['(', '[', '{', '"', '\''];
/// Characters after a path that are not a part of it.
const CLOSING: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\''];

/// A message of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Number of bytes at the beginning of the text in which `@path` attaches a file: what the user
    /// wrote, and not what came through a pipe.
    pub typed: usize,
    /// Attached files.
    pub attached: Vec<Attachment>,
    /// Why names that look like files are not attached, for the user.
    pub unattached: Vec<String>,
    /// Id that the client gave the message.
    pub client_id: Option<String>,
}

impl Prompt {
    /// Creates a message in which `@path` attaches files.
    pub fn typed(text: impl Into<String>) -> Prompt {
        let text = text.into();
        Prompt {
            typed: text.len(),
            ..Prompt::from(text)
        }
    }

    /// Returns the message with an id of the client.
    pub fn sent_as(self, client_id: Option<String>) -> Prompt {
        Prompt { client_id, ..self }
    }

    /// Reads the files that the text names. Names in `members` are no files. A file that cannot be
    /// attached is an error, unless `by_path`: an agent that runs as a program gets the path anyway.
    /// Blocks.
    pub fn read_files(
        mut self,
        tools: &Toolbox,
        members: &[String],
        by_path: bool,
    ) -> Result<Prompt, ErrorBody> {
        let typed = self.typed.min(self.text.len());
        let is_member = |name: &str| {
            let name = name.to_lowercase();
            members.iter().any(|member| member.to_lowercase() == name)
        };
        for names in mentions(&self.text[..self.text.floor_char_boundary(typed)]) {
            if names.iter().any(|name| is_member(name)) {
                continue;
            }
            let found = names.iter().find_map(|name| tools.attach(name).transpose());
            let file = match found {
                Some(Ok(file)) => file,
                Some(Err(why)) if !by_path => {
                    let hint = "leave it out, or write `@path` in backticks to send it as text";
                    let why = format!("not sent: {why}");
                    return Err(ErrorBody::new(ErrorKind::Usage, why).hint(hint));
                }
                Some(Err(_)) => continue,
                None => {
                    self.unattached.extend(unattached(&names, tools));
                    continue;
                }
            };
            if !self.attached.iter().any(|known| known.path == file.path) {
                self.attached.push(file);
            }
        }
        let size: usize = self.attached.iter().map(|file| file.content.len()).sum();
        let wrong = match self.attached.len() {
            count if count > MOST_FILES => format!("{count} files, and at most {MOST_FILES}"),
            _ if size > MESSAGE_LIMIT => format!("{size} bytes, and at most {MESSAGE_LIMIT}"),
            _ => return Ok(self),
        };
        let why = format!("not sent: the message names {wrong} can be attached");
        Err(ErrorBody::new(ErrorKind::Usage, why).hint("send them in several messages"))
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Prompt {
        Prompt {
            text,
            ..Prompt::default()
        }
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Prompt {
        Prompt::from(text.to_owned())
    }
}

/// Says why a name is not attached, if it looks like a file: a person may be meant, too.
fn unattached(names: &[String], tools: &Toolbox) -> Option<String> {
    let name = names.last()?;
    if names.iter().any(|name| tools.is_folder(name)) {
        return Some(format!(
            "@{name} is a folder, sent as text; name a file in it"
        ));
    }
    let is_path = name.contains('/') || name.trim_matches('.').contains('.');
    is_path.then(|| format!("@{name}: no such file, sent as text"))
}

/// Returns the names that follow an `@` at the beginning of a word: of each all readings, as written
/// and without the punctuation after it. Code has none.
fn mentions(text: &str) -> Vec<Vec<String>> {
    if !text.contains('@') {
        return Vec::new();
    }
    let code = code(text);
    let mut found = Vec::new();
    let mut before = None;
    let mut rest = 0;
    for (at, letter) in text.char_indices() {
        let begins =
            before.is_none_or(|before: char| before.is_whitespace() || OPENING.contains(&before));
        before = Some(letter);
        if letter != '@' || !begins || at < rest {
            continue;
        }
        if code.iter().any(|code| code.range.contains(&at)) {
            continue;
        }
        let (names, length) = names(&text[at + 1..]);
        rest = at + 1 + length;
        if !names.is_empty() {
            found.push(names);
        }
    }
    found
}

/// Returns the readings of the name with which a text begins, and its length.
fn names(text: &str) -> (Vec<String>, usize) {
    if let Some((quoted, _)) = text.strip_prefix('"').and_then(|text| text.split_once('"')) {
        let names = Some(quoted).filter(|name| !name.is_empty() && !name.contains('\n'));
        return (
            names.map(str::to_owned).into_iter().collect(),
            quoted.len() + 2,
        );
    }
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    let bare = word.trim_end_matches(CLOSING);
    let mut names = vec![word.to_owned()];
    names.extend((bare != word).then(|| bare.to_owned()));
    names.retain(|name| !name.is_empty());
    (names, word.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia_agents::tool::ToolLimits;

    #[test]
    fn a_word_that_begins_with_the_sign_is_a_name() {
        let check = |text: &str, expected: &[&[&str]]| {
            assert_eq!(mentions(text), expected, "{text}");
        };
        check("see @src/main.rs now", &[&["src/main.rs"]]);
        check("@a (@b), @c.", &[&["a"], &["b),", "b"], &["c.", "c"]]);
        check(
            "@\"my file.txt\" and @'x'",
            &[&["my file.txt"], &["'x'", "'x"]],
        );
        check("見て @漢字.txt", &[&["漢字.txt"]]);
        for text in [
            "ana@example.com",
            "@",
            "a @ b",
            "@\"\"",
            "",
            "`@a`",
            "```\n@a\n```",
        ] {
            check(text, &[]);
        }
    }

    fn work() -> (tempfile::TempDir, Toolbox) {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [("a.rs", "fn a() {}\n"), ("b c.md", "# b"), ("ada", "x")] {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        std::fs::write(dir.path().join("bin"), [0, 1]).unwrap();
        let tools = Toolbox::new(dir.path().into(), ToolLimits::default(), Vec::new()).unwrap();
        (dir, tools)
    }

    fn paths(prompt: Prompt, members: &[&str]) -> Result<Vec<String>, ErrorBody> {
        let (_dir, tools) = work();
        let members: Vec<String> = members.iter().map(|name| (*name).to_owned()).collect();
        let read = prompt.read_files(&tools, &members, false)?;
        Ok(read.attached.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn files_are_attached_once_and_other_names_stay_text() {
        let text = "see @a.rs, @\"b c.md\", @./a.rs and @param, mail me@a.rs";
        let attached = paths(Prompt::typed(text), &[]).unwrap();
        assert_eq!(attached, ["a.rs", "b c.md"]);
    }

    #[test]
    fn names_that_look_like_files_are_not_passed_over_in_silence() {
        let (dir, tools) = work();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        let text = "see @nofile.txt, @src and @lib/x; ask @ben about @param. `@no.rs`";
        let read = Prompt::typed(text).read_files(&tools, &[], false).unwrap();
        let expected = [
            "@nofile.txt: no such file, sent as text",
            "@src is a folder, sent as text; name a file in it",
            "@lib/x: no such file, sent as text",
        ];
        assert_eq!(read.unattached, expected);
    }

    #[test]
    fn what_came_through_a_pipe_and_members_attach_nothing() {
        assert!(paths(Prompt::from("@a.rs"), &[]).unwrap().is_empty());
        let piped = Prompt {
            typed: "@a.rs".len(),
            ..Prompt::from("@a.rs\n\n@\"b c.md\"")
        };
        assert_eq!(paths(piped, &[]).unwrap(), ["a.rs"]);
        let team = Prompt::typed("@ada, see @a.rs");
        assert_eq!(paths(team, &["Ada"]).unwrap(), ["a.rs"]);
    }

    #[test]
    fn a_file_that_cannot_be_attached_is_an_error() {
        let error = paths(Prompt::typed("see @a.rs and @bin"), &[]).unwrap_err();
        assert!(
            error.message.contains("'bin' is not a text file"),
            "{error}"
        );
        assert!(paths(Prompt::typed("see `@bin`"), &[]).unwrap().is_empty());
    }
}
