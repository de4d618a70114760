//! Page that lists exported sessions.

use jiff::tz::TimeZone;
use tertulia_core::project;

use super::{Clock, document, escape, grouped};
use crate::exporter::Listed;

/// Returns a page with a row for each session, with times in a zone.
pub fn index(sessions: &[Listed<'_>], zone: &TimeZone) -> String {
    let clock = Clock { zone };
    let rows: String = sessions.iter().map(|listed| row(listed, clock)).collect();
    let body = format!(
        "<header class=\"top\"><h1>Sessions ({})</h1></header>\n<main>\n<div class=\"scroll\"><table class=\"index\">\n\
         <thead><tr><th>Title</th><th>Project</th><th>Updated</th><th>Messages</th><th>Tokens</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n</main>\n",
        sessions.len()
    );
    document("Sessions", "", &body)
}

fn row(listed: &Listed<'_>, clock: Clock<'_>) -> String {
    let meta = listed.meta;
    format!(
        "<tr><td><a href=\"{}\">{}</a></td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n",
        escape(&listed.address()),
        escape(meta.title_or_untitled()),
        escape(&project::name_of(meta)),
        clock.time(meta.updated_at),
        grouped(meta.messages),
        grouped(meta.tokens.input.saturating_add(meta.tokens.output))
    )
}
