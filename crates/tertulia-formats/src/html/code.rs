//! Code blocks: escaped, and highlighted with a few classes that the style sheet colours.

use super::escape;

/// Longer code is not highlighted because of the cost.
const LONGEST_CODE: usize = 50_000;
/// Number of bytes that are highlighted on one page: about a second of work. The rest stays plain.
const BUDGET: usize = 1_000_000;

/// Renders the code blocks of a page.
#[derive(Debug)]
pub(super) struct Painter {
    budget: usize,
    /// Whether elements may have a `style` attribute.
    styles: bool,
}

impl Painter {
    pub(super) fn new() -> Painter {
        Painter {
            budget: BUDGET,
            styles: true,
        }
    }

    /// Creates a painter for a page whose policy allows no `style` attributes.
    pub(super) fn without_styles() -> Painter {
        Painter {
            styles: false,
            ..Painter::new()
        }
    }

    /// Returns true if elements may have a `style` attribute.
    pub(super) fn allows_styles(&self) -> bool {
        self.styles
    }

    /// Renders a block of code.
    pub(super) fn block(&mut self, language: &str, code: &str) -> String {
        let lines = self.highlighted(language, code.trim_end_matches('\n'));
        let label = match language {
            "" => String::new(),
            language => format!(" data-language=\"{}\"", escape(language)),
        };
        format!("<pre{label}><code>{lines}</code></pre>\n")
    }

    fn highlighted(&mut self, language: &str, code: &str) -> String {
        if ["diff", "patch", "udiff"].contains(&language) {
            return diff(code);
        }
        if code.len() > LONGEST_CODE.min(self.budget) {
            return escape(code);
        }
        match grammars::paint(language, code) {
            Some(painted) => {
                self.budget -= code.len();
                painted
            }
            None => escape(code),
        }
    }
}

/// Colours a diff by the signs at the beginning of its lines.
fn diff(code: &str) -> String {
    let line = |line: &str| {
        let class = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => "k",
            Some(b'+') => "ins",
            Some(b'-') => "del",
            Some(b'@') => "c",
            _ => return escape(line),
        };
        format!("<span class=\"{class}\">{}</span>", escape(line))
    };
    let lines: Vec<String> = code.split('\n').map(line).collect();
    lines.join("\n")
}

#[cfg(not(feature = "highlight"))]
mod grammars {
    /// Without grammars, nothing is highlighted.
    pub(super) fn paint(_language: &str, _code: &str) -> Option<String> {
        None
    }
}

#[cfg(feature = "highlight")]
mod grammars {
    use std::sync::LazyLock;

    use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

    use super::super::escape;

    /// A longer line (minified code, data) is not highlighted, nor is the rest of its block.
    const LONGEST_LINE: usize = 2_000;

    /// All grammars, unpacked at first use.
    static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);
    /// Scopes of the grammars that have a class.
    static CLASSES: LazyLock<Vec<(Scope, &str)>> = LazyLock::new(|| {
        let classes = [
            ("comment", "c"),
            ("keyword", "k"),
            ("storage", "k"),
            ("markup.heading", "k"),
            ("string", "s"),
            ("markup.raw", "s"),
            ("constant", "n"),
            ("support.constant", "n"),
            ("entity.name.function", "f"),
            ("support.function", "f"),
            ("variable.function", "f"),
            ("entity.name", "t"),
            ("entity.other.attribute-name", "t"),
            ("support.type", "t"),
            ("support.class", "t"),
        ];
        let parsed = classes.map(|(scope, class)| Some((Scope::new(scope).ok()?, class)));
        parsed.into_iter().flatten().collect()
    });

    /// Highlights code, or returns `None` if its language is unknown.
    pub(super) fn paint(language: &str, code: &str) -> Option<String> {
        let mut state = ParseState::new(grammar(language)?);
        let mut stack = ScopeStack::new();
        let mut spans = Spans::default();
        let mut rest = code;
        while let Some(line) = rest.split_inclusive('\n').next() {
            let found = match line.len() > LONGEST_LINE {
                true => None,
                false => state.parse_line(line, &GRAMMARS).ok(),
            };
            let Some(found) = found else {
                spans.push(None, rest);
                return Some(spans.finish());
            };
            let mut at = 0;
            for (place, change) in found {
                spans.push(class(&stack), line.get(at..place)?);
                stack.apply(&change).ok()?;
                at = place;
            }
            spans.push(class(&stack), line.get(at..)?);
            rest = &rest[line.len()..];
        }
        Some(spans.finish())
    }

    /// Returns the class of the innermost scope that has one.
    fn class(stack: &ScopeStack) -> Option<&'static str> {
        stack.as_slice().iter().rev().find_map(|scope| {
            let known = CLASSES.iter().find(|(known, _)| known.is_prefix_of(*scope));
            known.map(|(_, class)| *class)
        })
    }

    /// Text with classes; neighbours of one class share an element.
    #[derive(Default)]
    struct Spans {
        html: String,
        open: Option<&'static str>,
    }

    impl Spans {
        fn push(&mut self, class: Option<&'static str>, text: &str) {
            let is_blank = text.trim().is_empty();
            if class != self.open && !is_blank {
                self.close();
                if let Some(class) = class {
                    self.html.push_str(&format!("<span class=\"{class}\">"));
                }
                self.open = class;
            }
            self.html.push_str(&escape(text));
        }

        fn close(&mut self) {
            if self.open.take().is_some() {
                self.html.push_str("</span>");
            }
        }

        fn finish(mut self) -> String {
            self.close();
            self.html
        }
    }

    /// Returns the grammar of a language. Languages without a grammar use a similar one.
    fn grammar(language: &str) -> Option<&'static SyntaxReference> {
        let language = language.to_ascii_lowercase();
        let token = match language.as_str() {
            "" | "text" | "txt" | "plain" | "plaintext" | "output" => return None,
            "ts" | "tsx" | "typescript" | "jsx" | "mjs" | "cjs" | "json5" | "jsonc" => "js",
            "shell" | "console" | "zsh" | "fish" | "sh-session" | "dockerfile" => "bash",
            "kotlin" | "kt" | "swift" | "dart" => "java",
            "c++" | "cxx" | "hpp" => "cpp",
            "c#" | "csharp" => "cs",
            "golang" => "go",
            "toml" | "ini" | "cfg" | "conf" => "properties",
            "svg" | "xhtml" => "xml",
            "py3" | "python3" => "py",
            other => other,
        };
        GRAMMARS.find_syntax_by_token(token)
    }
}
