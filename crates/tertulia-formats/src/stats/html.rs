//! One page that needs nothing else: no script, no other files.

use std::fmt::Write;

use tertulia_core::price;
use tertulia_core::stats::{By, Group, Report, with_empty_days};

use super::figures::{compact, money};
use super::plot;

/// Rows of each table.
const ROWS: usize = 20;

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1c1c1c; --faint: #6b6b6b; --line: #e2e2e2; --page: #fdfdfc; --bar: #2f6f8f; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6e6; --faint: #9a9a9a; --line: #333; --page: #171819; --bar: #6fb3d2; }
}
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.scope, p.note, svg text { color: var(--faint); fill: var(--faint); }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg .bar, svg .heat { fill: var(--bar); }
svg.share { width: 8rem; height: .6rem; }
dl { display: flex; flex-wrap: wrap; gap: 2rem; margin: 1.5rem 0; }
dt { color: var(--faint); font-size: .85rem; } dd { margin: 0; font-size: 1.3rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { color: var(--faint); font-weight: normal; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
";

/// Returns the statistics as an HTML page.
pub fn html(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>tertulia: usage</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    );
    heading(report, &mut page);
    let (timeline, name) = match report.by {
        By::Week | By::Month | By::Hour => (report.rows.clone(), report.by.name()),
        _ => (with_empty_days(&report.days), "day"),
    };
    if !timeline.is_empty() {
        let _ = writeln!(page, "<h2>By {name}</h2>");
        page.push_str(&plot::timeline(&timeline));
    }
    let mut shown = vec![
        ("model", &report.models),
        ("agent", &report.agents),
        ("project", &report.projects),
    ];
    // Time is plotted above.
    let known = report.by.is_time() || shown.iter().any(|(name, _)| *name == report.by.name());
    if !known {
        shown.insert(0, (report.by.name(), &report.rows));
    }
    for (name, groups) in shown {
        table(name, groups, &mut page);
    }
    sessions(report, &mut page);
    topics(report, &mut page);
    tools(report, &mut page);
    files(report, &mut page);
    page.push_str("<h2>By weekday and hour</h2>\n");
    page.push_str(&plot::heat_map(&report.heat));
    foot(report, &mut page);
    page.push_str("</body>\n</html>\n");
    page
}

fn heading(report: &Report, page: &mut String) {
    let total = &report.total;
    let usage = &total.usage;
    let _ = writeln!(
        page,
        "<h1>Usage</h1>\n<p class=\"scope\">{}; {}; days and hours in {}</p>\n<dl>",
        escaped(&report.scope.words()),
        escaped(&report.span),
        escaped(&report.zone)
    );
    let cost = money(total).unwrap_or_else(|| "no price".to_owned());
    for (name, value) in [
        ("Sessions", total.sessions.to_string()),
        ("Messages", total.messages.to_string()),
        ("Input tokens", compact(usage.input)),
        ("of these from cache", compact(usage.cache_read)),
        ("Output tokens", compact(usage.output)),
        ("Cost", cost),
    ] {
        let _ = writeln!(
            page,
            "<div><dt>{name}</dt><dd>{}</dd></div>",
            escaped(&value)
        );
    }
    page.push_str("</dl>\n");
}

fn table(name: &str, groups: &[Group], page: &mut String) {
    if groups.is_empty() {
        return;
    }
    let most = groups.iter().map(|group| group.amount.tokens()).max();
    let _ = writeln!(
        page,
        "<h2>By {name}</h2>\n<table>\n<tr><th>{name}</th><th></th><th class=\"n\">messages</th>\
         <th class=\"n\">input</th><th class=\"n\">output</th><th class=\"n\">cost</th></tr>"
    );
    for group in groups.iter().take(ROWS) {
        let amount = &group.amount;
        let label = group.title.as_deref().or(group.key.as_deref());
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escaped(label.unwrap_or("none")),
            plot::share(amount.tokens(), most.unwrap_or(0)),
            amount.messages,
            compact(amount.usage.input),
            compact(amount.usage.output),
            escaped(&money(amount).unwrap_or_else(|| "no price".to_owned())),
        );
    }
    page.push_str("</table>\n");
    more(groups.len(), page);
}

fn sessions(report: &Report, page: &mut String) {
    if report.longest.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Longest sessions</h2>\n<table>\n<tr><th>id</th><th>title</th>\
         <th class=\"n\">messages</th><th class=\"n\">tokens</th><th class=\"n\">cost</th></tr>\n",
    );
    for session in &report.longest {
        let _ = writeln!(
            page,
            "<tr><td><code>{}</code></td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            session.id.short(),
            escaped(session.title.as_deref().unwrap_or("(untitled)")),
            session.amount.messages,
            compact(session.amount.tokens()),
            escaped(&money(&session.amount).unwrap_or_else(|| "no price".to_owned())),
        );
    }
    page.push_str("</table>\n");
}

fn topics(report: &Report, page: &mut String) {
    if report.topics.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Common topics</h2>\n<table>\n<tr><th>topic</th><th></th><th class=\"n\">sessions</th></tr>\n",
    );
    let most = report.topics.first().map_or(0, |topic| topic.sessions);
    for topic in &report.topics {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td></tr>",
            escaped(&topic.name),
            plot::share(topic.sessions, most),
            topic.sessions,
        );
    }
    page.push_str("</table>\n");
}

fn tools(report: &Report, page: &mut String) {
    if report.tools.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Tools</h2>\n<table>\n<tr><th>tool</th><th></th><th class=\"n\">calls</th>\
         <th class=\"n\">failed</th><th class=\"n\">denied</th></tr>\n",
    );
    let most = report.tools.first().map_or(0, |tool| tool.calls);
    for tool in report.tools.iter().take(ROWS) {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escaped(&tool.name),
            plot::share(tool.calls, most),
            tool.calls,
            tool.failed,
            tool.denied,
        );
    }
    page.push_str("</table>\n");
    more(report.tools.len(), page);
}

fn files(report: &Report, page: &mut String) {
    if report.files.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Files touched</h2>\n<table>\n<tr><th>file</th><th class=\"n\">reads</th>\
         <th class=\"n\">changes</th></tr>\n",
    );
    for file in report.files.iter().take(ROWS) {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escaped(&file.path),
            file.reads,
            file.writes,
        );
    }
    page.push_str("</table>\n");
    more(report.files.len(), page);
}

fn more(count: usize, page: &mut String) {
    if count > ROWS {
        let _ = writeln!(page, "<p class=\"note\">and {} more</p>", count - ROWS);
    }
}

fn foot(report: &Report, page: &mut String) {
    if !report.unpriced.is_empty() {
        page.push_str("<p class=\"note\">Without a price, and not part of the cost: ");
        let names = report.unpriced.iter().map(|unpriced| {
            let tokens = unpriced.usage.input.saturating_add(unpriced.usage.output);
            format!("{} ({} tokens)", escaped(&unpriced.name()), compact(tokens))
        });
        page.push_str(&names.collect::<Vec<_>>().join(", "));
        page.push_str(".</p>\n");
    }
    if report.trashed > 0 {
        let _ = writeln!(
            page,
            "<p class=\"note\">Sessions in the trash are counted, too: {}.</p>",
            report.trashed
        );
    }
    page.push_str(
        "<p class=\"note\">Costs are list prices, as far as the settings have no others: ",
    );
    let sources = price::sources().map(|source| {
        format!(
            "<a href=\"{}\">{}</a> as of {}",
            escaped(source.page),
            escaped(source.provider),
            source.noted
        )
    });
    page.push_str(&sources.collect::<Vec<_>>().join(", "));
    page.push_str(".</p>\n");
}

/// Escapes text for elements and attributes.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Characters that turn the direction of text could disguise a name.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            c if c.is_control() && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
