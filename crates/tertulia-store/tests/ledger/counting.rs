//! What counts, and how often.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Compacted, Entry, Imported, Kind, Merged, ToolOutcome, Usage};
use tertulia_core::foreign::Foreign;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, ProjectIds, Trash};
use tertulia_core::stats::ToolUse;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Extent, Ledger, Progress, Store};
use tertulia_testkit::ask::now;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, ai, human, renamed, tagged, trashed};

use super::{answer, call, catch_up, everything, everything_in, ledger, result, sums};

fn told(input: u64, output: u64) -> Usage {
    Usage::told(input, output)
}

#[test]
fn a_fork_counts_only_what_is_its_own() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let mut parent = Writer::begin(&store, &clock);
    parent.append(&store, vec![human("hi"), ai("ada", "yes")]);
    let mut fork = parent.fork(&store, 3);
    fork.append(&store, vec![human("more"), ai("ada", "no")]);
    let mut ledger = ledger(&store);
    let caught = catch_up(&mut ledger, &store);
    // The two messages of the parent, and those of the fork, each read once.
    assert_eq!((caught.sessions, caught.entries), (2, 6));
    assert_eq!(sums(&ledger), (4, told(14, 10)));
    // Nothing is new.
    let caught = catch_up(&mut ledger, &store);
    assert_eq!((caught.sessions, caught.entries), (0, 0));
    // Only new entries are read.
    fork.append(&store, vec![ai("ada", "well")]);
    let caught = catch_up(&mut ledger, &store);
    assert_eq!((caught.sessions, caught.entries), (1, 1));
    assert_eq!(sums(&ledger), (5, told(21, 15)));
}

#[test]
fn the_prefix_of_a_purged_session_still_counts_once() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let mut parent = Writer::begin(&store, &clock);
    parent.append(&store, vec![human("hi"), ai("ada", "yes")]);
    parent.append(&store, vec![human("gone"), ai("ada", "gone")]);
    for _ in 0..2 {
        let mut fork = parent.fork(&store, 3);
        fork.append(&store, vec![ai("ada", "own")]);
    }
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    assert_eq!(sums(&ledger), (6, told(28, 20)));
    now(store.purge(parent.id)).unwrap();
    let caught = catch_up(&mut ledger, &store);
    assert_eq!(caught.removed, 1);
    // Both forks share the first two messages, and have one each.
    assert_eq!(sums(&ledger), (4, told(21, 15)));
}

#[test]
fn copies_have_the_highest_figures_and_belong_to_the_first_session() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let mut second = Writer::named(clock.session_id(), &clock);
    let mut first = Writer::begin(&store, &clock);
    first.append(&store, vec![answer(told(10, 1), Some("m:r"))]);
    second.open(&store, |_| {}, vec![]).unwrap();
    let cached = Usage {
        cache_read: 4,
        ..told(9, 7)
    };
    second.append(&store, vec![answer(cached, Some("m:r")), human("x")]);
    for order in ["first", "second"] {
        let mut ledger = ledger(&store);
        if order == "second" {
            // Only the newest is read at first.
            let soon = Progress::unseen().within(Duration::ZERO);
            now(ledger.catch_up(&store, Extent::Newest, &soon)).unwrap();
        }
        catch_up(&mut ledger, &store);
        let highest = Usage {
            cache_read: 4,
            ..told(10, 7)
        };
        assert_eq!(sums(&ledger), (2, highest));
        let cells = ledger.cells(&everything()).unwrap();
        let owner = cells.iter().find(|cell| !cell.usage.is_empty()).unwrap();
        assert_eq!(owner.session, first.id, "{order}");
    }
    // When its owner is gone, the copy counts with its own figures.
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    now(store.purge(first.id)).unwrap();
    catch_up(&mut ledger, &store);
    assert_eq!(sums(&ledger), (2, cached));
}

#[test]
fn an_answer_in_several_messages_counts_once() {
    let store = SqliteStore::in_memory().unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    let part = || answer(told(5, 5), Some("one"));
    writer.append(&store, vec![part(), part(), part()]);
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    assert_eq!(sums(&ledger), (3, told(5, 5)));
}

#[test]
fn a_copy_that_names_the_original_entry_is_the_same_event() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let mut original = Writer::begin(&store, &clock);
    original.append(&store, vec![ai("ada", "yes")]);
    let id = original
        .log
        .last()
        .map(|entry| entry.id.to_string())
        .unwrap();
    let mut copy = Writer::begin(&store, &clock);
    copy.append(&store, vec![answer(told(7, 5), Some(&id))]);
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    assert_eq!(sums(&ledger), (1, told(7, 5)));
}

#[test]
fn a_merged_session_is_read_whole_and_counts_what_is_new() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let mut ours = Writer::begin(&store, &clock);
    ours.append(&store, vec![human("hi"), ai("ada", "yes")]);
    let theirs = ours.fork_with(&store, 2, |_| {}, vec![ai("ada", "no")]);
    let merge = Body::Merged(Merged {
        ours: ours.origin(3),
        theirs: theirs.origin(4),
    });
    let ids: Vec<String> = [&ours, &theirs]
        .map(|writer| writer.log.last().unwrap().id.to_string())
        .to_vec();
    let merged = ours.fork_with(
        &store,
        2,
        |_| {},
        vec![
            merge,
            answer(told(7, 5), Some(&ids[0])),
            answer(told(7, 5), Some(&ids[1])),
            answer(told(1, 1), None),
        ],
    );
    assert_eq!(merged.head().seq, Seq(7));
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    assert_eq!(sums(&ledger).1, told(15, 11));
}

#[test]
fn compactions_cost_tokens_but_are_no_messages() {
    let store = SqliteStore::in_memory().unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    let compacted = |usage| {
        Body::Compacted(Compacted {
            upto: Seq(1),
            summary: "s".into(),
            agent: "ada".into(),
            model: Some("m-2".into()),
            usage,
            thread: None,
        })
    };
    writer.append(
        &store,
        vec![compacted(Some(told(100, 10))), compacted(None)],
    );
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    let cells = ledger.cells(&everything()).unwrap();
    assert_eq!(cells.len(), 1);
    assert_eq!((cells[0].messages, cells[0].usage), (0, told(100, 10)));
    assert_eq!(cells[0].model.as_deref(), Some("m-2"));
    assert_eq!(cells[0].agent.as_deref(), Some("ada"));
}

#[test]
fn tools_and_files_are_counted_by_their_outcome() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let place = |created: &mut tertulia_core::entry::Created| created.cwd = Some("/w".into());
    let mut writer = Writer::begin_with(&store, &clock, place, vec![]);
    writer.append(
        &store,
        vec![
            call("a", "Read", json!({"file_path": "/w/x.rs"})),
            result("a", ToolOutcome::Ok),
            call("b", "Write", json!({"file_path": "x.rs", "content": ""})),
            result("b", ToolOutcome::Denied),
        ],
    );
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    // The result of a call may come in a later append, and ids may be used again.
    writer.append(
        &store,
        vec![call("a", "Write", json!({"file_path": "sub/../x.rs"}))],
    );
    catch_up(&mut ledger, &store);
    writer.append(
        &store,
        vec![result("a", ToolOutcome::Ok), call("c", "Bash", json!({}))],
    );
    catch_up(&mut ledger, &store);
    let tools = ledger.tools(&everything()).unwrap();
    let tool = |name: &str, ok, denied, unfinished| ToolUse {
        name: name.to_owned(),
        sessions: 1,
        calls: ok + denied + unfinished,
        ok,
        failed: 0,
        denied,
        unfinished,
    };
    assert_eq!(
        tools,
        [
            tool("Write", 1, 1, 0),
            tool("Bash", 0, 0, 1),
            tool("Read", 1, 0, 0)
        ]
    );
    let files = ledger.files(&everything()).unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!(
        (files[0].path.as_str(), files[0].reads, files[0].writes),
        ("/w/x.rs", 1, 1)
    );
    let touched = ledger.touched("/w/x.rs").unwrap();
    let seen: Vec<(u64, &str, bool, Option<ToolOutcome>)> = touched
        .iter()
        .map(|touch| {
            (
                touch.seq.0,
                touch.tool.as_str(),
                touch.written,
                touch.outcome,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (6, "Write", true, Some(ToolOutcome::Ok)),
            (4, "Write", true, Some(ToolOutcome::Denied)),
            (2, "Read", false, Some(ToolOutcome::Ok)),
        ]
    );
    assert_eq!(ledger.touched("/w/y.rs").unwrap(), []);
}

#[test]
fn a_relative_path_is_found_by_its_end() {
    let store = SqliteStore::in_memory().unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    writer.append(
        &store,
        vec![call("a", "Read", json!({"file_path": "src/x.rs"}))],
    );
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    assert_eq!(ledger.touched("/w/src/x.rs").unwrap().len(), 1);
    assert_eq!(ledger.touched("/w/xsrc/x.rs").unwrap().len(), 0);
}

#[test]
fn filters_select_sessions_and_times() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let mut chat = Writer::begin_with(
        &store,
        &clock,
        |created| created.project = Some("dir:/w".into()),
        vec![],
    );
    chat.append(&store, vec![ai("ada", "a"), tagged(&["red"], &[])]);
    let mut team = Writer::begin_with(
        &store,
        &clock,
        |created| {
            created.kind = Kind::Team;
            created.team = Some("birds".into());
        },
        vec![],
    );
    team.append(&store, vec![ai("ada", "b"), trashed()]);
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    let said: Vec<Timestamp> = [&chat, &team].map(|writer| writer.log[1].at).to_vec();
    let check = |expected: (u64, usize), edit: &dyn Fn(&mut Filter)| {
        let mut filter = everything();
        edit(&mut filter);
        let cells = ledger.cells(&filter).unwrap();
        let messages: u64 = cells.iter().map(|cell| cell.messages).sum();
        let sessions = ledger.sessions(&filter).unwrap().len();
        assert_eq!((messages, sessions), expected, "{filter:?}");
    };
    check((2, 2), &|_| {});
    check((1, 1), &|filter| filter.trash = Trash::Without);
    check((1, 1), &|filter| filter.trash = Trash::Only);
    check((1, 1), &|filter| filter.project = Some("dir:/w".into()));
    check((0, 0), &|filter| {
        filter.project = Some(ProjectIds::default())
    });
    check((1, 1), &|filter| filter.kind = Some(Kind::Team));
    check((1, 1), &|filter| filter.team = Some("birds".into()));
    check((1, 1), &|filter| filter.tag = Some("red".into()));
    check((0, 0), &|filter| filter.tag = Some("re".into()));
    // Times select messages, not sessions.
    check((1, 2), &|filter| filter.since = Some(said[1]));
    check((1, 2), &|filter| filter.until = Some(said[1]));
    check((0, 2), &|filter| {
        (filter.since, filter.until) = (Some(said[0]), Some(said[0]));
    });
    // What changes without a message is known after the next catching up.
    team.append(&store, vec![tagged(&["blue"], &[]), renamed("x")]);
    catch_up(&mut ledger, &store);
    let blue = Filter {
        tag: Some("blue".into()),
        ..everything()
    };
    assert_eq!(ledger.sessions(&blue).unwrap().len(), 1);
}

#[test]
fn catching_up_in_pieces_reads_everything_in_the_end() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    for _ in 0..40 {
        let mut writer = Writer::begin(&store, &clock);
        writer.append(&store, vec![human("hi"), ai("ada", "yes")]);
    }
    let mut pieces = ledger(&store);
    assert!(!pieces.is_complete().unwrap());
    let soon = Progress::unseen().within(Duration::ZERO);
    let caught = now(pieces.catch_up(&store, Extent::All, &soon)).unwrap();
    assert!(caught.paused && !pieces.is_complete().unwrap());
    now(pieces.catch_up(&store, Extent::Newest, &Progress::unseen())).unwrap();
    catch_up(&mut pieces, &store);
    assert!(pieces.is_complete().unwrap());
    let mut whole = ledger(&store);
    catch_up(&mut whole, &store);
    assert_eq!(sums(&pieces), (80, told(280, 200)));
    assert_eq!(everything_in(&pieces), everything_in(&whole));
    pieces.clear().unwrap();
    assert!(!pieces.is_complete().unwrap());
    assert_eq!(sums(&pieces), (0, Usage::default()));
    catch_up(&mut pieces, &store);
    assert_eq!(everything_in(&pieces), everything_in(&whole));
}

/// A shell prompt has no time for a whole store, and calls again.
#[test]
fn calls_without_time_count_everything_in_the_end() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    for _ in 0..40 {
        let mut writer = Writer::begin(&store, &clock);
        writer.append(&store, vec![human("hi"), ai("ada", "yes")]);
    }
    let mut pieces = ledger(&store);
    let call = |ledger: &mut Ledger| {
        let soon = Progress::unseen().within(Duration::ZERO);
        now(ledger.catch_up(&store, Extent::Newest, &soon)).unwrap();
    };
    let mut calls = 0;
    while !pieces.is_complete().unwrap() {
        call(&mut pieces);
        calls += 1;
        assert!(calls < 100, "{:?}", sums(&pieces));
    }
    assert_eq!(sums(&pieces), (80, told(280, 200)));
    // A session that is older than all others, as an import makes it.
    let mut writer = Writer::begin(&store, &still_clock(0));
    writer.append(&store, vec![human("long ago")]);
    for _ in 0..5 {
        call(&mut pieces);
    }
    assert_eq!(sums(&pieces).0, 81);
}

#[test]
fn a_long_session_is_read_page_by_page() {
    let store = SqliteStore::in_memory().unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    for _ in 0..11 {
        writer.append(&store, (0..500).map(|_| ai("ada", "x")).collect());
    }
    let mut ledger = ledger(&store);
    let caught = catch_up(&mut ledger, &store);
    assert_eq!(caught.entries, 5501);
    assert_eq!(sums(&ledger), (5500, told(5500 * 7, 5500 * 5)));
    let entry: &Entry = writer.log.last().unwrap();
    assert_eq!(entry.seq, Seq(5501));
}

#[test]
fn implausible_figures_do_not_overflow() {
    let store = SqliteStore::in_memory().unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    let huge = || answer(told(u64::MAX, u64::MAX), None);
    writer.append(&store, (0..20).map(|_| huge()).collect());
    let mut ledger = ledger(&store);
    catch_up(&mut ledger, &store);
    assert_eq!(sums(&ledger).0, 20);
}

/// Begins a session that another program's file was imported as.
fn imported(
    store: &dyn Store,
    clock: &Clock,
    original: &str,
    exported_from: Option<&str>,
) -> Writer {
    let mut writer = Writer::begin(store, clock);
    let mut source = Imported::new("codex", original);
    source.exported_from = exported_from.map(str::to_owned);
    writer.append(store, vec![Body::Imported(source)]);
    writer
}

/// Returns the session and the model of the only usage.
fn owner(store: &dyn Store) -> (SessionId, Option<String>) {
    let mut ledger = ledger(store);
    catch_up(&mut ledger, store);
    let cells = ledger.cells(&everything()).unwrap();
    let owners: Vec<_> = cells.iter().filter(|cell| !cell.usage.is_empty()).collect();
    assert_eq!(owners.len(), 1, "{cells:?}");
    (
        owners[0].session,
        owners[0].model.as_deref().map(str::to_owned),
    )
}

fn without_model(usage: Usage, original: &str) -> Body {
    let Body::Message(mut message) = answer(usage, Some(original)) else {
        unreachable!();
    };
    message.model = None;
    Body::Message(message)
}

#[test]
fn an_export_that_was_imported_owns_nothing() {
    let model = Some("m-1".to_owned());
    // Marked in the file, or known by its id. The copy is older than the original.
    for is_marked in [true, false] {
        let store = SqliteStore::in_memory().unwrap();
        let clock = still_clock(1);
        let id = clock.session_id();
        let name = Foreign::export_id("codex", id);
        let mark = is_marked.then_some("ours");
        let mut copy = imported(&store, &clock, &name, mark);
        copy.append(&store, vec![without_model(told(10, 1), "m:r")]);
        assert_eq!(owner(&store), (copy.id, None));
        let mut original = Writer::named(id, &clock);
        original.open(&store, |_| {}, vec![]).unwrap();
        original.append(&store, vec![answer(told(10, 1), Some("m:r"))]);
        assert_eq!(owner(&store), (original.id, model.clone()));
        now(store.purge(original.id)).unwrap();
        assert_eq!(owner(&store), (copy.id, None));
    }
}

#[test]
fn what_tertulia_recorded_owns_its_usage_before_older_copies() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let mut copy = imported(&store, &clock, "v", None);
    let mut original = Writer::begin(&store, &clock);
    original.append(&store, vec![answer(told(10, 1), None)]);
    let event = original.log.last().unwrap().id.to_string();
    copy.append(&store, vec![without_model(told(12, 1), &event)]);
    assert_eq!(owner(&store), (original.id, Some("m-1".to_owned())));
}

#[test]
fn a_copy_tells_the_model_that_its_owner_does_not() {
    let store = SqliteStore::in_memory().unwrap();
    let clock = still_clock(1);
    let mut first = Writer::begin(&store, &clock);
    first.append(&store, vec![without_model(told(10, 1), "m:r")]);
    let mut second = Writer::begin(&store, &clock);
    second.append(&store, vec![answer(told(10, 1), Some("m:r"))]);
    assert_eq!(owner(&store), (first.id, Some("m-1".to_owned())));
}
