//! Search: matches, positions, counts and hidden matches.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use tertulia_core::entry::{Body, Created, Kind, Message, Role, Speaker, SpeakerKind};
use tertulia_core::query::{Filter, HitFilter, SearchQuery, Trash};
use tertulia_core::search_text::highlighted;
use tertulia_store::{Progress, Store};

use crate::ask::{found, hits, now, places, query};
use crate::clock::{moment, still_clock};
use crate::logs::{
    Writer, ai, calling, failed, human, message, renamed, restored, tagged, tool_result, trashed,
};

/// A session with these messages, from sequence number 2 on.
fn said(store: &dyn Store, contents: &[&str]) -> Writer {
    let mut writer = Writer::begin(store, &still_clock(1));
    for content in contents {
        writer.say(store, content);
    }
    writer
}

/// Asserts that a query matches exactly these entries of the session.
#[track_caller]
fn assert_found(store: &dyn Store, writer: &Writer, words: &str, expected: &[u64]) {
    let expected: Vec<_> = expected.iter().map(|seq| (writer.id, *seq)).collect();
    assert_eq!(found(store, words), expected, "{words}");
    assert_eq!(hits(store, &query(words)).total, expected.len() as u64);
}

/// All words must occur, in any order and any case.
pub fn words_in_any_order(store: &dyn Store) {
    assert_eq!(found(store, "anything"), []);
    let texts = [
        "the red house",
        "House of RED bricks",
        "red",
        "rederly houses",
    ];
    let writer = said(store, &texts);
    assert_found(store, &writer, "red house", &[2, 3]);
    assert_found(store, &writer, "HOUSE red", &[2, 3]);
    assert_found(store, &writer, "red", &[2, 3, 4]);
    assert_found(store, &writer, "green", &[]);
}

/// The words of a phrase must be adjacent.
pub fn phrases(store: &dyn Store) {
    let writer = said(store, &["the red house", "the house is red", "red, house!"]);
    assert_found(store, &writer, "\"red house\"", &[2, 4]);
    assert_found(store, &writer, "\"house red\"", &[]);
    assert_found(store, &writer, "\"the house\" red", &[3]);
}

/// Excluded words and phrases must not occur.
pub fn exclusions(store: &dyn Store) {
    let writer = said(store, &["red house", "red car", "red house with a car"]);
    assert_found(store, &writer, "red -car", &[2]);
    assert_found(store, &writer, "red -house -car", &[]);
    assert_found(store, &writer, "red -\"red car\"", &[2, 4]);
    assert_found(store, &writer, "house -nothing", &[2, 4]);
}

/// A star matches any ending.
pub fn beginnings(store: &dyn Store) {
    let writer = said(store, &["compile", "compiler errors", "recompile", "comp"]);
    assert_found(store, &writer, "compil*", &[2, 3]);
    assert_found(store, &writer, "comp*", &[2, 3, 5]);
    assert_found(store, &writer, "\"compiler err\"*", &[3]);
    assert_found(store, &writer, "compil", &[]);
}

/// Text without spaces is found by any two adjacent characters.
pub fn chinese_and_japanese(store: &dyn Store) {
    let texts = [
        "你好世界，今天天气很好",
        "世上无难事",
        "東京都の天気は晴れ",
        "カタカナとひらがな",
    ];
    let writer = said(store, &texts);
    assert_found(store, &writer, "世界", &[2]);
    assert_found(store, &writer, "天气", &[2]);
    assert_found(store, &writer, "今天天气", &[2]);
    assert_found(store, &writer, "世", &[2, 3]);
    assert_found(store, &writer, "天界", &[]);
    assert_found(store, &writer, "天気", &[4]);
    assert_found(store, &writer, "京都", &[4]);
    assert_found(store, &writer, "ひらがな", &[5]);
    assert_found(store, &writer, "カナ", &[5]);
}

/// Accents and composition make no difference.
pub fn accents_are_folded(store: &dyn Store) {
    let writer = said(
        store,
        &["Málaga", "malaga", "ma\u{301}laga", "ÉCOLE", "naïve"],
    );
    assert_found(store, &writer, "malaga", &[2, 3, 4]);
    assert_found(store, &writer, "MÁLAGA", &[2, 3, 4]);
    assert_found(store, &writer, "école", &[5]);
    assert_found(store, &writer, "naive", &[6]);
}

/// Titles are found in the entry that set them.
pub fn titles(store: &dyn Store) {
    let edit = |created: &mut Created| created.title = Some("quarterly numbers".into());
    let mut writer = Writer::begin_with(store, &still_clock(1), edit, vec![]);
    writer.append(store, vec![renamed("annual numbers")]);
    let fork = writer.fork_with(
        store,
        2,
        |fork| fork.title = Some("imaginary numbers".into()),
        vec![],
    );
    assert_found(store, &writer, "quarterly", &[1]);
    assert_found(store, &writer, "annual", &[2]);
    assert_eq!(found(store, "imaginary"), [(fork.id, 3)]);
    let hit = hits(store, &query("annual")).hits.remove(0);
    assert_eq!(hit.speaker, None);
    assert_eq!(hit.title.as_deref(), Some("annual numbers"));
}

/// Tool calls are found by name and by the text of their arguments.
pub fn tool_calls(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    let arguments = json!({"command": "cargo nextest", "more": [1, {"deep": "submarine"}]});
    writer.append(store, vec![calling("claude", "shell", arguments)]);
    writer.append(store, vec![tool_result("shell", "all tests passed")]);
    assert_found(store, &writer, "shell", &[2]);
    assert_found(store, &writer, "nextest", &[2]);
    assert_found(store, &writer, "submarine", &[2]);
    assert_found(store, &writer, "passed", &[3]);
    assert_found(store, &writer, "command", &[]);
}

/// Failures are found by their message.
pub fn failures(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.append(store, vec![failed("claude", "quota exhausted")]);
    assert_found(store, &writer, "exhausted", &[2]);
}

/// A search with a time limit reports the number of entries not indexed yet; later searches
/// complete the index.
pub fn what_is_not_indexed_yet_is_counted(store: &dyn Store) {
    let contents: Vec<String> = (0..20).map(|n| format!("needle {n}")).collect();
    let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
    said(store, &contents);
    let hasty = Progress::unseen().within(Duration::ZERO);
    let mut found = 0;
    for _ in 0..100 {
        let hits = now(store.search(&query("needle"), &hasty)).unwrap();
        assert!(hits.total >= found, "{hits:?}");
        assert!(hits.total + hits.pending >= 20, "{hits:?}");
        found = hits.total;
        if hits.pending == 0 {
            break;
        }
    }
    assert_eq!(found, 20);
    assert_eq!(now(store.index(&Progress::unseen())).unwrap(), 0);
}

/// Filters by speaker (any of the names) and by role.
pub fn speakers_and_roles(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    let ada = Body::Message(Message {
        speaker: Speaker {
            id: "u-7".into(),
            name: "ada".into(),
            display_name: "Ada L.".into(),
            kind: SpeakerKind::Human,
        },
        ..message("", SpeakerKind::Human, Role::User, "needle")
    });
    let rules = Body::Message(message("host", SpeakerKind::System, Role::System, "needle"));
    writer.append(store, vec![ada, human("needle"), ai("claude", "needle")]);
    writer.append(
        store,
        vec![rules, tool_result("shell", "needle"), renamed("needle")],
    );
    let by = |speaker: Option<&str>, role: Option<Role>| {
        let query = SearchQuery {
            said: HitFilter {
                speaker: speaker.map(str::to_owned),
                role,
                ..HitFilter::default()
            },
            ..query("needle")
        };
        let found = hits(store, &query);
        assert_eq!(found.total, found.hits.len() as u64);
        places(&found)
            .into_iter()
            .map(|(_, seq)| seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(by(None, None), [2, 3, 4, 5, 6, 7]);
    for name in ["ada", "ADA", "u-7", "Ada L."] {
        assert_eq!(by(Some(name), None), [2], "{name}");
    }
    assert_eq!(by(Some("claude"), None), [4]);
    assert_eq!(by(Some("nobody"), None), [0; 0]);
    assert_eq!(by(None, Some(Role::User)), [2, 3]);
    assert_eq!(by(None, Some(Role::Assistant)), [4]);
    assert_eq!(by(None, Some(Role::System)), [5]);
    assert_eq!(by(None, Some(Role::Tool)), [6]);
    assert_eq!(by(Some("ada"), Some(Role::Assistant)), [0; 0]);
}

/// Creates sessions with one message each and an edited first entry.
fn each(store: &dyn Store, count: usize, edit: impl Fn(usize, &mut Created)) -> Vec<Writer> {
    let clock = still_clock(1);
    let opened = |n| {
        Writer::begin_with(
            store,
            &clock,
            |created| edit(n, created),
            vec![human("needle")],
        )
    };
    (0..count).map(opened).collect()
}

/// A search in one project counts the matches in others.
pub fn projects_and_elsewhere(store: &dyn Store) {
    let projects = [Some("a"), Some("b"), None, Some("a"), Some("b")];
    let mut writers = each(store, 5, |n, created| {
        created.project = projects[n].map(str::to_owned)
    });
    writers[4].append(store, vec![trashed()]);
    let in_project = |project: &str| {
        let mut query = query("needle");
        query.filter.project = Some(project.into());
        let found = hits(store, &query);
        assert_eq!(found.total, found.hits.len() as u64);
        (places(&found), found.elsewhere)
    };
    assert_eq!(
        in_project("a"),
        (vec![(writers[0].id, 2), (writers[3].id, 2)], 2)
    );
    assert_eq!(in_project("b"), (vec![(writers[1].id, 2)], 3));
    assert_eq!(in_project("c"), (vec![], 4));
    assert_eq!(hits(store, &query("needle")).elsewhere, 0);
    // A fork into the project includes its shared entries.
    let fork = writers[1].fork_with(store, 2, |fork| fork.project = Some("a".into()), vec![]);
    let (places, elsewhere) = in_project("a");
    assert!(places.contains(&(fork.id, 2)));
    assert_eq!((places.len(), elsewhere), (3, 1));
}

/// Every filter condition narrows a search.
pub fn every_filter(store: &dyn Store) {
    let mut writers = each(store, 4, |n, created| {
        created.kind = if n == 1 { Kind::Team } else { Kind::Chat };
        created.team = (n == 1).then(|| "red".into());
    });
    writers[2].append(store, vec![tagged(&["x"], &[])]);
    writers[3].append(store, vec![trashed()]);
    let with = |edit: fn(&mut Filter)| {
        let mut query = query("needle");
        edit(&mut query.filter);
        let found = places(&hits(store, &query));
        found.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    let id = |n: usize| writers[n].id;
    assert_eq!(with(|_| {}), [id(0), id(1), id(2)]);
    assert_eq!(with(|filter| filter.kind = Some(Kind::Team)), [id(1)]);
    assert_eq!(with(|filter| filter.team = Some("red".into())), [id(1)]);
    assert_eq!(with(|filter| filter.tag = Some("x".into())), [id(2)]);
    // Each session took two seconds: creation and message.
    assert_eq!(
        with(|filter| filter.since = Some(moment(3))),
        [id(1), id(2)]
    );
    assert_eq!(with(|filter| filter.until = Some(moment(3))), [id(0)]);
    assert_eq!(with(|filter| filter.trash = Trash::Only), [id(3)]);
    assert_eq!(with(|filter| filter.trash = Trash::With).len(), 4);
}

/// Sessions in the trash are not found until they are restored.
pub fn trashed_are_not_found(store: &dyn Store) {
    let mut writer = said(store, &["needle"]);
    assert_found(store, &writer, "needle", &[2]);
    writer.append(store, vec![trashed()]);
    assert_found(store, &writer, "needle", &[]);
    writer.say(store, "another needle");
    assert_found(store, &writer, "needle", &[]);
    writer.append(store, vec![restored()]);
    assert_found(store, &writer, "needle", &[2, 4]);
}

/// Everything appended before a search is found.
pub fn just_appended_is_found(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    let mut expected = Vec::new();
    for seq in 2..12 {
        writer.append(store, vec![human("needle"), ai("claude", "hay")]);
        expected.push(seq * 2 - 2);
        assert_found(store, &writer, "needle", &expected);
    }
}

/// Entries of a trashed session are found through a fork that shares them.
pub fn through_a_fork_of_a_trashed_session(store: &dyn Store) {
    let mut writer = said(store, &["early needle", "late needle"]);
    let middle = writer.fork(store, 2);
    let top = middle.fork(store, 2);
    writer.append(store, vec![trashed()]);
    let shown = found(store, "needle");
    assert_eq!(
        shown.len(),
        1,
        "what no fork shares is in the trash: {shown:?}"
    );
    assert!(
        [(middle.id, 2), (top.id, 2)].contains(&shown[0]),
        "{shown:?}"
    );
    let mut middle = middle;
    middle.append(store, vec![trashed()]);
    assert_eq!(found(store, "needle"), [(top.id, 2)]);
    assert_eq!(found(store, "late"), []);
    writer.append(store, vec![restored()]);
    assert_found(store, &writer, "needle", &[2, 3]);
}

/// A shared entry is found once, in the session where it was written.
pub fn shared_entries_are_found_once(store: &dyn Store) {
    let writer = said(store, &["needle"]);
    let mut fork = writer.fork(store, 2);
    let _top = fork.fork(store, 3);
    assert_found(store, &writer, "needle", &[2]);
    fork.say(store, "needle too");
    assert_eq!(found(store, "needle"), [(writer.id, 2), (fork.id, 4)]);
    assert_eq!(hits(store, &query("needle")).total, 2);
}

/// A hit has speaker, time, position and the text around the match.
pub fn hits_say_where(store: &dyn Store) {
    let mut writer = said(store, &["hay"]);
    let long = format!("{} a needle in {}", "hay ".repeat(100), "hay ".repeat(100));
    writer.append(store, vec![ai("claude", &long)]);
    let mut found = hits(store, &query("needle"));
    let hit = found.hits.remove(0);
    assert_eq!((hit.session, hit.seq.0), (writer.id, 3));
    assert_eq!(hit.title.as_deref(), Some("hay"));
    assert_eq!(hit.at, writer.log[2].at);
    assert_eq!(hit.speaker, Some(Speaker::plain("claude", SpeakerKind::Ai)));
    assert!(
        hit.snippet.text.contains("a needle in hay"),
        "{:?}",
        hit.snippet
    );
    assert!(hit.snippet.text.chars().count() <= 122);
    assert!(highlighted(&hit.snippet, "<", ">").contains(" <needle> "));
}

/// Hits are limited, but all matches are counted.
pub fn total_and_limit(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.append(
        store,
        (0..300).map(|n| human(&format!("needle {n}"))).collect(),
    );
    for limit in [0, 1, 7, 200] {
        let found = hits(
            store,
            &SearchQuery {
                limit,
                ..query("needle")
            },
        );
        assert_eq!((found.hits.len(), found.total), (limit, 300));
    }
}

/// Hits are grouped by session before they are cut: a session with many matches hides no other, and
/// all are counted.
pub fn no_session_hides_another(store: &dyn Store) {
    let others = each(store, 30, |_, _| {});
    let mut long = Writer::begin(store, &still_clock(2));
    let needles = |from: usize| (from..from + 1_000).map(|n| human(&format!("needle {n}")));
    for part in 0..12 {
        long.append(store, needles(part * 1_000).collect());
    }
    let found = hits(
        store,
        &SearchQuery {
            limit: 20,
            ..query("needle")
        },
    );
    assert_eq!((found.hits.len(), found.total), (20, 12_030));
    let sessions: HashSet<_> = found.hits.iter().map(|hit| hit.session).collect();
    assert_eq!(sessions.len(), 20, "one hit of each session");
    let mut counts: Vec<_> = (found.sessions.iter())
        .map(|one| (one.session, one.count))
        .collect();
    counts.sort_unstable();
    let mut expected: Vec<_> = others.iter().map(|other| (other.id, 1)).collect();
    expected.push((long.id, 12_000));
    expected.sort_unstable();
    assert_eq!(counts, expected);
    // With room for more than one of each, those of a session are together.
    let found = hits(
        store,
        &SearchQuery {
            limit: 40,
            ..query("needle")
        },
    );
    let order: Vec<_> = found.hits.iter().map(|hit| hit.session).collect();
    assert_eq!(order.iter().filter(|id| **id == long.id).count(), 10);
    let runs = order.chunk_by(|a, b| a == b).count();
    assert_eq!(runs, 31, "the hits of one session are together");
}

/// A hit is found by its own time, not by that of its session.
pub fn times_of_hits(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    for _ in 0..5 {
        writer.say(store, "needle");
    }
    let times: Vec<_> = writer.log.iter().map(|entry| entry.at).collect();
    let between = |since: Option<usize>, until: Option<usize>| {
        let query = SearchQuery {
            said: HitFilter {
                since: since.map(|at| times[at]),
                until: until.map(|at| times[at]),
                ..HitFilter::default()
            },
            ..query("needle")
        };
        let found = hits(store, &query);
        assert_eq!(found.total, found.hits.len() as u64);
        let found = places(&found).into_iter().map(|(_, seq)| seq);
        found.collect::<Vec<_>>()
    };
    assert_eq!(between(None, None), [2, 3, 4, 5, 6]);
    assert_eq!(between(Some(3), None), [4, 5, 6]);
    assert_eq!(between(None, Some(3)), [2, 3]);
    assert_eq!(between(Some(2), Some(4)), [3, 4]);
    assert_eq!(between(Some(4), Some(2)), [0; 0]);
}

/// Sorted by relevance, then newest first.
pub fn best_first(store: &dyn Store) {
    let filler = "hay ".repeat(300);
    let texts = [
        format!("needle {filler}"),
        "needle needle".to_owned(),
        "needle".to_owned(),
        "needle".to_owned(),
    ];
    said(store, &texts.each_ref().map(String::as_str));
    let found = hits(store, &query("needle")).hits;
    let order: Vec<u64> = found.iter().map(|hit| hit.seq.0).collect();
    assert_eq!(order, [3, 5, 4, 2]);
    assert!(found.is_sorted_by(|a, b| a.score >= b.score));
}
