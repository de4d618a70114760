//! Exports a session as one HTML page that needs nothing else: no script, no font, no network. Text
//! of a session is never markup: it is escaped, or rendered from Markdown without raw HTML.

mod arguments;
mod code;
mod entries;
mod fragment;
mod index;
mod markdown;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tertulia_core::project;
use tertulia_core::session::{Log, SessionMeta};

pub use fragment::{Fragment, fragments, preview, text};
pub use index::index;

/// Name under which a page says what wrote it.
const GENERATOR: &str = "<meta name=\"generator\" content=\"tertulia\">";
const STYLE: &str = include_str!("html/style.css");
/// Forbids scripts and everything that would be loaded, whatever the page contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Returns the page of a session, with times in a zone.
pub fn page(meta: &SessionMeta, log: &Log, zone: &TimeZone) -> String {
    let clock = Clock { zone };
    let body = entries::render(meta, log, clock);
    let mut main = heading(meta, log, clock);
    if !body.prompts.is_empty() {
        main.push_str(&contents(&body.prompts));
    }
    main.push_str("<main>\n");
    main.push_str(&body.html);
    main.push_str("</main>\n");
    let session = format!("<meta name=\"tertulia-session\" content=\"{}\">\n", meta.id);
    document(meta.title_or_untitled(), &session, &main)
}

/// Returns true if a page was exported by tertulia.
pub fn is_export(page: &str) -> bool {
    page.contains(GENERATOR)
}

fn document(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n{GENERATOR}\n{head}\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

fn heading(meta: &SessionMeta, log: &Log, clock: Clock<'_>) -> String {
    let mut facts = vec![
        ("session", format!("<code>{}</code>", meta.id)),
        ("kind", escape(meta.kind.name())),
    ];
    let mut known = |name, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name, escape(&value)));
        }
    };
    known("team", meta.team.clone());
    known("agents", Some(meta.agents.join(", ")));
    known("project", Some(project::name_of(meta)));
    known("tags", Some(meta.tags.join(", ")));
    let tokens = meta.tokens;
    known("messages", Some(grouped(meta.messages)));
    if tokens.input + tokens.output > 0 {
        let (input, output) = (grouped(tokens.input), grouped(tokens.output));
        known("tokens", Some(format!("{input} in, {output} out")));
    }
    facts.push(("created", clock.time(meta.created_at)));
    facts.push(("updated", clock.time(meta.updated_at)));
    if let Some(parent) = &meta.parent {
        let (relation, id) = (parent.relation.name(), parent.id);
        let relation = match parent.place() {
            Some(seq) => format!("{relation} of {id}:{seq}"),
            None => format!("{relation} of {id}"),
        };
        facts.push(("origin", escape(&relation)));
    }
    let facts: String = facts
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"))
        .collect();
    let title = escape(meta.title_or_untitled());
    let mut text = format!("<header class=\"top\">\n<h1>{title}</h1>\n<dl>\n{facts}</dl>\n");
    if !log.damage.is_empty() {
        text.push_str(
            "<div class=\"damage\"><p>This session is damaged. Missing or altered:</p><ul>\n",
        );
        for damage in &log.damage {
            let reason = escape(&damage.reason);
            text.push_str(&format!("<li>entry {}: {reason}</li>\n", damage.seq));
        }
        text.push_str("</ul></div>\n");
    }
    text.push_str("</header>\n");
    text
}

/// A prompt for the table of contents.
#[derive(Debug)]
struct Prompt {
    seq: u64,
    text: String,
}

fn contents(prompts: &[Prompt]) -> String {
    let items: String = prompts
        .iter()
        .map(|prompt| {
            let text = escape(&shortened(&prompt.text, 90));
            format!("<li><a href=\"#e{}\">{text}</a></li>\n", prompt.seq)
        })
        .collect();
    let count = prompts.len();
    // A long table would push the first message off the screen.
    let open = if count <= 12 { " open" } else { "" };
    format!(
        "<nav aria-label=\"Prompts\"><details{open}><summary>Prompts ({count})</summary>\n\
         <ol>\n{items}</ol></details></nav>\n"
    )
}

/// Formats times.
#[derive(Clone, Copy, Debug)]
struct Clock<'a> {
    zone: &'a TimeZone,
}

impl Clock<'_> {
    fn time(self, at: Timestamp) -> String {
        let local = at.to_zoned(self.zone.clone());
        format!(
            "<time datetime=\"{at}\" title=\"{}\">{}</time>",
            local.strftime("%Y-%m-%d %H:%M:%S %:z"),
            local.strftime("%Y-%m-%d %H:%M")
        )
    }
}

/// Escapes text for elements and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // HTML has no form for other control characters.
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns the beginning of a text on one line.
fn shortened(text: &str, length: usize) -> String {
    let mut words = text.split_whitespace();
    let mut line = String::new();
    for word in words.by_ref() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().count() > length {
            break;
        }
    }
    let is_cut = line.chars().count() > length || words.next().is_some();
    let mut short: String = line.chars().take(length).collect();
    if is_cut {
        short.push('…');
    }
    short
}

/// Formats a number with a thin space between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}
