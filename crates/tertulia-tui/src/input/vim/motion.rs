//! Motions and text objects of vim mode, on plain text.

use std::ops::Range;

use super::super::text::{cluster_after, cluster_before, line_end, line_start, word_before};

/// Maximum count of a command.
pub(super) const MOST: usize = 9999;
/// Brackets that enclose a text object.
const BRACKETS: [(char, char); 4] = [('(', ')'), ('[', ']'), ('{', '}'), ('<', '>')];

/// What an operator takes besides the text between cursor and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing.
    Exclusive,
    /// The character at the target.
    Inclusive,
    /// The whole lines.
    Lines,
}

/// Returns the target of a motion, and its reach; `None` for a letter that is no motion.
pub(super) fn motion(
    text: &str,
    at: usize,
    letter: char,
    count: Option<usize>,
) -> Option<(usize, Reach)> {
    let (start, end) = (line_start(text, at), line_end(text, at));
    let times = count.unwrap_or(1);
    let repeat = |step: &dyn Fn(usize) -> usize| {
        let mut at = at;
        for _ in 0..times {
            let to = step(at);
            if to == at {
                break;
            }
            at = to;
        }
        at
    };
    Some(match letter {
        'h' => (
            repeat(&|at| cluster_before(text, at).max(start)),
            Reach::Exclusive,
        ),
        'l' | ' ' => (
            repeat(&|at| cluster_after(text, at).min(end)),
            Reach::Exclusive,
        ),
        'w' => (repeat(&|at| next_word(text, at)), Reach::Exclusive),
        'b' => (repeat(&|at| word_before(text, at)), Reach::Exclusive),
        'e' => (repeat(&|at| word_end(text, at)), Reach::Inclusive),
        '0' => (start, Reach::Exclusive),
        '^' => (first_letter(text, start), Reach::Exclusive),
        '$' => (cluster_before(text, end).max(start), Reach::Inclusive),
        'G' => (line_number(text, count), Reach::Lines),
        _ => return None,
    })
}

/// Target of `w` after an operator: the last word of a line ends with the line.
pub(super) fn words_end(text: &str, at: usize, times: usize) -> usize {
    let mut at = at;
    for left in (0..times).rev() {
        let to = next_word(text, at);
        let end = line_end(text, at);
        if left == 0 && end > at {
            return to.min(end);
        }
        at = to;
    }
    at
}

/// First character of a line that is not blank.
pub(super) fn first_letter(text: &str, start: usize) -> usize {
    let end = line_end(text, start);
    let blank = text[start..end].find(|letter: char| !letter.is_whitespace());
    blank.map_or(end, |blank| start + blank)
}

/// Start of a line by its number, counted from 1; of the last one without a number.
fn line_number(text: &str, number: Option<usize>) -> usize {
    let starts = text.match_indices('\n').map(|(feed, _)| feed + 1);
    let starts = std::iter::once(0).chain(starts);
    let numbered = number.and_then(|number| starts.clone().nth(number.saturating_sub(1)));
    numbered.or_else(|| starts.last()).unwrap_or(0)
}

/// A search for a character in the line: `f` and `t` after the cursor, `F` and `T` before it; `t` and
/// `T` stop beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Find {
    /// Letter of the command.
    pub how: char,
    /// The character.
    pub wanted: char,
}

impl Find {
    /// The same search in the other direction.
    pub(super) fn back(self) -> Find {
        let how = match self.how.is_lowercase() {
            true => self.how.to_ascii_uppercase(),
            false => self.how.to_ascii_lowercase(),
        };
        Find { how, ..self }
    }
}

/// Finds a character. Where the search is repeated, one beside the cursor does not count.
pub(super) fn find(
    text: &str,
    at: usize,
    Find { how, wanted }: Find,
    (times, again): (usize, bool),
) -> Option<usize> {
    let (start, end) = (line_start(text, at), line_end(text, at));
    let nth = times.saturating_sub(1);
    let is_it = |(_, letter): &(usize, char)| *letter == wanted;
    match how {
        'f' | 't' => {
            let mut from = cluster_after(text, at).min(end);
            if how == 't' && again {
                from = cluster_after(text, from).min(end);
            }
            let mut found = text[from..end].char_indices().filter(is_it);
            let place = from + found.nth(nth)?.0;
            Some(match how {
                't' => cluster_before(text, place),
                _ => place,
            })
        }
        _ => {
            let mut to = at;
            if how == 'T' && again {
                to = cluster_before(text, to).max(start);
            }
            let mut found = text[start..to].char_indices().rev().filter(is_it);
            let place = start + found.nth(nth)?.0;
            Some(match how {
                'T' => cluster_after(text, place),
                _ => place,
            })
        }
    }
}

/// Returns a text object: the word, or what quotes or brackets enclose; with `around`, also the blanks,
/// quotes or brackets around it.
pub(super) fn object(text: &str, at: usize, around: bool, letter: char) -> Option<Range<usize>> {
    match letter {
        'w' => word(text, at, around),
        '"' | '\'' | '`' => quoted(text, at, around, letter),
        'b' => enclosed(text, at, around, ('(', ')')),
        'B' => enclosed(text, at, around, ('{', '}')),
        _ => {
            let is_it = |(open, close): &&(char, char)| [*open, *close].contains(&letter);
            enclosed(text, at, around, *BRACKETS.iter().find(is_it)?)
        }
    }
}

fn word(text: &str, at: usize, around: bool) -> Option<Range<usize>> {
    let (start, end) = (line_start(text, at), line_end(text, at));
    let of = kind(text[at..end].chars().next()?);
    let before = |at: usize, of: u8| {
        let rest = text[start..at].trim_end_matches(|letter| kind(letter) == of);
        start + rest.len()
    };
    let after = |at: usize, of: u8| {
        let rest = text[at..end].trim_start_matches(|letter| kind(letter) == of);
        end - rest.len()
    };
    let (from, to) = (before(at, of), after(at, of));
    if !around {
        return Some(from..to);
    }
    match after(to, 0) {
        blank if blank > to => Some(from..blank),
        _ => Some(before(from, 0)..to),
    }
}

fn quoted(text: &str, at: usize, around: bool, quote: char) -> Option<Range<usize>> {
    let (start, end) = (line_start(text, at), line_end(text, at));
    let quotes = text[start..end].match_indices(quote);
    let places: Vec<usize> = quotes.map(|(place, _)| start + place).collect();
    let pair = places.chunks_exact(2).find(|pair| at <= pair[1])?;
    Some(inside(pair[0], pair[1], around))
}

fn enclosed(
    text: &str,
    at: usize,
    around: bool,
    (open, close): (char, char),
) -> Option<Range<usize>> {
    let mut depth = 0;
    let is_on_close = text[at..].starts_with(close);
    let upto = match text[at..].starts_with(open) {
        true => at + open.len_utf8(),
        false => at,
    };
    let from = text[..upto].char_indices().rev().find(|(_, letter)| {
        match *letter {
            letter if letter == close => depth += 1,
            letter if letter == open && depth == 0 => return true,
            letter if letter == open => depth -= 1,
            _ => {}
        }
        false
    })?;
    let (from, mut depth) = (from.0, 0);
    let search = match is_on_close {
        true => at,
        false => at.max(from + open.len_utf8()),
    };
    let to = text[search..].char_indices().find(|(_, letter)| {
        match *letter {
            letter if letter == open => depth += 1,
            letter if letter == close && depth == 0 => return true,
            letter if letter == close => depth -= 1,
            _ => {}
        }
        false
    })?;
    Some(inside(from, search + to.0, around))
}

/// Range between two characters of one byte, or with them.
fn inside(from: usize, to: usize, around: bool) -> Range<usize> {
    match around {
        true => from..to + 1,
        false => from + 1..to,
    }
}

/// Kind of a character: blank, part of a word, or sign.
fn kind(letter: char) -> u8 {
    match letter {
        letter if letter.is_whitespace() => 0,
        letter if letter.is_alphanumeric() || letter == '_' => 1,
        _ => 2,
    }
}

/// Start of the next word.
pub(super) fn next_word(text: &str, at: usize) -> usize {
    let mut letters = text[at..].char_indices().peekable();
    let Some((_, first)) = letters.peek().copied() else {
        return at;
    };
    while letters
        .next_if(|(_, letter)| kind(*letter) == kind(first))
        .is_some()
    {}
    while letters.next_if(|(_, letter)| kind(*letter) == 0).is_some() {}
    letters.peek().map_or(text.len(), |(offset, _)| at + offset)
}

/// Last character of this word, or of the next one if the cursor is there already.
pub(super) fn word_end(text: &str, at: usize) -> usize {
    let after = cluster_after(text, at);
    let mut letters = text[after..].char_indices().peekable();
    while letters.next_if(|(_, letter)| kind(*letter) == 0).is_some() {}
    let Some((_, first)) = letters.peek().copied() else {
        return cluster_before(text, text.len()).max(at);
    };
    while letters
        .next_if(|(_, letter)| kind(*letter) == kind(first))
        .is_some()
    {}
    let end = letters
        .peek()
        .map_or(text.len(), |(offset, _)| after + offset);
    cluster_before(text, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_words_quotes_and_brackets() {
        let text = "call(one, \"two three\", [4, (5)])\nnext";
        let check = |at: &str, around, letter, expected: Option<&str>| {
            let at = text.find(at).unwrap();
            let found = object(text, at, around, letter).map(|range| &text[range]);
            assert_eq!(found, expected, "{letter} at {at}");
        };
        check("one", false, 'w', Some("one"));
        check("two", true, 'w', Some("two "));
        check("three", false, '"', Some("two three"));
        check("call", true, '"', Some("\"two three\""));
        check("5", false, '(', Some("5"));
        check("4", true, ']', Some("[4, (5)]"));
        check("one", false, 'b', Some("one, \"two three\", [4, (5)]"));
        check("(one", false, ')', Some("one, \"two three\", [4, (5)]"));
        check(")]", true, ')', Some("(5)"));
        check("call", false, '{', None);
        check("next", false, '"', None);
        check("next", false, 'x', None);
        assert_eq!(object("", 0, false, 'w'), None);
    }

    #[test]
    fn letters_are_found_in_their_line() {
        let text = "a.b.c.d\n.e";
        let search = |at, how, times, again| {
            let search = Find { how, wanted: '.' };
            find(text, at, search, (times, again))
        };
        let check = |at, how, times, expected: Option<usize>| {
            assert_eq!(search(at, how, times, false), expected, "{how} from {at}");
        };
        check(0, 'f', 1, Some(1));
        check(0, 'f', 3, Some(5));
        check(0, 'f', 4, None);
        check(0, 't', 1, Some(0));
        assert_eq!(search(0, 't', 1, true), Some(2));
        check(6, 'F', 2, Some(3));
        check(6, 'T', 1, Some(6));
        assert_eq!(search(6, 'T', 1, true), Some(4));
        check(0, 'F', 1, None);
    }

    #[test]
    fn lines_have_numbers() {
        let text = "one\n  two\nthree";
        assert_eq!(motion(text, 5, 'G', None), Some((10, Reach::Lines)));
        assert_eq!(motion(text, 5, 'G', Some(2)), Some((4, Reach::Lines)));
        assert_eq!(motion(text, 5, 'G', Some(9)), Some((10, Reach::Lines)));
        assert_eq!(motion(text, 8, '^', None), Some((6, Reach::Exclusive)));
        assert_eq!(motion(text, 0, 'l', Some(9)), Some((3, Reach::Exclusive)));
        assert_eq!(motion(text, 0, 'z', None), None);
    }
}
