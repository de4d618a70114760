//! A database whose layout is damaged cannot be opened at all, though its words are all there. The
//! layout is the same in every store of a format, so that a fresh one can lend its own.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::Connection;

use super::open::{self, PAGE_SIZE, SCHEMA};
use super::trouble;
use crate::store::{StoreResult, place};

/// The part of the first page that describes the file.
const HEADER: usize = 100;
/// Where the header counts changes, twice, and where it knows of pages and of free ones.
const CHANGES: std::ops::Range<usize> = 24..28;
const PAGES: std::ops::Range<usize> = 28..32;
const FREE: std::ops::Range<usize> = 32..40;
const VALID_FOR: std::ops::Range<usize> = 92..96;

/// Makes a store openable again whose layout is damaged, keeping the original beside it. `None` if
/// there is nothing to mend here; the words say what was done.
pub fn mend(path: &Path, now: Timestamp) -> StoreResult<Option<String>> {
    let read =
        |path: &Path| fs::read(path).map_err(|error| place::trouble(path, "cannot read", error));
    let is_sound = || Connection::open(path).is_ok_and(|connection| layout_is_sound(&connection));
    if !path.is_file() || is_sound() {
        return Ok(None);
    }
    // What was not yet written back belongs to the pages that are about to be looked at.
    if let Ok(connection) = Connection::open(path) {
        let _ = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    }
    let damaged = read(path)?;
    if !is_ours(&damaged) {
        return Ok(None);
    }
    let temporary = beside(path, &format!("-mended-{}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mended = fresh_layout(&temporary).map(|(fresh, pages)| graft(&damaged, &fresh, &pages));
    let _ = fs::remove_file(&temporary);
    let kept = beside(path, &format!("-damaged-layout-{}", now.as_second()));
    place::replace_file(&kept, &damaged)?;
    place::replace_file(path, &mended?)?;
    place::sync_folder_of(path)?;
    Ok(Some(format!(
        "the layout of the database was damaged and is renewed; the original is kept as {}",
        kept.display()
    )))
}

/// Whether the layout can be read and is the one that every store has.
pub(super) fn layout_is_sound(connection: &Connection) -> bool {
    let Ok(fresh) = Connection::open_in_memory() else {
        return true;
    };
    let laid_out =
        |connection: &Connection| -> rusqlite::Result<Vec<(String, i64, Option<String>)>> {
            connection
                .prepare("SELECT name, rootpage, sql FROM sqlite_schema ORDER BY name")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect()
        };
    let same = open::lay_out(&fresh).and_then(|()| Ok(laid_out(connection)? == laid_out(&fresh)?));
    same.unwrap_or(false)
}

/// Whether anything in the file says that it was one of our stores.
fn is_ours(bytes: &[u8]) -> bool {
    let tables = SCHEMA.lines().filter(|line| line.starts_with("CREATE"));
    let head = &bytes[..bytes.len().min(64 * PAGE_SIZE as usize)];
    bytes.len() >= 2 * PAGE_SIZE as usize
        && bytes.len().is_multiple_of(PAGE_SIZE as usize)
        && tables.into_iter().any(|line| {
            let line = line.as_bytes();
            head.windows(line.len()).any(|window| window == line)
        })
}

/// A fresh database, and the pages that hold its layout.
fn fresh_layout(path: &Path) -> StoreResult<(Vec<u8>, Vec<usize>)> {
    let make = || -> rusqlite::Result<Vec<usize>> {
        let connection = Connection::open(path)?;
        open::lay_out(&connection)?;
        let pages = connection
            .prepare("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'")?
            .query_map([], |row| row.get::<_, i64>(0))?
            .map(|page| page.map(|page| usize::try_from(page).unwrap_or(1)))
            .collect::<rusqlite::Result<_>>()?;
        connection.close().map_err(|(_, error)| error)?;
        Ok(pages)
    };
    place::create_file(path).map_err(|error| place::trouble(path, "cannot make", error))?;
    let pages = make().map_err(|error| trouble(path, "cannot lay out a database", error))?;
    let bytes = fs::read(path).map_err(|error| place::trouble(path, "cannot read", error))?;
    Ok((bytes, pages))
}

/// The damaged file with the fresh one's layout.
fn graft(damaged: &[u8], fresh: &[u8], pages: &[usize]) -> Vec<u8> {
    let size = PAGE_SIZE as usize;
    let mut mended = damaged.to_vec();
    for page in pages {
        let place = (page - 1) * size..page * size;
        if let (Some(to), Some(from)) = (mended.get_mut(place.clone()), fresh.get(place)) {
            to.copy_from_slice(from);
        }
    }
    let count = u32::try_from(damaged.len() / size).unwrap_or(u32::MAX);
    let free = u32::from_be_bytes(
        damaged[FREE.start..FREE.start + 4]
            .try_into()
            .unwrap_or_default(),
    );
    let header = &mut mended[..HEADER];
    header[PAGES].copy_from_slice(&count.to_be_bytes());
    if free <= count {
        header[FREE].copy_from_slice(&damaged[FREE]);
    }
    let changes: [u8; 4] = header[CHANGES].try_into().unwrap_or_default();
    header[VALID_FOR].copy_from_slice(&changes);
    mended
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
