//! Renders tables: columns as wide as needed, narrower if they must be, and as one record per row
//! if they do not fit side by side.

use std::ops::Range;

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use super::super::theme::Theme;
use super::{marked_rows, redacted, restyle};
use crate::text::width;
use crate::text::wrap::{Breaks, Margin, Piece, Row, rows, width_of};

const BETWEEN: &str = " │ ";
const CROSSING: &str = "─┼─";
/// Minimum legible width of a column.
const NARROWEST: usize = 4;

type Cell<'t> = Vec<Piece<'t>>;

/// A table being collected. Its first line is the header.
#[derive(Debug, Default)]
pub(super) struct Table<'t> {
    pub(super) alignments: Vec<Alignment>,
    lines: Vec<(Range<usize>, Vec<Cell<'t>>)>,
}

impl<'t> Table<'t> {
    /// Creates an empty table.
    pub(super) fn new(alignments: Vec<Alignment>) -> Table<'t> {
        Table {
            alignments,
            lines: Vec::new(),
        }
    }

    /// Starts a line.
    pub(super) fn line(&mut self, source: Range<usize>) {
        self.lines.push((source, Vec::new()));
    }

    /// Appends a cell to the current line.
    pub(super) fn cell(&mut self, cell: Cell<'t>, theme: Theme) {
        if let Some((_, cells)) = self.lines.last_mut() {
            cells.push(restyle(cell, redacted, theme.redacted()));
        }
    }

    /// Renders the table as rows.
    pub(super) fn rows(&self, margin: &Margin, width: usize, theme: Theme) -> Vec<Row> {
        let room = width.saturating_sub(width_of(&margin.first).max(width_of(&margin.rest)));
        match self.widths(room) {
            Some(widths) => Drawing {
                table: self,
                widths,
                theme,
                out: Vec::new(),
                margin,
            }
            .rows(),
            None => self.records(margin, width, theme),
        }
    }

    /// Widths of the columns, or `None` if they do not fit side by side.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let columns = self.alignments.len();
        let between = width(BETWEEN) * columns.saturating_sub(1);
        let room = room.checked_sub(between)?;
        let mut widths = vec![1; columns];
        for (_, cells) in &self.lines {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = cell_width(cell).max(*width);
            }
        }
        if widths.iter().sum::<usize>() <= room {
            return Some(widths);
        }
        let share = share(&widths, room);
        let legible = widths
            .iter()
            .all(|width| (*width).min(share) >= (*width).min(NARROWEST));
        legible.then(|| widths.iter().map(|width| (*width).min(share)).collect())
    }

    /// Renders each line as a list of its cells, prefixed with the column names.
    fn records(&self, margin: &Margin, width: usize, theme: Theme) -> Vec<Row> {
        let mut out = Vec::new();
        let mut margin = margin.clone();
        let head: &[Cell<'_>] = self.lines.first().map_or(&[], |(_, cells)| cells);
        let body = if self.lines.len() > 1 { 1 } else { 0 };
        for (number, (source, cells)) in self.lines[body..].iter().enumerate() {
            if number > 0 {
                out.push(Row {
                    line: Line::from(margin.rest.clone()),
                    source: source.start..source.start,
                });
            }
            let from = out.len();
            for (column, cell) in cells
                .iter()
                .enumerate()
                .filter(|(_, cell)| !cell.is_empty())
            {
                let mut pieces = Vec::new();
                if body > 0
                    && let Some(name) = head.get(column).filter(|name| !name.is_empty())
                {
                    pieces.extend(name.iter().cloned());
                    pieces.push(Piece::exact(": ", theme.dim(), source.start));
                }
                pieces.extend(cell.iter().cloned());
                marked_rows(pieces, &margin, width, Breaks::Words, theme, &mut out);
                margin.first.clone_from(&margin.rest);
            }
            for row in &mut out[from..] {
                row.source = source.clone();
            }
        }
        out
    }
}

/// Maximum width of a column so that all fit; columns that need less leave their share to the
/// others.
fn share(widths: &[usize], room: usize) -> usize {
    let mut sorted = widths.to_vec();
    sorted.sort_unstable();
    let mut left = room;
    for (number, width) in sorted.iter().enumerate() {
        let fair = left / (sorted.len() - number);
        if *width > fair {
            return fair;
        }
        left -= width;
    }
    room
}

fn cell_width(cell: &[Piece<'_>]) -> usize {
    cell.iter().map(|piece| width(&piece.text)).sum()
}

struct Drawing<'d, 't> {
    table: &'d Table<'t>,
    widths: Vec<usize>,
    theme: Theme,
    out: Vec<Row>,
    margin: &'d Margin,
}

impl Drawing<'_, '_> {
    fn rows(mut self) -> Vec<Row> {
        let broken: Vec<Vec<Vec<Row>>> = self
            .table
            .lines
            .iter()
            .map(|(_, cells)| self.broken(cells))
            .collect();
        // Separate the lines if any of them takes several rows.
        let ruled = broken
            .iter()
            .skip(1)
            .any(|cells| cells.iter().any(|cell| cell.len() > 1));
        for (number, cells) in broken.iter().enumerate() {
            let source = &self.table.lines[number].0;
            if number == 1 || number > 1 && ruled {
                self.rule(source.start);
            }
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for row in 0..height {
                self.row(cells, row, source.clone());
            }
        }
        if let [(source, _)] = self.table.lines.as_slice() {
            self.rule(source.end);
        }
        self.out
    }

    fn broken(&self, cells: &[Cell<'_>]) -> Vec<Vec<Row>> {
        self.widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let mut out = Vec::new();
                let cell = cells.get(column).map_or(&[][..], Vec::as_slice);
                rows(cell, &Margin::default(), *width, Breaks::Words, &mut out);
                out
            })
            .collect()
    }

    fn begin(&self) -> Vec<Span<'static>> {
        match self.out.is_empty() {
            true => self.margin.first.clone(),
            false => self.margin.rest.clone(),
        }
    }

    fn rule(&mut self, at: usize) {
        let dashes: Vec<String> = self.widths.iter().map(|width| "─".repeat(*width)).collect();
        let mut spans = self.begin();
        spans.push(Span::styled(dashes.join(CROSSING), self.theme.frame()));
        self.out.push(Row {
            line: Line::from(spans),
            source: at..at,
        });
    }

    fn row(&mut self, cells: &[Vec<Row>], row: usize, source: Range<usize>) {
        let mut spans = self.begin();
        for (column, width) in self.widths.iter().enumerate() {
            if column > 0 {
                spans.push(Span::styled(BETWEEN, self.theme.frame()));
            }
            let content: &[Span<'static>] = cells[column]
                .get(row)
                .map_or(&[], |row| row.line.spans.as_slice());
            let spare = width.saturating_sub(width_of(content));
            let left = match self.table.alignments[column] {
                Alignment::Right => spare,
                Alignment::Center => spare / 2,
                Alignment::Left | Alignment::None => 0,
            };
            spans.push(Span::raw(" ".repeat(left)));
            spans.extend(content.iter().cloned());
            if column + 1 < self.widths.len() {
                spans.push(Span::raw(" ".repeat(spare - left)));
            }
        }
        spans.retain(|span| !span.content.is_empty());
        self.out.push(Row {
            line: Line::from(spans),
            source,
        });
    }
}
