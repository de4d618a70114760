//! Draws the full-text search.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tertulia_core::query::Hit;
use tertulia_engine::text::ago;
use tertulia_engine::text::grouped;

use super::brush::{Look, counted, hints, rule, write, write_right};
use super::marked::draw_marked;
use super::picker::draw_line;
use super::preview::draw_around;
use crate::geometry::{ROW_LINES, list_areas, row, rows};
use crate::picker::Scope;
use crate::search::{PANES, Search};

/// Below this width the title has the line to itself.
const NARROW: u16 = 40;

/// Draws the search and returns the cursor position.
pub fn draw(search: &Search, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let (areas, theme) = (list_areas(area, PANES), look.theme);
    let left = write_right(buffer, areas.head, &total(search), theme.dim());
    let title = match search.scope() {
        Scope::Here => "Search this project",
        Scope::All => "Search everything",
    };
    write(buffer, left, title, theme.heading());
    let left = write(buffer, areas.query, "> ", theme.heading());
    let placeholder = "words, \"a phrase\", -without, begin*";
    let cursor = draw_line(search.query(), placeholder, theme, left, buffer);
    draw_hits(search, look, areas.list, buffer);
    if let Some((seq, items)) = search.shown_around() {
        rule(buffer, areas.second, theme);
        let inside = rows(areas.second, 1, usize::from(areas.second.height));
        draw_around(items, seq, look, inside, buffer);
    }
    let scope = match search.scope() {
        Scope::Here => "everywhere",
        Scope::All => "this project",
    };
    let keys = [
        ("Enter", "go there"),
        ("↑↓", "choose"),
        ("^F", "fork there"),
        ("Tab", scope),
        ("Esc", "back"),
    ];
    hints(buffer, areas.keys, theme, &keys);
    cursor
}

fn total(search: &Search) -> String {
    if search.is_searching() {
        return "searching …".to_owned();
    }
    let hits = search.hits();
    if !search.is_done() {
        return String::new();
    }
    let elsewhere = match hits.elsewhere {
        0 => String::new(),
        count => format!(", {count} in other projects"),
    };
    let pending = match hits.pending {
        0 => String::new(),
        count => format!(", {} not indexed yet", grouped(count)),
    };
    let shown = match hits.hits.len() as u64 {
        shown if shown < hits.total => format!("{} of ", grouped(shown)),
        _ => String::new(),
    };
    let sessions = counted(hits.sessions.len() as u64, "session");
    let total = counted(hits.total, "hit");
    format!("{shown}{total} in {sessions}{elsewhere}{pending}")
}

fn draw_hits(search: &Search, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let hits = &search.hits().hits;
    if let Some(trouble) = search.trouble() {
        write(buffer, area, trouble, theme.warning());
        return;
    }
    if hits.is_empty() && search.is_done() {
        write(buffer, area, "Nothing found.", theme.dim());
        return;
    }
    let seen = (usize::from(area.height) / ROW_LINES).max(1);
    let (chosen, top) = search.places(seen);
    for (place, hit) in hits.iter().enumerate().skip(top).take(seen) {
        let area = rows(area, (place - top) * ROW_LINES, ROW_LINES);
        draw_hit(hit, look, place == chosen, area, buffer);
    }
}

fn draw_hit(hit: &Hit, look: Look, is_chosen: bool, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let head = row(area, 0).intersection(buffer.area);
    let mark = if is_chosen { "› " } else { "  " };
    let left = write(buffer, head, mark, theme.heading());
    let place = format!("{}:{}", hit.session.short(), hit.seq);
    let left = write_right(buffer, left, &place, theme.dim());
    // The title has priority: on a narrow screen speaker and age are dropped.
    let left = match left.width >= NARROW {
        true => write_right(buffer, left, &source(hit, look), theme.dim()),
        false => left,
    };
    let title = hit.title.as_deref().unwrap_or("(untitled)");
    write(buffer, left, title, theme.strong());
    if is_chosen {
        buffer.set_style(head, theme.chosen());
    }
    let below = write(buffer, row(area, 1), "  ", theme.text());
    let style = match is_chosen {
        true => theme.text(),
        false => theme.dim(),
    };
    draw_marked(&hit.snippet, theme, style, below, buffer);
}

fn source(hit: &Hit, look: Look) -> String {
    let who = hit.speaker.as_ref().map(|speaker| &speaker.display_name);
    let who = who.map_or("title", String::as_str);
    format!("{who} · {}", ago(hit.at, look.now))
}
