//! Applies the same random history to both backends and compares them.

#![allow(unused_imports, reason = "one list of names for the whole suite")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tertulia_core::entry::{
    Body, Created, Entry, Forked, Head, Kind, Message, NewEntry, Origin, Relation, Role, Speaker,
    SpeakerKind,
};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::query::{Filter, HitFilter, Lookup, Page, SearchQuery};
use tertulia_core::search_text::SearchTerms;
use tertulia_core::session::{Line, Log};
use tertulia_store::files::FilesStore;
use tertulia_store::{
    CheckMode, Draft, Maintenance, NewSession, Progress, Report, Store, StoreError,
};
use tertulia_testkit::ask::now as block_on;
use uuid::Uuid;

use super::home::*;

/// Applies one random step to both stores and compares the results.
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
    let entry = |body: Body| NewEntry {
        at: at(n),
        ..new_entry(body)
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
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        }));
        let entries = Entry::chain(&Head::START, vec![created]).unwrap();
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
                project_ids: Vec::new(),
                cwd: None,
                terms: None,
                seal: None,
            }));
            let entries = Entry::chain(&place, vec![forked]).unwrap();
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
                3 => Body::Trashed(tertulia_core::entry::Touched {
                    operation: EntryId::new(Uuid::from_u128(1)),
                }),
                4 => Body::Renamed(tertulia_core::entry::Renamed {
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
                Entry::chain(&after, vec![entry(body), entry(said("apples").body)]).unwrap();
            agree(
                stores
                    .iter()
                    .map(|store| format!("{:?}", block_on(store.append(pick, after, &entries))))
                    .collect(),
            );
        }
    }
}

/// One test per random seed, so that they run in parallel. The last two run in a soak only.
macro_rules! stories {
    ($($name:ident $seed:literal),*) => {
        $(
            #[test]
            fn $name() {
                if $seed <= 2 || tertulia_testkit::soak::soak() {
                    tell_the_same_story($seed);
                }
            }
        )*
    };
}

stories!(first 1, second 2, third 3, fourth 4);

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
    let database = tertulia_store::sqlite::SqliteStore::in_memory().unwrap();
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
            (None, tertulia_core::query::Trash::Without),
            (
                Some("here".to_owned()),
                tertulia_core::query::Trash::Without,
            ),
            (Some("here".to_owned()), tertulia_core::query::Trash::Only),
            (None, tertulia_core::query::Trash::With),
        ] {
            let order = if n % 20 == 9 {
                tertulia_core::query::Order::Updated
            } else {
                tertulia_core::query::Order::Changed
            };
            let filter = Filter {
                project: project.map(Into::into),
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
                        words: SearchTerms::parse(words).unwrap(),
                        filter: filter.clone(),
                        said: HitFilter::default(),
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
