//! Reads the pages of an SQLite database without SQLite. A broken b-tree hides intact cells from
//! SQLite; this module finds them.
//!
//! The format is <https://www.sqlite.org/fileformat2.html>.

use std::ops::Range;

/// Bytes of page 1 before its b-tree header.
const FILE_HEADER: usize = 100;
/// The longest credible payload; a longer one is a damaged number.
const LARGEST_PAYLOAD: usize = 64 << 20;

/// Type of a b-tree page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Table leaf: rows.
    Table,
    /// Index leaf: keys.
    Index,
    /// Interior index page: keys and page numbers.
    IndexInterior,
    /// Interior table page: page numbers only.
    TableInterior,
}

/// A cell of a page: its local payload, and its first overflow page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Offset of the cell in its page.
    pub(super) offset: usize,
    /// The rowid, in a table.
    pub(super) rowid: Option<i64>,
    /// Size of the whole payload.
    pub(super) size: usize,
    local: Range<usize>,
    overflow: Option<u32>,
}

/// A parsed page.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// `None` if it is no b-tree page, or a damaged one.
    pub(super) kind: Option<Kind>,
    /// The listed cells that are inside the page.
    pub(super) cells: Vec<Cell>,
    /// True if all listed cells are there.
    pub(super) sound: bool,
}

/// A value of a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Int(i64),
    Real,
    Blob(&'a [u8]),
    Text(&'a [u8]),
    /// Some of its bytes are missing.
    Cut,
}

impl Value<'_> {
    pub(super) fn int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }
}

/// Reads the cells that a page lists.
pub(super) fn read(page: &[u8], is_first: bool) -> Page {
    let start = if is_first { FILE_HEADER } else { 0 };
    let kind = match page.get(start) {
        Some(2) => Kind::IndexInterior,
        Some(5) => Kind::TableInterior,
        Some(10) => Kind::Index,
        Some(13) => Kind::Table,
        _ => return Page::default(),
    };
    let header = match kind {
        Kind::IndexInterior | Kind::TableInterior => 12,
        Kind::Index | Kind::Table => 8,
    };
    let Some(count) = number16(page, start + 3) else {
        return Page::default();
    };
    let pointers = start + header;
    let content = pointers + 2 * usize::from(count);
    if kind == Kind::TableInterior {
        return Page {
            kind: Some(kind),
            cells: Vec::new(),
            sound: content <= page.len(),
        };
    }
    let cells: Vec<Cell> = (0..usize::from(count))
        .map_while(|at| number16(page, pointers + 2 * at))
        .filter(|offset| usize::from(*offset) >= content)
        .filter_map(|offset| cell_at(page, offset.into(), kind))
        .collect();
    Page {
        kind: Some(kind),
        sound: cells.len() == usize::from(count),
        cells,
    }
}

/// Finds table cells anywhere in a page by the shape of their records, for pages whose cell list is
/// damaged. `is_wanted` judges the values that are on this page.
pub(super) fn carve(page: &[u8], is_wanted: impl Fn(&[Value<'_>]) -> bool) -> Vec<Cell> {
    let is_row = |cell: &Cell| {
        // Every table here begins with its rowid column, which a record stores as NULL.
        let local = &page[cell.local.clone()];
        local.get(1) == Some(&0) && record(local).is_some_and(|values| is_wanted(&values))
    };
    // A match may be inside another cell, so every offset is tried.
    (0..page.len())
        .filter_map(|at| cell_at(page, at, Kind::Table))
        .filter(is_row)
        .collect()
}

/// Parses the cell at an offset, if it is inside the page.
pub(super) fn cell_at(page: &[u8], offset: usize, kind: Kind) -> Option<Cell> {
    let mut at = offset;
    if kind == Kind::IndexInterior {
        at += 4;
    }
    let size = varint(page, &mut at)?;
    let size = usize::try_from(size)
        .ok()
        .filter(|size| (1..=LARGEST_PAYLOAD).contains(size))?;
    let rowid = match kind {
        Kind::Table => Some(varint(page, &mut at)?),
        Kind::Index | Kind::IndexInterior => None,
        Kind::TableInterior => return None,
    };
    let local = local_size(page.len(), size, kind)?;
    let local = at..at.checked_add(local)?;
    page.get(local.clone())?;
    let overflow = match local.len() < size {
        true => Some(number32(page, local.end)?),
        false => None,
    };
    Some(Cell {
        offset,
        rowid,
        size,
        local,
        overflow,
    })
}

/// Returns how many bytes of a payload are on the cell's own page.
fn local_size(page: usize, payload: usize, kind: Kind) -> Option<usize> {
    let most = match kind {
        Kind::Table | Kind::TableInterior => page.checked_sub(35)?,
        Kind::Index | Kind::IndexInterior => (page.checked_sub(12)? * 64 / 255).checked_sub(23)?,
    };
    if payload <= most {
        return Some(payload);
    }
    let least = (page.checked_sub(12)? * 32 / 255).checked_sub(23)?;
    let kept = least + (payload - least) % (page - 4);
    Some(if kept <= most { kept } else { least })
}

/// Returns the payload of a cell as far as its pages are readable, and the numbers of its overflow
/// pages. `page_at` reads the overflow pages.
pub(super) fn payload(
    page: &[u8],
    cell: &Cell,
    mut page_at: impl FnMut(u32) -> Option<Vec<u8>>,
) -> (Vec<u8>, Vec<u32>) {
    let mut bytes = page.get(cell.local.clone()).unwrap_or_default().to_vec();
    let mut chain = Vec::new();
    let mut next = cell.overflow;
    while bytes.len() < cell.size
        && let Some(number) = next.filter(|number| *number > 0)
        && let Some(more) = page_at(number)
        && more.len() > 4
    {
        chain.push(number);
        let wanted = (cell.size - bytes.len()).min(more.len() - 4);
        bytes.extend_from_slice(&more[4..4 + wanted]);
        next = number32(&more, 0);
    }
    (bytes, chain)
}

/// Parses the values of a record. Incomplete values are [`Value::Cut`].
pub(super) fn record(payload: &[u8]) -> Option<Vec<Value<'_>>> {
    let mut at = 0;
    let header = usize::try_from(varint(payload, &mut at)?).ok()?;
    if header < at || header > payload.len() {
        return None;
    }
    let mut types = Vec::new();
    while at < header {
        types.push(varint(payload, &mut at)?);
    }
    if at != header {
        return None;
    }
    let mut values = Vec::with_capacity(types.len());
    for kind in types {
        let end = at.checked_add(length_of(kind)?)?;
        let value = match (payload.get(at..end), kind) {
            (None, _) => Value::Cut,
            (_, 0) => Value::Null,
            (_, 8) => Value::Int(0),
            (_, 9) => Value::Int(1),
            (_, 7) => Value::Real,
            (Some(bytes), 1..=6) => Value::Int(integer(bytes)),
            (Some(bytes), _) if kind % 2 == 0 => Value::Blob(bytes),
            (Some(bytes), _) => Value::Text(bytes),
        };
        values.push(value);
        at = end;
    }
    Some(values)
}

/// Returns the bytes of a record's last value, whatever length its header gives: they end where the
/// record ends.
pub(super) fn last_bytes(payload: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    let header = usize::try_from(varint(payload, &mut at)?).ok()?;
    let mut start = header;
    while at < header {
        let kind = varint(payload, &mut at)?;
        if at < header {
            start = start.checked_add(length_of(kind)?)?;
        }
    }
    payload.get(start..)
}

/// Returns the number of bytes of a value of a type.
fn length_of(kind: i64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => usize::try_from(kind).ok(),
        5 => Some(6),
        6 | 7 => Some(8),
        12.. => usize::try_from((kind - 12) / 2).ok(),
        _ => None,
    }
}

fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    bytes
        .iter()
        .fold(start, |number, byte| (number << 8) | i64::from(*byte))
}

/// Reads a varint of one to nine bytes and advances `at`.
fn varint(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let mut number: u64 = 0;
    for place in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if place == 8 {
            return Some(((number << 8) | u64::from(byte)).cast_signed());
        }
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number.cast_signed())
}

fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

pub(super) fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests;
