//! Filters.

use serde_json::json;
use tertulia_core::entry::{Body, Created, Kind, Merged};
use tertulia_core::query::{Filter, Order, Page, Trash, Worktree};
use tertulia_core::session::LONG;
use tertulia_store::Store;

use crate::ask::{everything, ids, list, now};
use crate::clock::{moment, still_clock};
use crate::conformance::texts::ODD;
use crate::logs::{Writer, calling, human, imported, renamed, restored, tagged, trashed, undone};

/// Creates sessions with an edited first entry; `edit` receives the number of the session.
fn several(store: &dyn Store, count: usize, edit: impl Fn(usize, &mut Created)) -> Vec<Writer> {
    let clock = still_clock(1);
    (0..count)
        .map(|n| Writer::begin_with(store, &clock, |created| edit(n, created), vec![]))
        .collect()
}

/// Asserts that a filter matches exactly these sessions, newest first.
#[track_caller]
fn assert_means(store: &dyn Store, filter: &Filter, writers: &[Writer], expected: &[usize]) {
    let expected: Vec<_> = expected.iter().map(|n| writers[*n].id).collect();
    assert_eq!(ids(&list(store, filter).rows), expected, "{filter:?}");
}

/// A worktree has the folders below it, except those of other worktrees.
pub fn by_worktree(store: &dyn Store) {
    let folders = [
        "/w/a",
        "/w/a/src",
        "/w/ab",
        "/w/a/tree/src",
        "/w",
        "/old%/a",
    ];
    let writers = several(store, 7, |n, created| {
        created.cwd = folders.get(n).map(|folder| (*folder).to_owned());
    });
    let of = |paths: &[&str], others: &[&str]| {
        let owned = |them: &[&str]| them.iter().map(|it| (*it).to_owned()).collect();
        Filter {
            worktree: Some(Box::new(Worktree {
                paths: owned(paths),
                others: owned(others),
            })),
            ..Filter::default()
        }
    };
    assert_means(store, &of(&["/w/a"], &[]), &writers, &[3, 1, 0]);
    assert_means(store, &of(&["/w/a"], &["/w/a/tree"]), &writers, &[1, 0]);
    assert_means(
        store,
        &of(&["/w/a", "/old%"], &["/w/a/"]),
        &writers,
        &[5, 3, 1, 0],
    );
    assert_means(store, &of(&["/w/a%"], &[]), &writers, &[]);
    assert_means(store, &of(&[""], &[]), &writers, &[5, 4, 3, 2, 1, 0]);
    assert_means(store, &of(&[], &[]), &writers, &[]);
}

/// Projects match exactly; a session without a project matches none.
pub fn by_project(store: &dyn Store) {
    let projects = [Some("/a"), Some("/A"), Some("/a/b"), None, Some("/a")];
    let writers = several(store, 5, |n, created| {
        created.project = projects[n].map(str::to_owned);
    });
    let of = |project: &str| Filter {
        project: Some(project.into()),
        ..Filter::default()
    };
    assert_means(store, &of("/a"), &writers, &[4, 0]);
    assert_means(store, &of("/A"), &writers, &[1]);
    assert_means(store, &of("/a/"), &writers, &[]);
    assert_means(store, &of("%"), &writers, &[]);
    assert_means(store, &of(""), &writers, &[]);
    let united = |ids: &[&str]| Filter {
        project: Some(ids.iter().copied().collect()),
        ..Filter::default()
    };
    assert_means(store, &united(&["/a", "/a/b", "/c"]), &writers, &[4, 2, 0]);
    assert_eq!(list(store, &united(&["/a", "/A"])).hidden.elsewhere, 2);
    assert_means(store, &united(&[]), &writers, &[]);
    let mut many: Vec<String> = (0..40).map(|n| format!("/other/{n}")).collect();
    many.push("/A".to_owned());
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_means(store, &united(&many), &writers, &[1]);
    let page_of = |page: &Page| now(store.list(&united(&["/a", "/A"]), page)).unwrap();
    let page = Page {
        cursor: page_of(&Page::first(1)).next,
        limit: 9,
    };
    let rest = page_of(&page);
    assert_eq!(ids(&rest.rows), [writers[1].id, writers[0].id]);
}

/// Filters by kind and by team.
pub fn by_kind_and_team(store: &dyn Store) {
    let kinds = [Kind::Chat, Kind::Team, Kind::Pair, Kind::Team];
    let teams = [None, Some("red"), None, Some("blue")];
    let writers = several(store, 4, |n, created| {
        created.kind = kinds[n];
        created.team = teams[n].map(str::to_owned);
    });
    let kind = |kind| Filter {
        kind: Some(kind),
        ..Filter::default()
    };
    assert_means(store, &kind(Kind::Chat), &writers, &[0]);
    assert_means(store, &kind(Kind::Team), &writers, &[3, 1]);
    assert_means(store, &kind(Kind::Pair), &writers, &[2]);
    let team = |team: &str| Filter {
        team: Some(team.into()),
        ..Filter::default()
    };
    assert_means(store, &team("red"), &writers, &[1]);
    assert_means(store, &team("Red"), &writers, &[]);
    // A fork has the kind and team of its original.
    let fork = writers[1].fork(store, 1);
    assert_eq!(
        ids(&list(store, &team("red")).rows),
        [fork.id, writers[1].id]
    );
}

/// Filters by current tags.
pub fn by_tag(store: &dyn Store) {
    let mut writers = several(store, 3, |_, _| {});
    writers[0].append(store, vec![tagged(&["urgent", "x"], &[])]);
    writers[1].append(store, vec![tagged(&["urgent"], &[])]);
    writers[2].append(store, vec![tagged(&["urgently"], &[])]);
    let tag = |tag: &str| Filter {
        tag: Some(tag.into()),
        ..Filter::default()
    };
    assert_means(store, &tag("urgent"), &writers, &[1, 0]);
    writers[1].append(store, vec![tagged(&[], &["urgent"])]);
    assert_means(store, &tag("urgent"), &writers, &[0]);
    let at = writers[1].head().seq.0;
    writers[1].append(store, vec![undone(at)]);
    assert_means(store, &tag("urgent"), &writers, &[1, 0]);
    assert_means(store, &tag("tags"), &writers, &[]);
    assert_means(store, &tag("Urgent"), &writers, &[]);
}

/// A merge comes from both sessions, a fork from one, whatever the fork's parent comes from.
pub fn by_origin(store: &dyn Store) {
    let mut writers = several(store, 3, |_, _| {});
    writers.push(writers[0].fork(store, 1));
    writers.push(writers[3].fork(store, 2));
    let joins = Body::Merged(Merged {
        ours: writers[0].origin(1),
        theirs: writers[1].origin(1),
    });
    writers[2].append(store, vec![joins]);
    let origin = |writer: &Writer| Filter {
        parent: Some(writer.id),
        ..Filter::default()
    };
    let filters: Vec<Filter> = writers.iter().map(origin).collect();
    for (filter, expected) in filters.iter().zip([&[3, 2][..], &[2], &[], &[4], &[]]) {
        assert_means(store, filter, &writers, expected);
    }
}

/// Automatic tags count if the filter says so.
pub fn by_auto_tag(store: &dyn Store) {
    let mut writers = several(store, 4, |_, _| {});
    let edit = || calling("claude", "file_edit", json!({ "path": "src/a.rs" }));
    writers[0].append(store, vec![edit()]);
    writers[1].append(store, vec![tagged(&["rust"], &[]), imported("x-1")]);
    writers[2].append(
        store,
        vec![calling("claude", "bash", json!({ "command": "ls" }))],
    );
    writers[3].append(store, (0..LONG).map(|_| human("x")).collect());
    let tag = |tag: &str, auto_tags| Filter {
        tag: Some(tag.into()),
        auto_tags,
        ..Filter::default()
    };
    let rust = writers[0].fork(store, 2);
    assert_means(store, &tag("rust", false), &writers, &[1]);
    writers.push(rust);
    assert_means(store, &tag("rust", true), &writers, &[4, 0, 1]);
    assert_means(store, &tag("shell", true), &writers, &[2]);
    assert_means(store, &tag("long", true), &writers, &[3]);
    assert_means(store, &tag("imported", true), &writers, &[1]);
    for word in ["shell", "long", "imported"] {
        assert_means(store, &tag(word, false), &writers, &[]);
    }
}

/// `since` is inclusive, `until` exclusive.
pub fn by_time(store: &dyn Store) {
    // Creation takes one second, so the nth session is from the nth second.
    let mut writers = several(store, 4, |_, _| {});
    let span = |since: Option<i64>, until: Option<i64>| Filter {
        since: since.map(moment),
        until: until.map(moment),
        ..Filter::default()
    };
    assert_means(store, &span(Some(1), None), &writers, &[3, 2, 1]);
    assert_means(store, &span(None, Some(1)), &writers, &[0]);
    assert_means(store, &span(Some(1), Some(3)), &writers, &[2, 1]);
    assert_means(store, &span(Some(2), Some(2)), &writers, &[]);
    assert_means(store, &span(Some(-9), Some(9)), &writers, &[3, 2, 1, 0]);
    writers[0].say(store, "at second 4");
    assert_means(store, &span(Some(4), None), &writers, &[0]);
    writers[1].append(store, vec![renamed("tidied up at second 5")]);
    assert_means(store, &span(Some(4), None), &writers, &[0]);
}

/// Without the trash, only the trash, both.
pub fn by_trash(store: &dyn Store) {
    let mut writers = several(store, 3, |_, _| {});
    writers[0].append(store, vec![trashed()]);
    writers[2].append(store, vec![trashed()]);
    writers[2].append(store, vec![restored()]);
    let trash = |trash| Filter {
        trash,
        ..Filter::default()
    };
    assert_means(store, &trash(Trash::Without), &writers, &[2, 1]);
    assert_means(store, &trash(Trash::Only), &writers, &[0]);
    assert_means(store, &trash(Trash::With), &writers, &[2, 1, 0]);
    // A message does not restore a session from the trash.
    writers[0].say(store, "still here");
    assert_means(store, &trash(Trash::Only), &writers, &[0]);
    assert_means(store, &trash(Trash::With), &writers, &[0, 2, 1]);
}

/// Orders by the newest undoable change; sessions without one are left out.
pub fn by_change(store: &dyn Store) {
    let mut writers = several(store, 4, |_, _| {});
    let changed = Filter {
        order: Order::Changed,
        ..everything()
    };
    assert_means(store, &changed, &writers, &[]);
    writers[2].append(store, vec![renamed("first")]);
    writers[0].append(store, vec![tagged(&["second"], &[])]);
    writers[3].append(store, vec![trashed()]);
    writers[2].append(store, vec![human("speaking is no change")]);
    assert_means(store, &changed, &writers, &[3, 0, 2]);
    let at = writers[0].head().seq.0;
    writers[0].append(store, vec![undone(at)]);
    assert_means(store, &changed, &writers, &[3, 2]);
    writers[2].append(store, vec![renamed("last")]);
    assert_means(store, &changed, &writers, &[2, 3]);
    let live = Filter {
        trash: Trash::Without,
        ..changed
    };
    assert_means(store, &live, &writers, &[2]);
    // A fork cannot undo changes of the original.
    writers[2].fork(store, 2);
    assert_means(store, &live, &writers, &[2]);
}

/// All conditions must match.
pub fn by_several(store: &dyn Store) {
    let mut writers = several(store, 8, |n, created| {
        created.project = Some(if n & 1 == 0 { "p" } else { "q" }.into());
        created.kind = if n & 2 == 0 { Kind::Team } else { Kind::Chat };
        created.team = (n & 2 == 0).then(|| "t".into());
    });
    for writer in &mut writers[4..] {
        writer.append(store, vec![tagged(&["x"], &[])]);
    }
    let filter = Filter {
        project: Some("p".into()),
        kind: Some(Kind::Team),
        team: Some("t".into()),
        tag: Some("x".into()),
        since: Some(moment(0)),
        until: Some(moment(5)),
        ..Filter::default()
    };
    assert_means(store, &filter, &writers, &[4]);
    let changed = Filter {
        order: Order::Changed,
        ..filter
    };
    assert_means(store, &changed, &writers, &[4]);
}

/// Projects, teams and tags are literal text, not patterns or code.
pub fn odd_names(store: &dyn Store) {
    let odd: Vec<&str> = ODD
        .iter()
        .copied()
        .filter(|text| text.len() < 1000)
        .collect();
    let mut writers = several(store, odd.len(), |n, created| {
        created.project = Some(odd[n].into());
        created.team = Some(odd[n].into());
    });
    for (writer, text) in writers.iter_mut().zip(&odd) {
        writer.append(store, vec![tagged(&[text], &[])]);
    }
    for (n, text) in odd.iter().enumerate() {
        let named = |project: bool, team: bool, tag: bool| Filter {
            project: project.then(|| (*text).into()),
            team: team.then(|| (*text).to_owned()),
            tag: tag.then(|| (*text).to_owned()),
            ..Filter::default()
        };
        assert_means(store, &named(true, false, false), &writers, &[n]);
        assert_means(store, &named(false, true, false), &writers, &[n]);
        assert_means(store, &named(false, false, true), &writers, &[n]);
    }
}
