//! Cuts text into the folded tokens used by both index and queries.

use std::ops::Range;

use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_compatible, is_combining_mark,
};

/// Maximum length of a token in bytes; longer ones are truncated. The far end of a blob is not
/// worth indexing, and FTS5 has a limit of its own that `matches` would otherwise have to imitate.
const LONGEST_TOKEN: usize = 256;

/// Kind of token; only queries use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word between separators, or a single symbol.
    Word,
    /// Two adjacent characters of a run written without spaces.
    Pair,
    /// The last character of such a run.
    Last,
}

/// One token produced by `cut`.
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    pub(super) kind: Kind,
    /// Byte range in the source.
    pub(super) span: Range<usize>,
    /// End of its first character in the source for a pair; end of the token otherwise.
    pub(super) head: usize,
}

/// Cuts a text into tokens, in order.
pub(super) fn cut(text: &str, emit: impl FnMut(Token<'_>)) {
    let mut cutter = Cutter {
        emit,
        word: String::new(),
        span: 0..0,
        sealed: false,
        run: Vec::new(),
    };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_alphanumeric() {
            let start = at;
            let mut lower = true;
            while let Some(byte) = bytes.get(at).filter(|byte| byte.is_ascii_alphanumeric()) {
                lower &= !byte.is_ascii_uppercase();
                at += 1;
            }
            let alone = bytes.get(at).is_none_or(u8::is_ascii) && cutter.is_idle();
            if alone && lower && at - start <= LONGEST_TOKEN {
                // Fast path for the most common case: nothing to fold, so nothing to copy.
                (cutter.emit)(Token {
                    text: &text[start..at],
                    kind: Kind::Word,
                    span: start..at,
                    head: at,
                });
            } else {
                cutter.ascii(&text[start..at], start..at);
            }
        } else if byte.is_ascii() {
            if !cutter.is_idle() {
                cutter.gap();
            }
            at += 1;
        } else {
            let Some(c) = text[at..].chars().next() else {
                break;
            };
            let end = at + c.len_utf8();
            cutter.any(c, at..end);
            at = end;
        }
    }
    cutter.gap();
}

/// Treatment of a folded character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of a word.
    Letter,
    /// Part of a run written without spaces.
    Unit,
    /// A word by itself.
    Symbol,
    /// Ignored: accents, joiners.
    Skip,
    /// Between words.
    Gap,
}

/// The token being built: at most one of `word` and `run` is not empty.
struct Cutter<F> {
    emit: F,
    word: String,
    span: Range<usize>,
    /// True if the word accepts no more letters (a symbol).
    sealed: bool,
    run: Vec<(char, Range<usize>)>,
}

impl<F: FnMut(Token<'_>)> Cutter<F> {
    fn ascii(&mut self, letters: &str, span: Range<usize>) {
        self.open_word(span);
        let start = self.word.len();
        let room = LONGEST_TOKEN.saturating_sub(start).min(letters.len());
        self.word.push_str(&letters[..room]);
        self.word[start..].make_ascii_lowercase();
    }

    fn any(&mut self, c: char, span: Range<usize>) {
        // Fast path for common characters that fold to themselves.
        match c {
            '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' => return self.unit(c, span),
            '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' => return self.unit(c, span),
            '\u{E01}'..='\u{E32}' | '\u{E34}'..='\u{E3A}' | '\u{E40}'..='\u{E4E}' => {
                return self.unit(c, span);
            }
            'а'..='и' | 'к'..='я' => return self.letter(c, span),
            _ => {}
        }
        decompose_compatible(c, |part| match part {
            // Letters whose mark is part of the glyph have no decomposition; and the final sigma.
            'ß' | 'ẞ' => self.ascii("ss", span.clone()),
            'æ' | 'Æ' => self.ascii("ae", span.clone()),
            'œ' | 'Œ' => self.ascii("oe", span.clone()),
            'ø' | 'Ø' => self.ascii("o", span.clone()),
            'ł' | 'Ł' => self.ascii("l", span.clone()),
            'đ' | 'Đ' => self.ascii("d", span.clone()),
            'ı' => self.ascii("i", span.clone()),
            'ς' => self.folded('σ', span.clone()),
            _ => (part.to_lowercase()).for_each(|lower| self.folded(lower, span.clone())),
        });
    }

    fn folded(&mut self, c: char, span: Range<usize>) {
        match class(c) {
            Class::Letter => self.letter(c, span),
            Class::Unit => self.unit(c, span),
            Class::Symbol => {
                self.gap();
                self.open_word(span);
                code(c, &mut self.word);
                self.sealed = true;
            }
            Class::Skip => {
                if let Some((_, last)) = self.run.last_mut() {
                    last.end = span.end;
                } else {
                    self.span.end = span.end;
                }
            }
            Class::Gap => self.gap(),
        }
    }

    fn letter(&mut self, c: char, span: Range<usize>) {
        self.open_word(span);
        if self.word.len() + 2 * char::MAX_LEN_UTF8 <= LONGEST_TOKEN {
            code(c, &mut self.word);
        }
    }

    fn is_idle(&self) -> bool {
        self.word.is_empty() && self.run.is_empty()
    }

    fn open_word(&mut self, span: Range<usize>) {
        if self.sealed || !self.run.is_empty() {
            self.gap();
        }
        if self.word.is_empty() {
            self.span.start = span.start;
        }
        self.span.end = span.end;
    }

    fn unit(&mut self, c: char, span: Range<usize>) {
        if !self.word.is_empty() {
            self.gap();
        }
        // The text may be decomposed (file names of some systems): composes kana with their sound
        // marks, and the letters of a Hangul syllable.
        if let Some((last, at)) = self.run.last_mut()
            && let Some(whole) = compose(*last, c)
        {
            *last = whole;
            at.end = span.end;
            return;
        }
        self.run.push((c, span));
    }

    /// Emits the token being built, if any.
    fn gap(&mut self) {
        if !self.word.is_empty() {
            (self.emit)(Token {
                text: &self.word,
                kind: Kind::Word,
                span: self.span.clone(),
                head: self.span.end,
            });
            self.word.clear();
            self.sealed = false;
        }
        for (at, (c, span)) in self.run.iter().enumerate() {
            self.word.clear();
            code(*c, &mut self.word);
            let next = self.run.get(at + 1);
            if let Some((next, _)) = next {
                code(*next, &mut self.word);
            }
            (self.emit)(Token {
                text: &self.word,
                kind: next.map_or(Kind::Last, |_| Kind::Pair),
                span: span.start..next.map_or(span.end, |(_, next)| next.end),
                head: span.end,
            });
        }
        if !self.run.is_empty() {
            self.run.clear();
            self.word.clear();
        }
    }
}

/// Writes a folded character in the form for FTS5: ASCII unchanged, anything else as a private-use
/// character (a category that unicode61 always keeps and never folds), preceded by another one for
/// the plane if that is not the first. Private-use characters of the text are gaps, so none can
/// collide.
fn code(c: char, out: &mut String) {
    let number = u32::from(c);
    if number < 0x80 {
        return out.push(c);
    }
    if number > 0xFFFF {
        out.extend(char::from_u32(0xE000 + (number >> 16)));
    }
    out.extend(char::from_u32(0xF0000 + (number & 0xFFFF)));
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() {
            Class::Letter
        } else {
            Class::Gap
        };
    }
    let mark = is_combining_mark(c);
    match c {
        _ if is_spaceless(c) && (mark || c.is_alphanumeric()) => Class::Unit,
        // Skin tones: an emoji is found with any of them.
        '\u{1F3FB}'..='\u{1F3FF}' => Class::Skip,
        '\u{231A}' | '\u{231B}' | '\u{23E9}'..='\u{23FA}' | '\u{2600}'..='\u{27BF}' => {
            Class::Symbol
        }
        '\u{2B50}' | '\u{2B55}' | '\u{1F000}'..='\u{1FAFF}' => Class::Symbol,
        // Soft hyphen, joiners, direction marks, byte order mark.
        '\u{AD}' | '\u{200C}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' => Class::Skip,
        _ if mark && is_accent(c) => Class::Skip,
        _ if mark || c.is_alphanumeric() => Class::Letter,
        _ => Class::Gap,
    }
}

/// Returns true for marks that only modify a letter: by combining class, so that the vowel signs of
/// Indic scripts and Tibetan, which act as letters, stay.
fn is_accent(mark: char) -> bool {
    matches!(canonical_combining_class(mark), 1 | 10..=36 | 200..=240)
        || matches!(mark, '\u{34F}' | '\u{20DD}'..='\u{20E4}' | '\u{FE00}'..='\u{FE0F}')
        || matches!(mark, '\u{E0100}'..='\u{E01EF}')
}

/// Blocks of scripts written without spaces (including their signs, which `class` handles).
fn is_spaceless(c: char) -> bool {
    matches!(c,
        // Thai and Lao; Myanmar; Hangul letters; Khmer.
        '\u{E01}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1100}'..='\u{11FF}'
        | '\u{1780}'..='\u{17FF}'
        // Radicals, iteration marks, kana, Bopomofo, Hangul letters, Han.
        | '\u{2E80}'..='\u{2FDF}' | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}'
        | '\u{3031}'..='\u{3035}' | '\u{3038}'..='\u{303C}' | '\u{3041}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        // More Hangul letters and Myanmar, Hangul syllables and letters, compatibility Han.
        | '\u{A960}'..='\u{A97F}' | '\u{A9E0}'..='\u{A9FF}' | '\u{AA60}'..='\u{AA7F}'
        | '\u{AC00}'..='\u{D7FF}' | '\u{F900}'..='\u{FAFF}'
        // Kana and Han beyond the first plane.
        | '\u{1AFF0}'..='\u{1B16F}' | '\u{20000}'..='\u{3FFFD}')
}
