//! What is special to the store in a folder of logs: its bytes on disk.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use pollster::block_on;
use tertulia::entry::{
    Body, Created, Entry, Forked, Head, Kind, Message, Origin, Relation, Role, Speaker,
    SpeakerKind, Unsealed,
};
use tertulia::id::{EntryId, Seq, SessionId};
use tertulia::query::{Filter, Lookup, Page, SearchQuery};
use tertulia::session::{Line, Log};
use tertulia::store::files::FilesStore;
use tertulia::store::{Care, Draft, NewSession, Progress, Report, Store, StoreError};
use tertulia::words::Words;
use uuid::Uuid;

fn id(n: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(n))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn unsealed(body: Body) -> Unsealed {
    Unsealed {
        id: EntryId::new(Uuid::new_v4()),
        at: at(0),
        body,
        redacted: BTreeMap::new(),
    }
}

fn said(content: &str) -> Unsealed {
    unsealed(Body::Message(Message {
        speaker: Speaker::plain("ana", SpeakerKind::Human),
        role: Role::User,
        content: content.to_owned(),
        thread: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        usage: None,
        model: None,
        interrupted: false,
    }))
}

fn opening(session: SessionId) -> Unsealed {
    unsealed(Body::Created(Created {
        session,
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        cwd: None,
    }))
}

struct Home {
    home: tempfile::TempDir,
    store: FilesStore,
}

impl Home {
    fn new() -> Home {
        let home = tempfile::tempdir().unwrap();
        let store = FilesStore::open(&home.path().join("s")).unwrap();
        Home { home, store }
    }

    fn dir(&self) -> PathBuf {
        self.home.path().join("s")
    }

    fn again(&self) -> FilesStore {
        FilesStore::open(&self.dir()).unwrap()
    }

    fn create(&self, session: SessionId) -> Head {
        let entries = Entry::seal(&Head::START, vec![opening(session)]).unwrap();
        self.make(session, None, entries).unwrap()
    }

    fn make(
        &self,
        session: SessionId,
        base: Option<Origin>,
        entries: Vec<Entry>,
    ) -> Result<Head, StoreError> {
        block_on(self.store.create(&NewSession {
            id: session,
            base,
            entries,
        }))
    }

    fn say(&self, session: SessionId, after: Head, words: &[&str]) -> Head {
        say(&self.store, session, after, words).unwrap()
    }

    fn fork(&self, session: SessionId, from: SessionId, head: Head) -> Head {
        let origin = Origin {
            id: from,
            seq: head.seq,
            hash: head.hash,
        };
        let forked = unsealed(Body::Forked(Forked {
            session,
            from: origin.clone(),
            relation: Relation::Fork,
            title: None,
            project: None,
            cwd: None,
        }));
        let entries = Entry::seal(&head, vec![forked, said("in the fork")]).unwrap();
        self.make(session, Some(origin), entries).unwrap()
    }

    fn read(&self, session: SessionId) -> Vec<Line> {
        block_on(self.store.read(session, Seq::START, usize::MAX)).unwrap()
    }

    fn log(&self, session: SessionId) -> PathBuf {
        files_under(&self.dir())
            .into_iter()
            .find(|path| {
                path.to_string_lossy()
                    .ends_with(&format!("{session}.jsonl"))
            })
            .unwrap()
    }

    fn check(&self) -> Report {
        block_on(self.store.check(Care::Look, &Progress::unseen())).unwrap()
    }

    fn repair(&self) -> Report {
        block_on(
            self.store
                .check(Care::Repair(at(5000)), &Progress::unseen()),
        )
        .unwrap()
    }

    fn listed(&self) -> Vec<SessionId> {
        let listing = block_on(self.store.list(&Filter::default(), &Page::first(100))).unwrap();
        listing.rows.iter().map(|row| row.summary.id).collect()
    }

    fn hits(&self, words: &str) -> Vec<SessionId> {
        let query = SearchQuery {
            words: Words::parse(words).unwrap(),
            filter: Filter::default(),
            speaker: None,
            role: None,
            limit: 50,
        };
        let hits = block_on(self.store.search(&query, &Progress::unseen())).unwrap();
        hits.hits.iter().map(|hit| hit.session).collect()
    }
}

fn say(
    store: &FilesStore,
    session: SessionId,
    after: Head,
    words: &[&str],
) -> Result<Head, StoreError> {
    let new = words.iter().map(|words| said(words)).collect();
    let entries = Entry::seal(&after, new).unwrap();
    block_on(store.append(session, after, &entries))
}

fn files_under(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_under(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn seqs(lines: &[Line]) -> Vec<u64> {
    lines.iter().map(|line| line.seq.0).collect()
}

fn is_sound(session: SessionId, lines: &[Line]) -> bool {
    Log::read(session, Some(Head::START), Seq::START, lines)
        .damage
        .is_empty()
}

/// Replaces the first `from` in a log by as many other bytes.
fn spoil(path: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn an_append_cut_off_anywhere_leaves_all_that_was_acknowledged() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let head = home.say(session, head, &["first", "second"]);
    let path = home.log(session);
    let sound = fs::read(&path).unwrap();
    home.say(session, head, &["third", "fourth"]);
    let whole = fs::read(&path).unwrap();
    for cut in sound.len()..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let lines = home.read(session);
        assert_eq!(seqs(&lines), [1, 2, 3], "cut at {cut}");
        assert!(home.check().is_clean());
        let expected_notes = usize::from(cut > sound.len());
        assert_eq!(home.check().notes.len(), expected_notes, "cut at {cut}");
        home.say(session, head, &["anew"]);
        let lines = home.read(session);
        assert_eq!(seqs(&lines), [1, 2, 3, 4]);
        assert!(is_sound(session, &lines));
        let torn = PathBuf::from(format!("{}.torn-{}", path.display(), sound.len()));
        if cut > sound.len() {
            assert_eq!(fs::read(&torn).unwrap(), &whole[sound.len()..cut]);
            assert_eq!(mode(&torn), 0o600);
            fs::remove_file(&torn).unwrap();
        } else {
            assert!(!torn.exists());
        }
    }
}

#[test]
fn a_log_cut_off_in_its_making_is_no_session() {
    let home = Home::new();
    let session = id(1);
    home.create(session);
    let path = home.log(session);
    let whole = fs::read(&path).unwrap();
    for cut in [0, 1, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        assert!(home.listed().is_empty());
        let read = block_on(home.store.read(session, Seq::START, 10));
        assert!(matches!(read, Err(StoreError::NotFound(_))));
        let report = home.check();
        assert!(report.is_clean() && !report.notes.is_empty());
    }
    // The id is free, and the bytes are kept.
    home.create(session);
    assert_eq!(home.listed(), [session]);
    let kept = PathBuf::from(format!("{}.torn-0", path.display()));
    assert_eq!(fs::read(kept).unwrap(), &whole[..whole.len() - 1]);
    let taken = Entry::seal(&Head::START, vec![opening(session)]).unwrap();
    assert!(matches!(
        home.make(session, None, taken),
        Err(StoreError::Exists(_))
    ));
}

#[test]
fn of_two_who_write_one_is_told() {
    let home = Home::new();
    let other = home.again();
    let session = id(1);
    let head = home.create(session);
    let ours = home.say(session, head, &["ours"]);
    match say(&other, session, head, &["theirs"]) {
        Err(StoreError::Conflict { head, .. }) => assert_eq!(head, ours),
        answer => panic!("{answer:?}"),
    }
    let theirs = say(&other, session, ours, &["theirs"]).unwrap();
    assert!(say(&home.store, session, ours, &["late"]).is_err());
    home.say(session, theirs, &["in turn"]);
    assert!(is_sound(session, &home.read(session)));
    // One removes what the other has open.
    let head = block_on(home.store.find(&Lookup::Id(session), 1)).unwrap()[0]
        .summary
        .head;
    block_on(other.purge(session)).unwrap();
    assert!(matches!(
        say(&home.store, session, head, &["too late"]),
        Err(StoreError::NotFound(_))
    ));
}

#[test]
fn many_writers_lose_nothing() {
    let home = Home::new();
    let session = id(1);
    home.create(session);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = home.again();
            scope.spawn(move || {
                let mut done = 0;
                while done < 20 {
                    let head = block_on(store.find(&Lookup::Id(session), 1)).unwrap()[0]
                        .summary
                        .head;
                    match say(&store, session, head, &[&format!("{writer} {done}"), "and"]) {
                        Ok(_) => done += 1,
                        Err(StoreError::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let lines = home.read(session);
    assert_eq!(lines.len(), 1 + 4 * 20 * 2);
    assert!(is_sound(session, &lines));
}

#[test]
fn reading_a_piece_is_reading_all_and_cutting() {
    let home = Home::new();
    let session = id(1);
    let mut entries = Entry::seal(&Head::START, vec![opening(session)]).unwrap();
    let mut random: u64 = 42;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    while entries.len() < 5000 {
        let words = "x".repeat(usize::try_from(next(400)).unwrap());
        let head = entries.last().unwrap().head();
        entries.extend(Entry::seal(&head, vec![said(&words)]).unwrap());
    }
    home.make(session, None, entries).unwrap();
    let path = home.log(session);
    let check = |next: &mut dyn FnMut(u64) -> u64| {
        let all = home.read(session);
        assert_eq!(all.len(), 5000);
        for _ in 0..200 {
            let after = next(5100);
            let limit = usize::try_from(next(80)).unwrap();
            let piece = block_on(home.store.read(session, Seq(after), limit)).unwrap();
            let expected: Vec<Line> = all
                .iter()
                .filter(|line| line.seq.0 > after)
                .take(limit)
                .cloned()
                .collect();
            assert_eq!(piece, expected, "after {after}, {limit}");
        }
        all
    };
    let sound = check(&mut next);
    // Damage moves nothing else: one line is rubbish, one calls itself another.
    spoil(&path, "{\"v\":1,\"seq\":2500,", "#\"v\":1,\"seq\":2500,");
    spoil(&path, "{\"v\":1,\"seq\":3000,", "{\"v\":1,\"seq\":9000,");
    let spoilt = check(&mut next);
    assert_eq!(seqs(&spoilt), seqs(&sound));
    let log = Log::read(session, Some(Head::START), Seq::START, &spoilt);
    let damaged: Vec<u64> = log.damage.iter().map(|damage| damage.seq.0).collect();
    assert_eq!(damaged, [2500, 3000]);
}

#[test]
fn damage_is_found_and_repaired() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let middle = home.say(session, head, &["one", "two"]);
    let head = home.say(session, middle, &["three"]);
    let fork = id(2);
    home.fork(fork, session, middle);
    let late = id(3);
    home.fork(late, session, head);
    assert!(home.check().is_clean());
    let path = home.log(session);
    spoil(&path, "\"two\"", "\"wto\"");
    let report = home.check();
    assert_eq!(report.damage.len(), 1);
    assert_eq!(report.damage[0].seq, Seq(3));
    let report = home.repair();
    assert!(!report.repaired.is_empty() && !report.lost.is_empty());
    assert!(home.check().is_clean(), "{:?}", home.check());
    for session in [session, fork, late] {
        assert!(is_sound(session, &home.read(session)));
    }
    let kept = PathBuf::from(format!(
        "{}.damaged-{}",
        path.display(),
        at(5000).as_second()
    ));
    assert!(fs::read_to_string(kept).unwrap().contains("wto"));
    assert_eq!(home.listed().len(), 3);
    assert_eq!(home.hits("fork").len(), 2);
}

#[test]
fn a_damaged_last_line_stops_appends_until_a_repair() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let head = home.say(session, head, &["one"]);
    let path = home.log(session);
    spoil(&path, "\"type\":\"message\"", "\"type\"#\"message\"");
    assert_eq!(seqs(&home.read(session)), [1, 2]);
    match say(&home.again(), session, head, &["two"]) {
        Err(StoreError::Damaged { reason, .. }) => assert!(reason.contains("repair")),
        answer => panic!("{answer:?}"),
    }
    let open = block_on(home.store.claim(session)).unwrap();
    let refused = block_on(
        home.store
            .check(Care::Repair(at(5000)), &Progress::unseen()),
    );
    assert!(matches!(refused, Err(StoreError::Locked { .. })));
    drop(open);
    home.repair();
    assert!(home.check().is_clean());
    let lines = home.read(session);
    let head = Entry::decode(&lines.last().unwrap().bytes).unwrap().head();
    home.say(session, head, &["two"]);
    assert!(is_sound(session, &home.read(session)));
}

#[test]
fn a_fork_outlives_its_first_line() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let head = home.say(session, head, &["shared words"]);
    let fork = id(2);
    home.fork(fork, session, head);
    spoil(
        &home.log(fork),
        "\"type\":\"forked\"",
        "\"type\"#\"forked\"",
    );
    assert_eq!(seqs(&home.read(fork)), [1, 2, 3, 4]);
    assert_eq!(home.check().damage.len(), 1);
    home.repair();
    assert!(home.check().is_clean(), "{:?}", home.check());
    let lines = home.read(fork);
    assert!(is_sound(fork, &lines) && lines.len() >= 4);
    // Without its base the places stay, and the words are gone.
    fs::remove_file(home.log(session)).unwrap();
    assert!(!home.check().is_clean());
    home.repair();
    assert!(home.check().is_clean(), "{:?}", home.check());
    assert!(is_sound(fork, &home.read(fork)));
}

#[test]
fn what_is_no_log_is_named_and_hides_nothing() {
    let home = Home::new();
    let session = id(1);
    home.create(session);
    let folder = home.log(session).parent().unwrap().to_owned();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    for (n, content) in [&b"\n\n\n"[..], &[0; 3000], b"{}\n{}\n", b"rubbish"]
        .into_iter()
        .enumerate()
    {
        let name = format!("{n}-{}.jsonl", id(100 + n as u128));
        fs::write(folder.join(name), content).unwrap();
    }
    let report = home.check();
    assert!(report.notes.iter().any(|note| note.contains("notes.txt")));
    assert_eq!(report.damage.len(), 5);
    assert!(home.listed().contains(&session));
    assert!(home.hits("nothing").is_empty());
    home.repair();
    assert!(home.check().is_clean(), "{:?}", home.check());
    assert!(folder.join("notes.txt").exists());
}

#[test]
fn a_log_under_a_wrong_name_gets_its_own() {
    let home = Home::new();
    let session = id(1);
    home.create(session);
    let path = home.log(session);
    fs::rename(&path, path.with_file_name(format!("7-{}.jsonl", id(9)))).unwrap();
    assert!(!home.check().is_clean());
    home.repair();
    assert!(home.check().is_clean());
    assert_eq!(home.listed(), [session]);
}

#[test]
fn a_purged_session_leaves_what_its_forks_share() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let shared = home.say(session, head, &["shared words"]);
    home.say(session, shared, &["private words"]);
    let fork = id(2);
    let fork_head = home.fork(fork, session, shared);
    let of_fork = id(3);
    home.fork(of_fork, fork, fork_head);
    assert_eq!(home.hits("words").len(), 2);
    block_on(home.store.purge(session)).unwrap();
    assert!(matches!(
        block_on(home.store.read(session, Seq::START, 1)),
        Err(StoreError::NotFound(_))
    ));
    assert!(matches!(
        block_on(home.store.purge(session)),
        Err(StoreError::NotFound(_))
    ));
    assert!(!home.listed().contains(&session));
    assert!(
        block_on(home.store.find(&Lookup::Id(session), 1))
            .unwrap()
            .is_empty()
    );
    assert_eq!(seqs(&home.read(of_fork)), [1, 2, 3, 4, 5, 6]);
    assert_eq!(home.hits("shared").len(), 1);
    assert!(home.hits("private").is_empty());
    for file in files_under(&home.dir()) {
        let bytes = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!bytes.contains("private words"), "{}", file.display());
    }
    assert!(home.check().is_clean());
    // The id can be used again; the forks keep to what they shared.
    let before = home.read(of_fork);
    home.create(session);
    assert_eq!(home.listed().len(), 3);
    assert_eq!(home.read(of_fork), before);
    assert_eq!(home.again_reads(of_fork), before);
    assert!(home.check().is_clean(), "{:?}", home.check());
    block_on(home.store.purge(session)).unwrap();
    assert_eq!(home.read(of_fork), before);
    // Without forks nothing stays.
    block_on(home.store.purge(of_fork)).unwrap();
    assert!(
        !files_under(&home.dir())
            .iter()
            .any(|path| path.to_string_lossy().contains(&of_fork.to_string()))
    );
}

/// What forks share is found without derived data, also through a session of which nothing is left.
#[test]
fn a_fork_finds_its_beginning_past_what_is_gone() {
    let home = Home::new();
    let (base, middle, low) = (id(1), id(2), id(3));
    let first = home.create(base);
    let head = home.say(base, first, &["shared words"]);
    home.fork(middle, base, head);
    home.fork(low, middle, first);
    let before = home.read(low);
    block_on(home.store.purge(middle)).unwrap();
    assert!(
        !files_under(&home.dir())
            .iter()
            .any(|path| path.to_string_lossy().contains(&middle.to_string()))
    );
    block_on(home.store.purge(base)).unwrap();
    fs::remove_dir_all(home.dir().join(".index")).unwrap();
    assert_eq!(home.again_reads(low), before);
    assert!(home.check().is_clean(), "{:?}", home.check());
    let of_low = id(4);
    home.fork(of_low, low, first);
    let before = home.read(of_low);
    // Its way leads past two.
    block_on(home.store.purge(low)).unwrap();
    assert_eq!(home.again_reads(of_low), before);
    assert_eq!(block_on(home.store.info()).unwrap().entries, 1 + 2);
    assert!(home.check().is_clean(), "{:?}", home.check());
    block_on(home.store.purge(of_low)).unwrap();
    assert_eq!(logs_under(&home.dir()), [] as [PathBuf; 0]);
}

/// A purge that was cut off between leaving what is shared and removing the log.
#[test]
fn a_purge_that_was_cut_off_can_be_done_again() {
    let home = Home::new();
    let (base, fork) = (id(1), id(2));
    let first = home.create(base);
    let head = home.say(base, first, &["shared words"]);
    home.say(base, head, &["private words"]);
    home.fork(fork, base, head);
    let (path, log) = (home.log(base), fs::read(home.log(base)).unwrap());
    let (whole, shared) = (home.read(base), home.read(fork));
    block_on(home.store.purge(base)).unwrap();
    fs::write(&path, &log).unwrap();
    assert_eq!(home.again_reads(base), whole);
    assert_eq!(home.again_reads(fork), shared);
    assert!(home.check().is_clean(), "{:?}", home.check());
    block_on(home.store.purge(base)).unwrap();
    assert_eq!(home.again_reads(fork), shared);
    assert_eq!(logs_under(&home.dir()).len(), 2);
    // Only the log had still to be cut: the next purge of any session does it.
    let husk = path.with_extension("shared");
    fs::write(&husk, &log).unwrap();
    assert_eq!(home.again_reads(fork), shared);
    home.create(id(9));
    block_on(home.store.purge(id(9))).unwrap();
    assert_eq!(home.again_reads(fork), shared);
    for file in files_under(&home.dir()) {
        let bytes = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!bytes.contains("private"), "{}", file.display());
    }
    block_on(home.store.purge(fork)).unwrap();
    assert_eq!(logs_under(&home.dir()), [] as [PathBuf; 0]);
}

/// The logs and what is kept beside them.
fn logs_under(dir: &Path) -> Vec<PathBuf> {
    let mut logs = files_under(dir);
    logs.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains(".jsonl") || name.contains(".shared")
    });
    logs
}

impl Home {
    fn again_reads(&self, session: SessionId) -> Vec<Line> {
        block_on(self.again().read(session, Seq::START, usize::MAX)).unwrap()
    }
}

#[test]
fn only_a_store_is_opened() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("s");
    let refused = |dir: &Path| matches!(FilesStore::open(dir), Err(StoreError::NotAStore { .. }));
    fs::write(&dir, "a file").unwrap();
    assert!(refused(&dir));
    fs::remove_file(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("letter.txt"), "dear").unwrap();
    assert!(refused(&dir));
    assert_eq!(files_under(&dir).len(), 1);
    fs::remove_file(dir.join("letter.txt")).unwrap();
    let marker = dir.join("tertulia-store.json");
    for content in ["", "[]", "{\"format\":1,\"backend\":\"other\"}"] {
        fs::write(&marker, content).unwrap();
        assert!(refused(&dir), "{content}");
        assert_eq!(fs::read_to_string(&marker).unwrap(), content);
    }
    fs::write(&marker, "{\"format\":2,\"else\":true}").unwrap();
    assert!(matches!(
        FilesStore::open(&dir),
        Err(StoreError::NewerFormat { found: 2, .. })
    ));
    assert_eq!(files_under(&dir).len(), 1);
    fs::remove_file(&marker).unwrap();
    FilesStore::open(&dir).unwrap();
    let marked = fs::read_to_string(&marker).unwrap();
    assert_eq!(marked.trim(), "{\"format\":1,\"backend\":\"files\"}");
    FilesStore::open(&dir).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn everything_is_private_whatever_the_umask() {
    rustix::process::umask(rustix::fs::Mode::empty());
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let head = home.say(session, head, &["words"]);
    let draft = Draft {
        after: head,
        id: EntryId::new(Uuid::from_u128(7)),
        at: at(1),
        speaker: Speaker::plain("bo", SpeakerKind::Ai),
        model: None,
        thread: None,
        content: "half".into(),
    };
    block_on(home.store.keep_draft(session, &draft)).unwrap();
    assert_eq!(block_on(home.store.draft(session)).unwrap(), Some(draft));
    home.hits("words");
    let _claim = block_on(home.store.claim(session)).unwrap();
    for file in files_under(&home.dir()) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        assert_eq!(mode(file.parent().unwrap()), 0o700);
    }
    home.say(session, head, &["more"]);
    assert_eq!(block_on(home.store.draft(session)).unwrap(), None);
    assert!(
        fs::read_dir(home.dir().join(".drafts"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn derived_data_may_be_deleted_and_logs_replaced() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let old = fs::read(home.log(session)).unwrap();
    let longer = home.say(session, head, &["apples"]);
    let other = home.create(id(2));
    home.say(id(2), other, &["pears"]);
    assert_eq!(home.hits("apples"), [session]);
    fs::remove_dir_all(home.dir().join(".index")).unwrap();
    let again = Home {
        store: home.again(),
        home: home.home,
    };
    assert_eq!(again.hits("pears"), [id(2)]);
    assert_eq!(again.listed().len(), 2);
    // Only one of the two is deleted: the numbers in the index mean nothing any more.
    for file in files_under(&again.dir().join(".index")) {
        if file.to_string_lossy().contains("catalogue") {
            fs::remove_file(file).unwrap();
        }
    }
    assert_eq!(again.hits("apples"), [session]);
    // A log that was put back from a copy, and has grown differently since.
    fs::write(again.log(session), old).unwrap();
    let row = block_on(again.store.find(&Lookup::Id(session), 1)).unwrap();
    assert_eq!(row[0].summary.head, head);
    assert!(say(&again.store, session, longer, &["no"]).is_err());
    again.say(session, head, &["plums", "and", "cherries"]);
    assert_eq!(again.hits("cherries"), [session]);
    assert!(again.hits("apples").is_empty());
    assert!(again.check().is_clean());
    fs::remove_file(again.log(id(2))).unwrap();
    assert!(again.hits("pears").is_empty());
    assert_eq!(again.listed(), [session]);
}

#[test]
fn a_fork_lists_what_a_full_fold_says() {
    let home = Home::new();
    let session = id(1);
    let mut head = home.create(session);
    let mut heads = vec![head];
    for n in 0..600 {
        head = home.say(session, head, &[&format!("message {n}")]);
        heads.push(head);
    }
    home.listed();
    for (n, place) in [(2, 0), (3, 255), (4, 400), (5, 600)] {
        home.fork(id(n), session, heads[place]);
    }
    home.fork(id(6), id(4), heads[300]);
    home.listed();
    for n in 1..=6 {
        let entries: Vec<Entry> = home
            .read(id(n))
            .iter()
            .map(|line| Entry::decode(&line.bytes).unwrap())
            .collect();
        let folded = tertulia::session::Summary::of(id(n), &entries);
        let found = block_on(home.store.find(&Lookup::Id(id(n)), 1)).unwrap();
        assert_eq!(found[0].summary, folded, "session {n}");
    }
    assert!(home.check().is_clean());
    let info = block_on(home.store.info()).unwrap();
    assert_eq!((info.sessions, info.entries), (6, 601 + 5 * 2));
    let rebuilt = block_on(home.store.rebuild(&Progress::unseen())).unwrap();
    assert_eq!((rebuilt.sessions, rebuilt.entries), (6, 611));
    assert_eq!(home.listed().len(), 6);
}

#[test]
fn where_nothing_can_be_derived_on_disk_it_is_derived_in_memory() {
    let home = Home::new();
    fs::write(home.dir().join(".index"), "in the way").unwrap();
    let session = id(1);
    let head = home.create(session);
    home.say(session, head, &["words"]);
    assert_eq!(home.listed(), [session]);
    assert_eq!(home.hits("words"), [session]);
    home.say(session, home_head(&home, session), &["others"]);
    assert_eq!(home.hits("others"), [session]);
    assert!(home.check().is_clean());
}

fn home_head(home: &Home, session: SessionId) -> Head {
    let found = block_on(home.store.find(&Lookup::Id(session), 1)).unwrap();
    found[0].summary.head
}

#[test]
fn damaged_derived_data_is_derived_anew() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    home.say(session, head, &["words"]);
    assert_eq!(home.hits("words"), [session]);
    let index = home.dir().join(".index");
    for name in ["catalogue.db", "search.db"] {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(index.join(format!("{name}{suffix}")));
        }
        fs::write(index.join(name), [7; 5000]).unwrap();
    }
    let again = Home {
        store: home.again(),
        home: home.home,
    };
    assert_eq!(again.listed(), [session]);
    assert_eq!(again.hits("words"), [session]);
    assert!(again.check().is_clean());
}

#[test]
fn logs_that_continue_each_other_in_a_circle_end() {
    let home = Home::new();
    let head = home.create(id(1));
    let head = home.say(id(1), head, &["words"]);
    home.fork(id(2), id(1), head);
    home.fork(id(3), id(2), head);
    // The second is made to continue the third.
    let (from, to) = (id(1).to_string(), id(3).to_string());
    spoil(&home.log(id(2)), &from, &to);
    assert!(!home.read(id(2)).is_empty());
    home.listed();
    home.hits("words");
    assert!(!home.check().is_clean());
    home.repair();
    block_on(home.store.purge(id(2))).unwrap();
}

/// One step of a random story, told to both stores.
#[expect(
    clippy::too_many_lines,
    reason = "one arm for each thing that can happen"
)]
fn step(
    stores: &[&dyn Store; 2],
    random: &mut dyn FnMut(u64) -> u64,
    sessions: &mut Vec<SessionId>,
    n: i64,
) {
    let agree = |answers: Vec<String>| assert_eq!(answers[0], answers[1], "step {n}");
    let entry = |body: Body| Unsealed {
        at: at(n),
        ..unsealed(body)
    };
    let project = (random(2) == 0).then(|| "here".to_owned());
    let fresh = id(1000 + u128::from(n.unsigned_abs()));
    let pick = sessions
        .get(usize::try_from(random(sessions.len() as u64 + 1)).unwrap())
        .copied();
    let lines = pick.and_then(|pick| block_on(stores[0].read(pick, Seq::START, usize::MAX)).ok());
    let heads: Vec<Head> = lines
        .unwrap_or_default()
        .iter()
        .map(|line| Entry::decode(&line.bytes).unwrap().head())
        .collect();
    let Some((pick, head)) = pick.zip(heads.last().copied()) else {
        let created = entry(Body::Created(Created {
            session: fresh,
            kind: Kind::Team,
            title: Some(format!("title {}", random(4))),
            team: Some("The Team".into()),
            project,
            cwd: None,
        }));
        let entries = Entry::seal(&Head::START, vec![created]).unwrap();
        let new = NewSession {
            id: fresh,
            base: None,
            entries,
        };
        agree(
            stores
                .iter()
                .map(|store| format!("{:?}", block_on(store.create(&new))))
                .collect(),
        );
        sessions.push(fresh);
        return;
    };
    let place = heads[usize::try_from(random(heads.len() as u64)).unwrap()];
    match random(10) {
        0 | 1 => {
            let from = Origin {
                id: pick,
                seq: place.seq,
                hash: place.hash,
            };
            let forked = entry(Body::Forked(Forked {
                session: fresh,
                from: from.clone(),
                relation: Relation::Fork,
                title: None,
                project,
                cwd: None,
            }));
            let entries = Entry::seal(&place, vec![forked]).unwrap();
            let new = NewSession {
                id: fresh,
                base: Some(from),
                entries,
            };
            agree(
                stores
                    .iter()
                    .map(|store| format!("{:?}", block_on(store.create(&new))))
                    .collect(),
            );
            sessions.push(fresh);
        }
        2 => {
            agree(
                stores
                    .iter()
                    .map(|store| format!("{:?}", block_on(store.purge(pick))))
                    .collect(),
            );
        }
        kind => {
            let body = match kind {
                3 => Body::Trashed(tertulia::entry::Touched {
                    operation: EntryId::new(Uuid::from_u128(1)),
                }),
                4 => Body::Renamed(tertulia::entry::Renamed {
                    title: format!("title {}", random(4)),
                    operation: EntryId::new(Uuid::from_u128(2)),
                }),
                _ => {
                    said(
                        ["apples and pears", "pears", "plums"][usize::try_from(random(3)).unwrap()],
                    )
                    .body
                }
            };
            let after = if random(8) == 0 { place } else { head };
            let entries =
                Entry::seal(&after, vec![entry(body), entry(said("apples").body)]).unwrap();
            agree(
                stores
                    .iter()
                    .map(|store| format!("{:?}", block_on(store.append(pick, after, &entries))))
                    .collect(),
            );
        }
    }
}

#[test]
fn it_tells_the_same_story_as_the_database() {
    for seed in 1..=8 {
        tell_the_same_story(seed);
    }
}

fn read_the_same(one: &dyn Store, other: &dyn Store, sessions: &[SessionId]) {
    for session in sessions {
        let [one, other] = [one, other]
            .map(|store| block_on(store.read(*session, Seq::START, usize::MAX)))
            .map(|read| format!("{read:?}"));
        assert_eq!(one, other);
    }
}

fn tell_the_same_story(story: u64) {
    let home = Home::new();
    let database = tertulia::store::sqlite::SqliteStore::in_memory().unwrap();
    let stores: [&dyn Store; 2] = [&database, &home.store];
    let mut seed = story;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut sessions = Vec::new();
    for n in 0..250 {
        step(&stores, &mut random, &mut sessions, n);
        if n % 10 != 9 {
            continue;
        }
        for (project, trash) in [
            (None, tertulia::query::Trash::Without),
            (Some("here".to_owned()), tertulia::query::Trash::Without),
            (Some("here".to_owned()), tertulia::query::Trash::Only),
            (None, tertulia::query::Trash::With),
        ] {
            let order = if n % 20 == 9 {
                tertulia::query::Order::Updated
            } else {
                tertulia::query::Order::Changed
            };
            let filter = Filter {
                project,
                trash,
                order,
                ..Filter::default()
            };
            let told = stores.map(|store| {
                let mut pages = Vec::new();
                let mut page = Page::first(3);
                loop {
                    let listing = block_on(store.list(&filter, &page)).unwrap();
                    page.cursor = listing.next;
                    pages.push(listing);
                    if page.cursor.is_none() {
                        break;
                    }
                }
                let mut found = Vec::new();
                for words in ["apples", "pears", "title"] {
                    let query = SearchQuery {
                        words: Words::parse(words).unwrap(),
                        filter: filter.clone(),
                        speaker: None,
                        role: None,
                        limit: 1000,
                    };
                    let hits = block_on(store.search(&query, &Progress::unseen())).unwrap();
                    let mut places: Vec<_> =
                        hits.hits.iter().map(|hit| (hit.seq, hit.at)).collect();
                    places.sort();
                    found.push((hits.total, hits.elsewhere, places));
                }
                let titled = block_on(store.find(&Lookup::Title("title 2".into()), 5)).unwrap();
                let ended = block_on(store.find(&Lookup::Part("3f2".into()), 5)).unwrap();
                (pages, found, titled, ended)
            });
            let [told, other] = told;
            assert_eq!(told.1, other.1, "searched at step {n} of story {story}");
            assert_eq!(told.0, other.0, "listed at step {n} of story {story}");
            assert_eq!(told.2, other.2, "titles at step {n} of story {story}");
            assert_eq!(told.3, other.3, "parts at step {n} of story {story}");
        }
        let [kept, other] = stores.map(|store| block_on(store.info()).unwrap().entries);
        assert_eq!(kept, other, "entries at step {n} of story {story}");
        if n % 50 == 49 {
            read_the_same(&database, &home.again(), &sessions);
        }
    }
    assert!(home.check().is_clean(), "{:?}", home.check());
}
