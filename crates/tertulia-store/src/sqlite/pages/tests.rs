//! Reads back what SQLite wrote, and never panics on arbitrary bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use rusqlite::{Connection, params};

use super::*;
use crate::sqlite::wal;

type Row = (i64, i64, String, Vec<u8>);

/// Creates a database with these rows, plus others that are deleted again; returns the bytes of its
/// file and WAL.
fn made(rows: &[Row], page_size: u32, checkpointed: bool) -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let database = Connection::open(&path).unwrap();
    database
        .pragma_update(None, "page_size", page_size)
        .unwrap();
    database
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .unwrap();
    database.pragma_update(None, "secure_delete", "ON").unwrap();
    database
        .execute_batch(
            "CREATE TABLE t(n INTEGER PRIMARY KEY, a INTEGER, b TEXT, c BLOB);
             CREATE INDEX t_by_b ON t(b);",
        )
        .unwrap();
    for (n, a, b, c) in rows {
        database
            .execute("INSERT INTO t VALUES(?1, ?2, ?3, ?4)", params![n, a, b, c])
            .unwrap();
        database
            .execute(
                "INSERT INTO t VALUES(?1, 0, 'removed', '')",
                [n + 1_000_000],
            )
            .unwrap();
    }
    database
        .execute("DELETE FROM t WHERE n > 500000", [])
        .unwrap();
    if checkpointed {
        database
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
    }
    let read = |path: &Path| fs::read(path).unwrap_or_default();
    (read(&path), read(&folder.path().join("x.db-wal")))
}

/// Returns the pages as SQLite sees them, by number.
fn pages(file: &[u8], log: &[u8], page_size: usize) -> BTreeMap<u32, Vec<u8>> {
    let of_file = file.chunks(page_size).map(<[u8]>::to_vec);
    let mut pages: BTreeMap<u32, Vec<u8>> = (1..).zip(of_file).collect();
    for frame in wal::frames(log, page_size) {
        assert!(frame.committed);
        let bytes = &log[frame.offset..frame.offset + page_size];
        pages.insert(frame.page, bytes.to_vec());
    }
    pages
}

/// Returns the rows and index keys found in the pages.
fn found(pages: &BTreeMap<u32, Vec<u8>>) -> (Vec<Row>, Vec<(String, i64)>) {
    let (mut rows, mut keys) = (Vec::new(), Vec::new());
    for (number, bytes) in pages {
        let page = read(bytes, *number == 1);
        for cell in &page.cells {
            let (payload, _) = payload(bytes, cell, |number| pages.get(&number).cloned());
            let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
            match (cell.rowid, &record(&payload).unwrap()[..]) {
                (Some(n), [Value::Null, Value::Int(a), Value::Text(b), Value::Blob(c)]) => {
                    rows.push((n, *a, text(b), c.to_vec()));
                }
                (None, [Value::Text(b), Value::Int(n)]) => keys.push((text(b), *n)),
                _ => {}
            }
        }
    }
    rows.sort();
    keys.sort();
    (rows, keys)
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let numbers = prop_oneof![
        Just(0),
        Just(1),
        any::<i8>().prop_map(i64::from),
        any::<i64>()
    ];
    let text = prop_oneof![4 => "[a-z]{0,40}", 1 => "[a-z]{900,6000}"];
    let row = (numbers, text, prop::collection::vec(any::<u8>(), 0..1500));
    prop::collection::vec(row, 0..40).prop_map(|rows| {
        let numbered = (1..).zip(rows);
        numbered.map(|(n, (a, b, c))| (n, a, b, c)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_sqlite_wrote_is_found(
        rows in rows(),
        page_size in prop::sample::select(vec![512_u32, 1024, 4096]),
        checkpointed in any::<bool>(),
    ) {
        let (file, log) = made(&rows, page_size, checkpointed);
        let pages = pages(&file, &log, page_size as usize);
        let (back, keys) = found(&pages);
        let mut expected: Vec<(String, i64)> =
            rows.iter().map(|(n, _, b, _)| (b.clone(), *n)).collect();
        expected.sort();
        prop_assert_eq!(back, rows);
        prop_assert_eq!(keys, expected);
    }

    /// Cells are also found without the cell list.
    #[test]
    fn cells_are_found_without_their_list(rows in rows()) {
        let (file, _) = made(&rows, 1024, true);
        for bytes in file.chunks(1024).skip(1) {
            let page = read(bytes, false);
            if page.kind != Some(Kind::Table) {
                continue;
            }
            let mut garbled = bytes.to_vec();
            garbled[..8].fill(0xff);
            let carved = carve(&garbled, |values| values.len() == 4);
            for cell in &page.cells {
                prop_assert!(carved.contains(cell), "{cell:?} is not among {carved:?}");
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..2048), kind in 0..4_u8) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = [2, 5, 10, 13][usize::from(kind)];
        }
        for is_first in [true, false] {
            for cell in read(&bytes, is_first).cells {
                let (payload, _) = payload(&bytes, &cell, |_| Some(bytes.clone()));
                let _ = record(&payload);
            }
        }
        let _ = carve(&bytes, |_| true);
        let _ = record(&bytes);
        let _ = wal::frames(&bytes, 512);
    }
}

/// WAL frames count up to the last commit; frames after a damaged one are marked as not committed.
#[test]
fn a_damaged_log_is_taken_as_far_as_it_goes() {
    let rows: Vec<Row> = (1..30)
        .map(|n| (n, n, format!("row {n}"), vec![]))
        .collect();
    let (_, log) = made(&rows, 1024, false);
    let whole = wal::frames(&log, 1024);
    assert!(whole.iter().all(|frame| frame.committed));
    let mut damaged = log.clone();
    damaged[whole[20].offset] ^= 1;
    let frames = wal::frames(&damaged, 1024);
    assert_eq!(frames.len(), whole.len());
    assert!(frames[..15].iter().all(|frame| frame.committed));
    assert!(frames[20..].iter().all(|frame| !frame.committed));
    // Without the header no frame counts as committed, but all are found.
    damaged[..32].fill(0);
    let frames = wal::frames(&damaged, 1024);
    assert_eq!(frames.len(), whole.len());
    assert!(frames.iter().all(|frame| !frame.committed));
    // Cut in the middle of a transaction: uncommitted frames do not count.
    let cut = &log[..whole[whole.len() - 1].offset];
    assert!(wal::frames(cut, 1024).iter().all(|frame| frame.committed));
}
