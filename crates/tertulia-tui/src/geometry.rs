//! Areas of the screen: the state needs them to know how much of it is seen, the view to draw.

use ratatui::layout::{Margin, Position, Rect, Size};

use super::dialog::question::Question;
use super::state::{Layer, State};

/// Rows that the transcript keeps in any case.
const LEAST_TRANSCRIPT: u16 = 3;
/// Minimum height for a line between transcript and input.
const WITH_RULE: u16 = 8;
/// Minimum width for two panes of a list beside each other.
pub const WIDE: u16 = 100;
/// Below this height a list of messages does not show the chosen one.
const WITH_MESSAGE: usize = 12;
/// Maximum width of a dialog; longer lines are hard to read.
pub const DIALOG_COLUMNS: u16 = 100;
/// Columns and lines taken by the frame of a dialog.
pub const DIALOG_FRAME: Size = Size::new(4, 2);
/// Rows of a completion popup on a screen of usual height.
const POPUP_ROWS: u16 = 6;
/// Minimum space above the input for a frame around the popup.
const WITH_FRAME: Size = Size::new(20, 10);
/// Columns left of the text of a transcript.
const GUTTER: u16 = 2;
/// Minimum width for a gutter.
const WITH_GUTTER: u16 = 20;
/// Lines per row of the session list and per search hit.
pub const ROW_LINES: usize = 2;

/// Returns one row of an area, or an empty area if it has no such row.
pub fn row(area: Rect, number: usize) -> Rect {
    rows(area, number, 1)
}

/// Returns a range of rows of an area, clipped to the area.
pub fn rows(area: Rect, first: usize, count: usize) -> Rect {
    let height = usize::from(area.height);
    let first = first.min(height);
    let count = count.min(height - first);
    Rect {
        y: area.y + u16::try_from(first).unwrap_or(area.height),
        height: u16::try_from(count).unwrap_or(area.height),
        ..area
    }
}

/// Returns the part of a transcript's area that is right of the gutter.
pub fn right_of_gutter(area: Rect) -> Rect {
    let gutter = gutter(area.width);
    Rect {
        x: area.x + gutter,
        width: area.width - gutter,
        ..area
    }
}

/// Returns the width of the gutter of a transcript; a narrow one has none.
pub fn gutter(width: u16) -> u16 {
    if width < WITH_GUTTER { 0 } else { GUTTER }
}

/// Returns the area of a whole screen.
pub fn whole(size: Size) -> Rect {
    Rect::from((Position::ORIGIN, size))
}

/// What a list shows besides its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panes {
    /// Whether a line below the list says what it hides.
    pub notes: bool,
    /// Whether there is a second pane, such as a preview.
    pub second: bool,
    /// Minimum height for the second pane below the list.
    pub low: u16,
    /// Whether the second pane replaces the list on a lower screen.
    pub replaces: bool,
}

/// Areas of the session list and of the full-text search.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ListAreas {
    /// Heading.
    pub head: Rect,
    /// Query.
    pub query: Rect,
    /// Rows of the list.
    pub list: Rect,
    /// Second pane.
    pub second: Rect,
    /// Line below the list.
    pub notes: Rect,
    /// Key hints.
    pub keys: Rect,
}

/// Divides an area; a small one goes to the list first.
pub fn list_areas(area: Rect, panes: Panes) -> ListAreas {
    let height = usize::from(area.height);
    let (head, keys) = (usize::from(height >= 5), usize::from(height >= 4));
    let notes = usize::from(panes.notes && height >= 8);
    let query = usize::from(height >= 3);
    let gap = usize::from(height >= 12);
    let above = head + query + gap;
    let middle = rows(area, above, height.saturating_sub(above + notes + keys));
    let mut areas = ListAreas {
        head: rows(area, 0, head),
        query: rows(area, head, query),
        list: middle,
        second: Rect::default(),
        notes: rows(area, height - keys - notes, notes),
        keys: rows(area, height - keys, keys),
    };
    if !panes.second {
        return areas;
    }
    if middle.width >= WIDE {
        let half = middle.width / 2;
        areas.list.width = half - 1;
        areas.second = Rect {
            x: middle.x + half,
            width: middle.width - half,
            ..middle
        };
    } else if middle.height >= panes.low {
        let half = usize::from(middle.height / 2 / 2 * 2);
        areas.list = rows(middle, 0, half);
        areas.second = rows(middle, half, usize::from(middle.height) - half);
    } else if panes.replaces {
        areas.list.height = 0;
        areas.second = middle;
    }
    areas
}

/// Divides an area for a list of agents or models, with lines for a remark below it.
pub fn chooser_areas(area: Rect) -> ListAreas {
    let height = usize::from(area.height);
    let (head, keys) = (usize::from(height >= 6), usize::from(height >= 4));
    let query = usize::from(height >= 3);
    let notes = match height {
        0..5 => 0,
        5..10 => 1,
        10..16 => 2,
        _ => 3,
    };
    let gap = usize::from(height >= 16);
    let above = head + query + gap;
    let below = notes + keys;
    ListAreas {
        head: rows(area, 0, head),
        query: rows(area, head, query),
        list: rows(area, above, height.saturating_sub(above + below)),
        second: Rect::default(),
        notes: rows(area, height - below, notes),
        keys: rows(area, height - keys, keys),
    }
}

/// Areas of the list of messages to rewind to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewindAreas {
    /// Heading.
    pub head: Rect,
    /// List of messages.
    pub list: Rect,
    /// Full text of the chosen message.
    pub message: Rect,
    /// Key hints.
    pub keys: Rect,
}

/// Divides an area; a small one goes to the list first.
pub fn rewind_areas(area: Rect) -> RewindAreas {
    let height = usize::from(area.height);
    let (head, keys) = (usize::from(height >= 3), usize::from(height >= 2));
    let gap = usize::from(height >= 8);
    let message = if height >= WITH_MESSAGE {
        height / 3
    } else {
        0
    };
    let above = head + gap;
    let below = message + keys;
    RewindAreas {
        head: rows(area, 0, head),
        list: rows(area, above, height.saturating_sub(above + below)),
        message: rows(area, height - below.min(height), message),
        keys: rows(area, height - keys, keys),
    }
}

/// Returns the largest size of the inside of a dialog for a screen size.
pub fn dialog_inside(size: Size) -> Size {
    let columns = size.width.min(DIALOG_COLUMNS);
    Size::new(
        columns.saturating_sub(DIALOG_FRAME.width),
        size.height.saturating_sub(DIALOG_FRAME.height),
    )
}

/// Returns how many of `count` lines a dialog shows that has `others` lines besides.
pub fn dialog_lines(size: Size, count: usize, others: usize) -> usize {
    let room = usize::from(dialog_inside(size).height);
    room.saturating_sub(others).max(1).min(count)
}

/// Returns the areas of a completion popup and of its rows, in the lowest rows of the area above the
/// input. They differ by the frame, for which a small area has no room. A popup takes at most a third
/// of a tall screen.
pub fn popup_areas(above: Rect, screen_rows: u16, count: usize) -> (Rect, Rect) {
    let is_framed = above.width >= WITH_FRAME.width && above.height >= WITH_FRAME.height;
    let frame = if is_framed { 1 } else { 0 };
    let most = (screen_rows / 3).saturating_sub(2 * frame).max(POPUP_ROWS);
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    let rows = count.min(most).min(above.height - 2 * frame);
    let height = if rows == 0 { 0 } else { rows + 2 * frame };
    let popup = Rect {
        y: above.bottom() - height,
        height,
        ..above
    };
    (popup, popup.inner(Margin::new(frame, frame)))
}

/// Areas of the session screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenAreas {
    /// Transcript.
    pub transcript: Rect,
    /// Todo list of the agent.
    pub todos: Rect,
    /// Queue of the team.
    pub queue: Rect,
    /// Messages typed ahead.
    pub ahead: Rect,
    /// Activity line.
    pub activity: Rect,
    /// Question to the user.
    pub question: Rect,
    /// Line above the input.
    pub rule: Rect,
    /// Input.
    pub input: Rect,
    /// Status line.
    pub status: Rect,
}

/// Divides the screen.
pub fn screen_areas(state: &State) -> ScreenAreas {
    let Size { width, height } = state.size;
    let mut left = height;
    let mut take = |wanted: u16, keep: u16| {
        let taken = wanted.min(left.saturating_sub(keep));
        left -= taken;
        taken
    };
    // In order of importance: the first takes its rows first.
    let input = match state.reading {
        true => take(1, 0),
        false => take(state.input.height(), 0),
    };
    let status = take(1, 1);
    let question = take(question_height(state), least_beside_question(height));
    let activity = take(state.activity.height(), LEAST_TRANSCRIPT);
    let rule = take(u16::from(height >= WITH_RULE), LEAST_TRANSCRIPT);
    let queue = take(state.queue.height(), LEAST_TRANSCRIPT);
    let ahead = take(u16::from(!state.ahead.is_empty()), LEAST_TRANSCRIPT);
    let todos = take(state.todos.height(width, height), height / 2);
    let mut y = 0;
    let mut place = |height: u16| {
        let area = Rect::new(0, y, width, height);
        y += height;
        area
    };
    ScreenAreas {
        transcript: place(left),
        todos: place(todos),
        queue: place(queue),
        ahead: place(ahead),
        activity: place(activity),
        question: place(question),
        rule: place(rule),
        input: place(input),
        status: place(status),
    }
}

/// Row for toasts: the line above the input. Where there is none, they take the place of the
/// activity or of a row of the transcript; an overlay gives its last row.
pub fn toast_area(state: &State) -> Rect {
    let whole = whole(state.size);
    if state.overlays.iter().any(Layer::is_whole) {
        return row(whole, usize::from(whole.height).saturating_sub(1));
    }
    let areas = screen_areas(state);
    let transcript = areas.transcript;
    let last = row(transcript, usize::from(transcript.height).saturating_sub(1));
    let places = [areas.rule, areas.activity, last];
    let place = places.into_iter().find(|place| !place.is_empty());
    place.unwrap_or_default()
}

/// Area above the input and the line above it: a completion popup hides neither.
pub fn above_rule(areas: &ScreenAreas) -> Rect {
    Rect::new(0, 0, areas.rule.width, areas.rule.y)
}

/// Rows wanted by a question that stands above the input, which takes keys that do not
/// answer it.
fn question_height(state: &State) -> u16 {
    let is_covered = state.overlays.iter().any(Layer::is_whole);
    match state.question() {
        Some(question) if !is_covered && state.size.height >= WITH_RULE => question.height(),
        _ => 0,
    }
}

/// Rows that a question leaves: on a screen that is high enough for the transcript, the
/// activity line and the line above the input.
fn least_beside_question(height: u16) -> u16 {
    match height < 2 * WITH_RULE {
        true => 1,
        false => 2 + LEAST_TRANSCRIPT,
    }
}

/// Area of a question: above the input, or at the bottom of a screen without room for
/// both.
pub fn question_area(state: &State) -> Rect {
    let above = screen_areas(state).question;
    if above.height > 0 {
        return above;
    }
    let Size { width, height } = state.size;
    let wanted = state.question().map_or(0, Question::height);
    let wanted = wanted.min(height);
    Rect::new(0, height - wanted, width, wanted)
}
