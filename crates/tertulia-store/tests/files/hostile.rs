//! Files in a store that are named like logs and are none: each is named, and takes nothing else away.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::Path;

use tertulia_core::entry::Entry;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::Line;
use tertulia_store::files::FilesStore;
use tertulia_store::{Maintenance, Store};
use tertulia_testkit::ask::{assert_log, everything, found, list, look, now};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::Writer;

const BAD: &str = "01890000-0000-7000-8000-00000000bad0";

/// Makes a bad file in a store with a session, and checks that the session is there.
fn check(what: &str, make: impl Fn(&Path)) {
    for packed in ["", ".zst"] {
        let dir = tempfile::tempdir().unwrap();
        let store = FilesStore::open(dir.path()).unwrap();
        let mut writer = Writer::begin(&store, &still_clock(3));
        writer.say(&store, "some words");
        let log = dir
            .path()
            .join(format!("chat/1790000000000-{BAD}.jsonl{packed}"));
        make(&log);
        let bad: SessionId = BAD.parse().unwrap();
        assert_log(&store, &writer);
        assert_eq!(found(&store, "words"), [(writer.id, 2)], "{what}");
        let listing = list(&store, &everything());
        let is_named = listing
            .damaged
            .iter()
            .any(|session| session.id == Some(bad));
        assert!(is_named, "{what}{packed}: {listing:?}");
        let report = look(&store);
        let is_named = report.faults.iter().any(|fault| fault.contains(BAD));
        assert!(is_named, "{what}{packed}: {report:?}");
        let read = now(store.read(bad, Seq::START, 10));
        let is_entry = |line: &Line| Entry::decode(&line.bytes).is_ok();
        assert!(
            !read.is_ok_and(|lines| lines.iter().any(is_entry)),
            "{what}{packed}"
        );
        assert_eq!(now(store.info()).unwrap().format, 1, "{what}");
        writer.say(&store, "more of them");
        assert_log(&store, &writer);
    }
}

#[test]
fn a_fifo_is_not_waited_for() {
    check("a FIFO", |path| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    });
}

#[test]
fn a_socket_is_not_read() {
    check("a socket", |path| drop(UnixListener::bind(path).unwrap()));
}

#[test]
fn a_folder_is_not_read() {
    check("a folder", |path| fs::create_dir(path).unwrap());
}

#[test]
fn a_file_with_holes_is_not_read() {
    check("a sparse file", |path| {
        File::create(path).unwrap().set_len(20 << 30).unwrap();
    });
}

#[test]
fn a_file_that_unpacks_without_end_is_not_read() {
    let frame = zstd::bulk::compress(&vec![b' '; 32 << 20], 3).unwrap();
    check("many frames", |path| {
        let is_packed = path.extension().is_some_and(|end| end == "zst");
        let path = if is_packed {
            path.to_owned()
        } else {
            path.with_extension("jsonl.zst")
        };
        fs::write(path, frame.repeat(2000)).unwrap();
    });
}

#[test]
fn a_file_of_line_feeds_is_not_read_whole() {
    let frame = zstd::bulk::compress(&vec![b'\n'; 1 << 20], 3).unwrap();
    check("line feeds", |path| {
        match path.extension().is_some_and(|end| end == "zst") {
            true => fs::write(path, frame.repeat(4)).unwrap(),
            false => fs::write(path, vec![b'\n'; 1 << 20]).unwrap(),
        }
    });
}
