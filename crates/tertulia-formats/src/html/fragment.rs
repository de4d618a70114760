//! Parts of a session for the web page: one element per entry, with CSS classes only. The page's
//! policy allows neither scripts nor `style` attributes, and nothing here makes any.

use jiff::tz::TimeZone;
use tertulia_core::entry::{Entry, Kind};
use tertulia_core::session::Log;
use tertulia_core::team::markers;

use super::code::Painter;
use super::markdown::{self, Lines};
use super::{Clock, entries};

/// An entry as an element of the web page, with the entries that are shown in it: reasoning, results
/// of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Sequence number of the entry.
    pub seq: u64,
    /// Largest sequence number of the entries that are shown in it.
    pub last: u64,
    /// The element: `<article class="entry …" id="eSEQ">`.
    pub html: String,
    /// Text of a message, as people read it.
    pub text: Option<String>,
}

/// Renders a part of a log. Entries with nothing to show are left out, and so are those that are
/// shown in others.
pub fn fragments(kind: Kind, log: &Log, zone: &TimeZone) -> Vec<Fragment> {
    let pieces = entries::fragments(kind, log, Clock { zone });
    let mut all = log.entries.iter();
    let fragment = |piece: entries::Piece| {
        let entry = all.find(|entry| entry.seq.0 == piece.seq);
        Fragment {
            seq: piece.seq,
            last: piece.last,
            html: visible(piece.html),
            text: entry.and_then(|entry| plain_text(kind, entry)),
        }
    };
    pieces.into_iter().map(fragment).collect()
}

fn plain_text(kind: Kind, entry: &Entry) -> Option<String> {
    let content = &entry.message()?.content;
    Some(match kind {
        Kind::Team => markers::shown(content),
        Kind::Chat | Kind::Pair => content.clone(),
    })
}

/// Renders the Markdown of an answer, finished or not.
pub fn text(markdown: &str) -> String {
    let mut painter = Painter::without_styles();
    visible(markdown::render(markdown, Lines::Flow, &mut painter))
}

/// Renders what a tool call would do: a diff or a command.
pub fn preview(text: &str) -> String {
    let is_diff = |line: &str| line.starts_with("@@") || line.starts_with("+++ ");
    let signs = text.lines().filter(|line| line.starts_with(['+', '-']));
    let language = match text.lines().any(is_diff) || signs.count() > 1 {
        true => "diff",
        false => "bash",
    };
    visible(Painter::without_styles().block(language, text))
}

/// Spells out characters that change the direction of the text around them. They have no meaning in
/// HTML, and neither has what replaces them, so this is safe anywhere in it.
fn visible(html: String) -> String {
    let is_override = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !html.contains(is_override) {
        return html;
    }
    let mut spelled = String::with_capacity(html.len() + 64);
    for c in html.chars() {
        match is_override(c) {
            true => spelled.push_str(&format!("[U+{:04X}]", u32::from(c))),
            false => spelled.push(c),
        }
    }
    spelled
}
