//! A talk on a terminal, line by line: what is typed, and which of it is a command.

use super::keyboard::Keyboard;
use crate::signals::Signals;
use crate::ui::Ui;

/// What the keyboard gave.
pub enum Typed {
    Words(String),
    End,
    Signal,
}

/// The next words, after a prompt. A line that ends in `\` goes on in the next.
pub async fn next_words(
    prompt: &str,
    keyboard: &mut Keyboard,
    signals: &mut Signals,
    ui: &mut Ui,
) -> Typed {
    let mut words = String::new();
    loop {
        ui.data(if words.is_empty() { prompt } else { "...> " });
        let line = tokio::select! {
            line = keyboard.line() => line,
            () = signals.next() => {
                ui.data("\n");
                return Typed::Signal;
            }
        };
        match line {
            None => {
                ui.data("\n");
                return if words.is_empty() {
                    Typed::End
                } else {
                    Typed::Words(words)
                };
            }
            Some(line) => match text_of(line) {
                Err(at) => ui.warn(&format!(
                    "that line is not UTF-8 (at byte {at}) and was not taken"
                )),
                Ok(line) => match line.strip_suffix('\\') {
                    Some(line) => {
                        words.push_str(line);
                        words.push('\n');
                    }
                    None => {
                        words.push_str(&line);
                        return Typed::Words(words);
                    }
                },
            },
        }
    }
}

/// A line as text, without its end.
fn text_of(line: Vec<u8>) -> Result<String, usize> {
    let mut text = String::from_utf8(line).map_err(|error| error.utf8_error().valid_up_to())?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

/// Whether it looks like a command: a slash and a word, alone or like one that there is. A sentence may
/// begin with a path.
pub fn is_command(words: &str, commands: &[&str]) -> bool {
    let first = words.split_whitespace().next().unwrap_or_default();
    let is_word = first
        .strip_prefix('/')
        .is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic()));
    is_word && (first == words || nearest(first, commands).is_some())
}

/// Says that there is no such command, and which there are.
pub fn unknown(words: &str, commands: &[&str], ui: &mut Ui) {
    let name = words.split_whitespace().next().unwrap_or(words);
    let meant = nearest(name, commands).map(|near| format!("; did you mean {near}?"));
    ui.warn(&format!(
        "there is no command {name}{} There are {}",
        meant.unwrap_or_else(|| ".".to_owned()),
        commands.join(" ")
    ));
}

/// The command that is spelt almost like this.
fn nearest<'a>(word: &str, commands: &[&'a str]) -> Option<&'a str> {
    let near = commands
        .iter()
        .map(|command| (strsim::damerau_levenshtein(word, command), *command));
    near.min()
        .filter(|(far, _)| *far <= 2)
        .map(|(_, near)| near)
}
