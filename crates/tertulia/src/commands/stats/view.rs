//! The view on a terminal: sections with bars, and a heat map of the week.

#[cfg(test)]
mod tests;

use anstyle::{AnsiColor, Style};
use jiff::civil::Date;
use tertulia_core::stats::{Amount, By, Group, Report, with_empty_days};
use tertulia_engine::pair::text::lasting;
use tertulia_engine::text::{padded, width};
use tertulia_formats::stats::{compact, money};

use super::bars::{bar, cost, shade, tokens};
use crate::ui::{BOLD, DIM, Ui, fit, grouped};

/// Most rows of a chosen grouping that is not of time.
pub const MOST_ROWS: usize = 40;
/// Days in the overview.
const DAYS: usize = 14;
/// Rows of each list in the overview.
const TOP: usize = 5;
/// Rows of tools and files in the overview.
const TOP_TOOLS: usize = 8;
/// Width from which sections stand side by side.
const WIDE: usize = 110;
/// Space between two sections side by side.
const GUTTER: usize = 4;
/// Widest useful view.
const WIDEST: usize = 160;
/// Widest label of a row.
const LABEL: usize = 34;

const BAR: Style = AnsiColor::Cyan.on_default();
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// How the view is drawn.
pub struct Look {
    width: usize,
    colours: bool,
}

impl Look {
    /// Returns the look of the terminal.
    pub fn of(ui: &Ui) -> Look {
        Look {
            width: ui.columns().map_or(80, usize::from).clamp(40, WIDEST),
            colours: ui.has_colours(),
        }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        match self.colours {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }
}

/// A section: a heading, and rows with a bar and figures each.
struct Section {
    title: String,
    /// Headings of the figures.
    headings: &'static [&'static str],
    rows: Vec<SectionRow>,
    /// Remark below the rows.
    foot: Option<String>,
}

struct SectionRow {
    label: String,
    /// Length of the bar.
    value: u64,
    /// One per heading.
    figures: Vec<String>,
}

const AMOUNTS: &[&str] = &["messages", "tokens", "cost"];

/// Returns the whole view: everything at a glance, or one grouping.
pub fn screen(report: &Report, is_chosen: bool, look: &Look, root: &str) -> String {
    let mut lines = heading(report, look);
    if report.total.messages == 0 && report.total.tokens() == 0 {
        lines.push("Nothing to count here.".to_owned());
    } else if is_chosen {
        lines.extend(drawn(&chosen(report, root, look.width), look.width, look));
    } else {
        lines.extend(overview(report, look, root));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn heading(report: &Report, look: &Look) -> Vec<String> {
    let total = &report.total;
    let usage = &total.usage;
    let about = if usage.estimated { "~" } else { "" };
    let scope = fit(
        &format!("{}, {}", report.scope.words(), report.span),
        look.width - 7,
    );
    let mut lines = vec![
        format!("{}  {}", look.paint(BOLD, "Usage"), look.paint(DIM, &scope)),
        String::new(),
    ];
    let trashed = match report.trashed {
        0 => String::new(),
        count => format!(" ({count} in the trash)"),
    };
    let cached = match (usage.cache_read, usage.cache_written) {
        (0, 0) => String::new(),
        (read, 0) => format!(" ({} from cache)", compact(read)),
        (read, written) => format!(
            " ({} from cache, {} to cache)",
            compact(read),
            compact(written)
        ),
    };
    let facts = [
        ("Sessions", format!("{}{trashed}", grouped(total.sessions))),
        ("Messages", grouped(total.messages)),
        (
            "Tokens",
            format!(
                "{about}{} in{cached}, {about}{} out",
                compact(usage.input),
                compact(usage.output)
            ),
        ),
        (
            "Cost",
            money(total).unwrap_or_else(|| "no price known".to_owned()),
        ),
    ];
    for (name, value) in facts {
        lines.push(format!("  {} {value}", look.paint(DIM, &padded(name, 9))));
    }
    if let Some(words) = unpriced(report) {
        let words = format!("without a price: {words}");
        for line in wrapped(&words, look.width.saturating_sub(12)) {
            lines.push(format!("{}{}", " ".repeat(12), look.paint(DIM, &line)));
        }
    }
    lines.push(String::new());
    lines
}

/// Names the models without a price and their tokens.
pub fn unpriced(report: &Report) -> Option<String> {
    let names = report.unpriced.iter().map(|unpriced| {
        let tokens = unpriced.usage.input.saturating_add(unpriced.usage.output);
        format!("{} ({} tokens)", unpriced.name(), compact(tokens))
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Breaks text into lines at spaces.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn overview(report: &Report, look: &Look, root: &str) -> Vec<String> {
    let mut lines = drawn(&recent_days(report), look.width, look);
    let column = match look.width >= WIDE {
        true => (look.width - GUTTER) / 2,
        false => look.width,
    };
    let projects = match report.scope.project {
        // A single project has one row.
        Some(_) => None,
        None => Some(groups("Projects", &report.projects, By::Project, TOP)),
    };
    let sections = [
        Some(groups("Models", &report.models, By::Model, TOP)),
        Some(groups("Agents", &report.agents, By::Agent, TOP)),
        projects,
        Some(topics(report)),
        Some(tools(report, TOP_TOOLS)),
        Some(files(report, TOP_TOOLS, root, column)),
        Some(longest(report)),
    ];
    let sections: Vec<Section> = sections
        .into_iter()
        .flatten()
        .filter(|section| !section.rows.is_empty())
        .collect();
    let mut drawn = sections.iter().map(|section| drawn(section, column, look));
    while let Some(left) = drawn.next() {
        match look.width >= WIDE {
            true => lines.extend(beside(&left, &drawn.next().unwrap_or_default(), column)),
            false => lines.extend(left),
        }
    }
    lines.extend(week(report, look));
    lines
}

/// Returns the last days, those without messages included.
fn recent_days(report: &Report) -> Section {
    let days = with_empty_days(&report.days);
    let recent = &days[days.len().saturating_sub(DAYS)..];
    let rows = recent.iter().map(|group| {
        let date = group
            .key
            .as_deref()
            .and_then(|key| key.parse::<Date>().ok());
        let label = date.map(|date| date.strftime("%a %d %b").to_string());
        amount_row(label.unwrap_or_default(), &group.amount)
    });
    let first = recent.first().and_then(|group| group.key.as_deref());
    let earlier = report
        .days
        .iter()
        .filter(|group| group.key.as_deref() < first);
    let earlier = earlier.count();
    Section {
        title: "By day".to_owned(),
        headings: AMOUNTS,
        rows: rows.collect(),
        foot: (earlier > 0).then(|| format!("{earlier} earlier days: --by day, --by month")),
    }
}

fn groups(title: &str, groups: &[Group], by: By, count: usize) -> Section {
    let rows = groups.iter().take(count);
    Section {
        title: title.to_owned(),
        headings: AMOUNTS,
        rows: rows
            .map(|group| amount_row(label(group, by), &group.amount))
            .collect(),
        foot: more(groups.len(), count, by),
    }
}

fn amount_row(label: String, amount: &Amount) -> SectionRow {
    SectionRow {
        label,
        value: amount.tokens(),
        figures: vec![grouped(amount.messages), tokens(amount), cost(amount)],
    }
}

/// Returns the name of a group.
pub fn label(group: &Group, by: By) -> String {
    match (&group.key, by) {
        (Some(id), By::Session) => {
            let short: String = id.chars().skip(id.len().saturating_sub(8)).collect();
            let title = group.title.as_deref().unwrap_or("(untitled)");
            format!("{short}  {title}")
        }
        (Some(hour), By::Hour) => format!("{hour}:00"),
        (Some(key), _) => key.clone(),
        (None, By::Model) => "(not recorded)".to_owned(),
        (None, _) => format!("(no {})", by.name()),
    }
}

fn more(all: usize, shown: usize, by: By) -> Option<String> {
    let rest = all.saturating_sub(shown);
    (rest > 0).then(|| format!("{rest} more: --by {}", by.name()))
}

fn topics(report: &Report) -> Section {
    let rows = report
        .topics
        .iter()
        .take(TOP_TOOLS)
        .map(|topic| SectionRow {
            label: topic.name.clone(),
            value: topic.sessions,
            figures: vec![grouped(topic.sessions)],
        });
    Section {
        title: "Common topics".to_owned(),
        headings: &["sessions"],
        rows: rows.collect(),
        foot: None,
    }
}

fn tools(report: &Report, count: usize) -> Section {
    let number = |count: u64| match count {
        0 => String::new(),
        count => grouped(count),
    };
    let rows = report.tools.iter().take(count).map(|tool| SectionRow {
        label: tool.name.clone(),
        value: tool.calls,
        figures: vec![
            grouped(tool.calls),
            number(tool.failed),
            number(tool.denied),
        ],
    });
    Section {
        title: "Tools".to_owned(),
        headings: &["calls", "failed", "denied"],
        rows: rows.collect(),
        foot: more(report.tools.len(), count, By::Tool),
    }
}

fn files(report: &Report, count: usize, root: &str, columns: usize) -> Section {
    // The headings of the figures take the rest.
    let room = columns.saturating_sub(20);
    let rows = report.files.iter().take(count).map(|file| {
        let inside = file.path.strip_prefix(root);
        let inside = inside.and_then(|rest| rest.strip_prefix('/'));
        SectionRow {
            label: ending(inside.unwrap_or(&file.path), label_room(room)),
            value: file.reads + file.writes,
            figures: vec![grouped(file.reads), grouped(file.writes)],
        }
    });
    Section {
        title: "Files".to_owned(),
        headings: &["reads", "changes"],
        rows: rows.collect(),
        foot: more(report.files.len(), count, By::File),
    }
}

/// Returns the end of a path, which says more than its beginning.
fn ending(path: &str, columns: usize) -> String {
    if width(path) <= columns {
        return path.to_owned();
    }
    let mut rest = path.chars();
    while width(rest.as_str()) + 1 > columns && rest.next().is_some() {}
    format!("…{}", rest.as_str())
}

/// Returns the columns that a label may have: a bar needs some of the room to say something.
fn label_room(room: usize) -> usize {
    LABEL.min(room * 2 / 3)
}

fn longest(report: &Report) -> Section {
    let rows = report.longest.iter().take(TOP).map(|session| {
        let title = session.title.as_deref().unwrap_or("(untitled)");
        SectionRow {
            label: format!("{}  {title}", session.id.short()),
            value: session.amount.messages,
            figures: vec![
                grouped(session.amount.messages),
                lasting(session.duration),
                cost(&session.amount),
            ],
        }
    });
    Section {
        title: "Longest sessions".to_owned(),
        headings: &["messages", "duration", "cost"],
        rows: rows.collect(),
        foot: None,
    }
}

/// Returns the chosen grouping, with many more rows than in the overview.
fn chosen(report: &Report, root: &str, columns: usize) -> Section {
    match report.by {
        By::Tool => tools(report, MOST_ROWS),
        By::File => files(report, MOST_ROWS, root, columns),
        by => {
            let most = if by.is_time() { usize::MAX } else { MOST_ROWS };
            let mut section = groups("", &report.rows, by, most);
            section.title = format!("By {}", by.name());
            section.foot = section.foot.map(|_| {
                let rest = report.rows.len().saturating_sub(most);
                format!("{rest} more: --csv or --json has all")
            });
            section
        }
    }
}

/// Draws a section: labels, bars in the space that is left, and figures in columns. A column without
/// figures is left out.
fn drawn(section: &Section, columns: usize, look: &Look) -> Vec<String> {
    let widest = |place: usize| {
        let cells = section.rows.iter().map(|row| width(&row.figures[place]));
        match cells.max().unwrap_or(0) {
            0 => 0,
            widest => widest.max(section.headings[place].len()),
        }
    };
    let widths: Vec<usize> = (0..section.headings.len()).map(widest).collect();
    let cells = |figures: &[&str]| -> String {
        let shown = figures.iter().zip(&widths).filter(|(_, width)| **width > 0);
        shown
            .map(|(cell, room)| format!("  {}{cell}", " ".repeat(room.saturating_sub(width(cell)))))
            .collect()
    };
    let headings = cells(section.headings);
    let room = columns.saturating_sub(headings.len() + 2);
    let longest = section.rows.iter().map(|row| width(&row.label)).max();
    let label = longest.unwrap_or(0).min(label_room(room));
    let bar_width = room.saturating_sub(label + 2);
    let most = section.rows.iter().map(|row| row.value).max().unwrap_or(0);
    let title = padded(&section.title, columns.saturating_sub(headings.len()));
    let mut lines = vec![format!(
        "{}{}",
        look.paint(BOLD, &title),
        look.paint(DIM, &headings)
    )];
    for row in &section.rows {
        let figures: Vec<&str> = row.figures.iter().map(String::as_str).collect();
        lines.push(format!(
            "  {}  {}{}",
            padded(&row.label, label),
            look.paint(BAR, &bar(row.value, most, bar_width)),
            cells(&figures)
        ));
    }
    if let Some(foot) = &section.foot {
        lines.push(format!("  {}", look.paint(DIM, foot)));
    }
    lines.push(String::new());
    lines
}

/// Puts two sections side by side. Lines have the width of their section or are shorter.
fn beside(left: &[String], right: &[String], width: usize) -> Vec<String> {
    let count = left.len().max(right.len());
    let line = |place: usize| {
        let text = left.get(place).map_or("", String::as_str);
        match right.get(place).filter(|other| !other.is_empty()) {
            None => text.to_owned(),
            Some(other) => {
                let gap = (width + GUTTER).saturating_sub(columns_of(text));
                format!("{text}{}{other}", " ".repeat(gap))
            }
        }
    };
    (0..count).map(line).collect()
}

/// Returns the columns that a line occupies, without its styles.
fn columns_of(line: &str) -> usize {
    width(&anstream::adapter::strip_str(line).to_string())
}

/// Draws the busiest hours and the heat map of the week.
fn week(report: &Report, look: &Look) -> Vec<String> {
    let mut busiest: Vec<(usize, u64)> = report.hours.iter().copied().enumerate().collect();
    busiest.sort_by_key(|(hour, count)| (std::cmp::Reverse(*count), *hour));
    let busiest: Vec<String> = busiest
        .iter()
        .take(3)
        .filter(|(_, count)| *count > 0)
        .map(|(hour, count)| format!("{hour:02}:00 ({})", grouped(*count)))
        .collect();
    let mut lines = vec![
        format!(
            "{} {}",
            look.paint(BOLD, "Busiest hours"),
            look.paint(DIM, "(messages)")
        ),
        format!("  {}", fit(&busiest.join("  "), look.width - 2)),
        String::new(),
    ];
    let most = report.heat.iter().flatten().copied().max().unwrap_or(0);
    let hours: String = (0..24)
        .step_by(3)
        .map(|hour| format!("{hour:02}    "))
        .collect();
    lines.push(look.paint(DIM, &format!("       {}", hours.trim_end())));
    for (day, counts) in WEEKDAYS.iter().zip(&report.heat) {
        let shades: String = counts
            .iter()
            .flat_map(|count| [shade(*count, most); 2])
            .collect();
        lines.push(format!(
            "  {}  {}",
            look.paint(DIM, day),
            look.paint(BAR, &shades)
        ));
    }
    lines
}
