//! Syntax highlighting. Highlighted lines are kept when more code is appended.

use std::sync::LazyLock;

use ratatui::style::Style;
use syntect::highlighting::{
    Color, HighlightState, Highlighter, RangedHighlightIterator, StyleModifier, Theme as Scopes,
    ThemeItem,
};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use super::theme::{Palette, Theme, Token};

/// Longer code is not highlighted because of the cost.
pub const LONGEST_CODE: usize = 50_000;
/// A longer line (minified code, data) ends highlighting for the rest of the code.
const LONGEST_LINE: usize = 2_000;

/// All grammars, unpacked at first use.
static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);
/// Maps the scopes of a grammar to tokens.
static SCOPES: LazyLock<Scopes> = LazyLock::new(scopes);
static HIGHLIGHTER: LazyLock<Highlighter<'static>> = LazyLock::new(|| Highlighter::new(&SCOPES));

const TOKENS: [(Token, &str); 6] = [
    (
        Token::Comment,
        "comment, punctuation.definition.comment, meta.diff.header",
    ),
    (
        Token::Keyword,
        "keyword, storage, markup.heading, entity.name.section",
    ),
    (Token::Text, "string, markup.inserted, markup.raw"),
    (Token::Constant, "constant, support.constant"),
    (
        Token::Function,
        "entity.name.function, support.function, variable.function",
    ),
    (
        Token::Type,
        "entity.name.type, entity.name.class, entity.name.struct, entity.name.enum, entity.name.tag, \
         entity.other.attribute-name, support.type, support.class, meta.mapping.key string",
    ),
];

/// Encodes the number of the token in the red channel; it is mapped to a style of the theme later.
fn scopes() -> Scopes {
    let item = |(number, (_, scopes)): (usize, &(Token, &str))| {
        let number = u8::try_from(number + 1).ok()?;
        Some(ThemeItem {
            scope: scopes.parse().ok()?,
            style: StyleModifier {
                foreground: Some(marked(number)),
                ..StyleModifier::default()
            },
        })
    };
    let mut scopes = Scopes {
        scopes: TOKENS.iter().enumerate().filter_map(item).collect(),
        ..Scopes::default()
    };
    scopes.settings.foreground = Some(marked(0));
    scopes
}

fn marked(number: u8) -> Color {
    Color {
        r: number,
        g: 0,
        b: 0,
        a: 0,
    }
}

/// Grammar for the language name of a code block.
fn grammar(language: &str) -> Option<&'static SyntaxReference> {
    // Languages without a grammar of their own use a similar one.
    let known = match language.to_ascii_lowercase().as_str() {
        "" | "text" | "txt" | "plain" | "plaintext" => return None,
        "ts" | "tsx" | "typescript" | "jsx" | "mjs" | "cjs" | "json5" | "jsonc" => "js".to_owned(),
        "shell" | "console" | "zsh" | "fish" | "sh-session" | "dockerfile" => "bash".to_owned(),
        "kotlin" | "kt" | "swift" | "dart" => "java".to_owned(),
        "c++" | "cxx" | "hpp" => "cpp".to_owned(),
        "c#" | "csharp" => "cs".to_owned(),
        "golang" => "go".to_owned(),
        "toml" | "ini" | "cfg" | "conf" => "properties".to_owned(),
        "svg" | "xhtml" => "xml".to_owned(),
        "py3" | "python3" => "py".to_owned(),
        other => other.to_owned(),
    };
    GRAMMARS.find_syntax_by_token(&known)
}

/// Styles of one line, each with the number of bytes it covers. The rest has no style.
pub type Runs = Vec<(Style, usize)>;

/// Highlighted code blocks of one text, in order.
#[derive(Debug, Default)]
pub struct Highlights {
    blocks: Vec<Coloured>,
    next: usize,
}

impl Highlights {
    /// Starts again from the first code block.
    pub fn begin(&mut self) {
        self.next = 0;
    }

    /// Styles of the lines of the next code block; empty if it is not highlighted.
    pub fn code(&mut self, language: &str, code: &str, theme: Theme) -> &[Runs] {
        let at = self.next;
        self.next += 1;
        let known = self
            .blocks
            .get(at)
            .is_some_and(|block| block.language == language && block.theme == theme);
        if !known {
            self.blocks.truncate(at);
            self.blocks.push(Coloured::new(language, theme));
        }
        self.blocks[at].upto(code)
    }

    /// Total number of bytes highlighted, for tests.
    #[cfg(test)]
    pub fn work(&self) -> usize {
        self.blocks.iter().map(|block| block.work).sum()
    }
}

/// One code block, highlighted so far.
struct Coloured {
    language: String,
    theme: Theme,
    /// Complete lines, whose highlighting is final.
    done: String,
    lines: Vec<Runs>,
    /// Number of final lines: the last may still grow.
    settled: usize,
    painter: Painter,
    #[cfg(test)]
    work: usize,
}

impl std::fmt::Debug for Coloured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coloured")
            .field("language", &self.language)
            .field("done", &self.done.len())
            .finish_non_exhaustive()
    }
}

/// Highlights the next line.
#[derive(Clone)]
enum Painter {
    /// No highlighting.
    None,
    /// By the leading sign of a diff.
    Diff,
    /// By a grammar, with its state.
    Grammar(Box<(ParseState, HighlightState)>),
}

impl Painter {
    fn new(language: &str, theme: Theme) -> Painter {
        if theme.palette == Palette::Plain {
            return Painter::None;
        }
        if ["diff", "patch", "udiff"].contains(&language) {
            return Painter::Diff;
        }
        match grammar(language) {
            None => Painter::None,
            Some(grammar) => Painter::Grammar(Box::new((
                ParseState::new(grammar),
                HighlightState::new(&HIGHLIGHTER, ScopeStack::new()),
            ))),
        }
    }

    /// Highlights a line, including its line break.
    fn line(&mut self, line: &str, theme: Theme) -> Runs {
        match self {
            Painter::None => Runs::new(),
            Painter::Diff => diff(line, theme)
                .map(|style| (style, line.len()))
                .into_iter()
                .collect(),
            Painter::Grammar(_) if line.len() > LONGEST_LINE => {
                *self = Painter::None;
                Runs::new()
            }
            Painter::Grammar(state) => {
                let (parse, highlight) = state.as_mut();
                let Ok(found) = parse.parse_line(line, &GRAMMARS) else {
                    *self = Painter::None;
                    return Runs::new();
                };
                RangedHighlightIterator::new(highlight, &found, line, &HIGHLIGHTER)
                    .map(|(style, text, _)| (painted(style.foreground, theme), text.len()))
                    .collect()
            }
        }
    }
}

fn painted(colour: Color, theme: Theme) -> Style {
    match usize::from(colour.r).checked_sub(1) {
        Some(number) if number < TOKENS.len() => theme.token(TOKENS[number].0),
        _ => theme.text(),
    }
}

/// Style of a line of a diff.
pub fn diff(line: &str, theme: Theme) -> Option<Style> {
    if line.starts_with("+++") || line.starts_with("---") || line.starts_with("diff ") {
        return Some(theme.strong());
    }
    match line.as_bytes().first() {
        Some(b'+') => Some(theme.added()),
        Some(b'-') => Some(theme.removed()),
        Some(b'@') => Some(theme.dim()),
        _ => None,
    }
}

impl Coloured {
    fn new(language: &str, theme: Theme) -> Coloured {
        Coloured {
            language: language.to_owned(),
            theme,
            done: String::new(),
            lines: Vec::new(),
            settled: 0,
            painter: Painter::new(language, theme),
            #[cfg(test)]
            work: 0,
        }
    }

    /// Highlights code that usually starts with `done`.
    fn upto(&mut self, code: &str) -> &[Runs] {
        if matches!(self.painter, Painter::None) && self.done.is_empty() {
            return &[];
        }
        if code.len() > LONGEST_CODE {
            return &[];
        }
        if !code.starts_with(&self.done) {
            *self = Coloured::new(&self.language, self.theme);
        }
        self.lines.truncate(self.settled);
        for line in code[self.done.len()..].split_inclusive('\n') {
            #[cfg(test)]
            {
                self.work += line.len();
            }
            if line.ends_with('\n') {
                let runs = self.painter.line(line, self.theme);
                self.lines.push(runs);
                self.settled = self.lines.len();
                self.done.push_str(line);
            } else {
                let runs = self.painter.clone().line(line, self.theme);
                self.lines.push(runs);
            }
        }
        &self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DARK: Theme = Theme::new(Palette::Dark);

    fn fresh(language: &str, code: &str) -> Vec<Runs> {
        Highlights::default().code(language, code, DARK).to_vec()
    }

    #[test]
    fn a_language_has_its_colours() {
        let runs = fresh("rust", "// why\nlet a = \"b\";\n");
        assert_eq!(runs.len(), 2);
        assert!(runs[0].iter().all(|(style, _)| *style == DARK.dim()));
        let keyword = DARK.token(Token::Keyword);
        assert_eq!(runs[1][0], (keyword, 3));
        assert!(
            runs[1]
                .iter()
                .any(|(style, _)| *style == DARK.token(Token::Text))
        );
        for known in [
            "typescript",
            "toml",
            "sh",
            "python",
            "C++",
            "json",
            "yaml",
            "html",
        ] {
            assert!(grammar(known).is_some(), "{known}");
        }
    }

    #[test]
    fn runs_cover_their_lines() {
        let code = "fn main() {\n    println!(\"{}\", 漢);\n}";
        for (line, runs) in code.split_inclusive('\n').zip(fresh("rust", code)) {
            assert_eq!(
                runs.iter().map(|(_, length)| length).sum::<usize>(),
                line.len()
            );
        }
    }

    #[test]
    fn what_is_not_known_or_too_long_has_none() {
        assert!(fresh("klingon", "let a = 1;").is_empty());
        assert!(fresh("rust", &"let a = 1;\n".repeat(5_000)).is_empty());
        let long = format!(
            "let a = 1;\nlet b = \"{}\";\nlet c = 2;\n",
            "x".repeat(LONGEST_LINE)
        );
        let runs = fresh("rust", &long);
        assert!(!runs[0].is_empty() && runs[1].is_empty() && runs[2].is_empty());
        let plain = Theme::new(Palette::Plain);
        assert!(
            Highlights::default()
                .code("rust", "let a = 1;", plain)
                .is_empty()
        );
    }

    #[test]
    fn growing_code_is_coloured_once() {
        let code = "let a = 1; // one\n/* two\nthree */ let b = 2;\n".repeat(20);
        let mut growing = Highlights::default();
        for end in 1..=code.len() {
            growing.begin();
            growing.code("rust", &code[..end], DARK);
        }
        growing.begin();
        assert_eq!(growing.code("rust", &code, DARK), fresh("rust", &code));
        // Only the last line is highlighted again while it grows.
        let longest = code.lines().map(str::len).max().unwrap_or(0) + 1;
        assert!(growing.work() <= code.len() * longest, "{}", growing.work());
        growing.begin();
        assert_eq!(growing.code("rust", "other", DARK), fresh("rust", "other"));
    }

    #[test]
    fn a_diff_is_coloured_by_its_signs() {
        let runs = fresh("diff", "@@ -1 +1 @@\n-old\n+new\n same\n");
        assert_eq!(runs[1], [(DARK.removed(), 5)]);
        assert_eq!(runs[2], [(DARK.added(), 5)]);
        assert!(runs[3].is_empty());
    }
}
