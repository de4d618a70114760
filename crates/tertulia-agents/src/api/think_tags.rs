//! Separates the thoughts that a model writes into its text, between `<think>` tags, from the answer.
//! Servers without a parser for a model's reasoning pass them on like this. No I/O.

use std::mem;

/// Tags that models use, opening and closing.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Thought(String),
}

/// Reader of one answer. Thoughts come only before everything else: later tags are text, since an
/// answer may be about them.
#[derive(Debug)]
pub(super) enum ThinkTags {
    /// Nothing but the possible beginning of a tag has arrived.
    Start(String),
    /// Inside a tag with this end; holds the possible beginning of the end.
    Inside(&'static str, String),
    /// After the tag, before any text.
    Between,
    /// In the text of the answer.
    Text,
}

impl Default for ThinkTags {
    fn default() -> ThinkTags {
        ThinkTags::Start(String::new())
    }
}

impl ThinkTags {
    /// Reads more of the answer. Returns what is certain by now.
    pub(super) fn push(&mut self, more: String) -> Vec<Piece> {
        match mem::replace(self, ThinkTags::Text) {
            ThinkTags::Text => vec![Piece::Text(more)],
            ThinkTags::Between => self.text(&more),
            ThinkTags::Start(held) => self.start(held + &more),
            ThinkTags::Inside(end, held) => self.inside(end, held + &more),
        }
    }

    /// Returns what was held back at the end of the answer.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        match mem::replace(self, ThinkTags::Text) {
            ThinkTags::Start(held) if !held.is_empty() => Some(Piece::Text(held)),
            ThinkTags::Inside(_, held) if !held.is_empty() => Some(Piece::Thought(held)),
            _ => None,
        }
    }

    fn start(&mut self, text: String) -> Vec<Piece> {
        let begun = text.trim_start();
        for (tag, end) in TAGS {
            if let Some(inside) = begun.strip_prefix(tag) {
                return self.inside(end, inside.to_owned());
            }
        }
        match TAGS.iter().any(|(tag, _)| tag.starts_with(begun)) {
            true => {
                *self = ThinkTags::Start(text);
                Vec::new()
            }
            false => vec![Piece::Text(text)],
        }
    }

    fn inside(&mut self, end: &'static str, text: String) -> Vec<Piece> {
        if let Some((thought, rest)) = text.split_once(end) {
            let mut pieces = vec![Piece::Thought(thought.to_owned())];
            pieces.extend(self.text(rest));
            return pieces;
        }
        let held = (1..end.len())
            .rev()
            .find(|length| text.ends_with(&end[..*length]))
            .unwrap_or(0);
        let (thought, held) = text.split_at(text.len() - held);
        *self = ThinkTags::Inside(end, held.to_owned());
        vec![Piece::Thought(thought.to_owned())]
    }

    /// The blank lines after the thoughts belong to neither.
    fn text(&mut self, text: &str) -> Vec<Piece> {
        let text = text.trim_start();
        match text.is_empty() {
            true => {
                *self = ThinkTags::Between;
                Vec::new()
            }
            false => {
                *self = ThinkTags::Text;
                vec![Piece::Text(text.to_owned())]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns thoughts and text of an answer that arrives in pieces of `size` characters.
    fn read(answer: &str, size: usize) -> (String, String) {
        let mut tags = ThinkTags::default();
        let chars: Vec<char> = answer.chars().collect();
        let mut pieces = Vec::new();
        for chunk in chars.chunks(size) {
            pieces.extend(tags.push(chunk.iter().collect()));
        }
        pieces.extend(tags.finish());
        let (mut thoughts, mut text) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Thought(more) => thoughts.push_str(&more),
                Piece::Text(more) => text.push_str(&more),
            }
        }
        (thoughts, text)
    }

    #[test]
    fn thoughts_at_the_beginning_are_no_text() {
        for (answer, thoughts, text) in [
            ("<think>a < b</think>\n\nyes", "a < b", "yes"),
            (
                "\n<think>\nhm\n</think>\nyes </think>",
                "\nhm\n",
                "yes </think>",
            ),
            ("<thinking>hm</thinking>yes", "hm", "yes"),
            ("<think>é 日本</thi", "é 日本</thi", ""),
            ("<think></think>yes", "", "yes"),
            ("write <think>x</think>", "", "write <think>x</think>"),
            ("<thin", "", "<thin"),
            ("<b>x</b>", "", "<b>x</b>"),
            ("  yes", "", "  yes"),
        ] {
            for size in [1, 2, 7, 1000] {
                let expected = (thoughts.to_owned(), text.to_owned());
                assert_eq!(read(answer, size), expected, "{answer:?} by {size}");
            }
        }
    }
}
