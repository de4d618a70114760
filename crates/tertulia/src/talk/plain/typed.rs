//! Reads prompts from the keyboard.

use crate::signals::Signals;
use crate::talk::keyboard::Keyboard;
use crate::ui::Ui;

/// Input from the keyboard.
pub enum Typed {
    Words(String),
    End,
    Signal,
}

/// Shows `prompt` and reads the next message. A line that ends in `\` continues on the next.
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

/// Decodes a line without its line ending; the error is the offset of the first invalid byte.
fn text_of(line: Vec<u8>) -> Result<String, usize> {
    let mut text = String::from_utf8(line).map_err(|error| error.utf8_error().valid_up_to())?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}
