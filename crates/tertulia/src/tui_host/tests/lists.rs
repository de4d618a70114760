//! Lists, searches, fork trees and statistics.

use std::collections::BTreeSet;

use tertulia_core::entry::{Compacted, Usage};
use tertulia_core::query::{Filter, HitFilter, Page, SearchQuery};
use tertulia_core::search_text::SearchTerms;
use tertulia_testkit::ask::now;
use tertulia_testkit::logs::{calling, tool_result, trashed};

use super::*;
use tertulia_tui::item::What;
use tertulia_tui::search::Spot;
use tertulia_tui::tree::Tree;

fn query(words: &str) -> SearchQuery {
    SearchQuery {
        words: SearchTerms::parse(words).unwrap(),
        filter: Filter::default(),
        said: HitFilter::default(),
        limit: 10,
    }
}

fn listed(world: &World, wanted: picker::Wanted) -> TuiResult<Listed> {
    held!(world.answer(Request::Picker(7, wanted)), Answer::Picker(7, listed) => listed)
}

fn searched(world: &World, wanted: search::Wanted) -> TuiResult<Searched> {
    held!(world.answer(Request::Search(9, wanted)), Answer::Search(9, searched) => searched)
}

fn texts(items: &[Item]) -> Vec<&str> {
    items
        .iter()
        .map(|item| match &item.what {
            What::Said(said) => said.text.as_str(),
            What::Used(used) => used.call.name.as_str(),
            _ => "",
        })
        .collect()
}

#[test]
fn the_list_gets_pages_hits_and_previews() {
    for world in World::each() {
        let first = world.small("first");
        let second = world.small("second");
        let page = picker::Wanted::Page {
            filter: world.workspace.here(),
            page: Page::first(1),
        };
        let listing = held!(listed(&world, page), Ok(Listed::Page(listing)) => listing);
        assert_eq!(listing.rows[0].meta.id, second.id);
        assert!(listing.next.is_some());
        let hits = held!(listed(&world, picker::Wanted::Search(Box::new(query("question")))), Ok(Listed::Found(hits)) => hits);
        assert_eq!(hits.total, 2);
        let (id, messages) = (first.id, 1);
        let items = held!(listed(&world, picker::Wanted::Preview { id, messages }), Ok(Listed::Preview(items)) => items);
        assert_eq!(texts(&items), ["an answer"]);
        let id = world.nobody();
        let why = refused(listed(&world, picker::Wanted::Preview { id, messages }));
        assert!(why.contains("there is no session"), "{why}");
    }
}

#[test]
fn a_preview_has_the_answer_that_nobody_finished() {
    for world in World::each() {
        let mut writer = world.small("cut off");
        writer.say(world.store(), "and then?");
        now(world
            .store()
            .keep_draft(writer.id, &writer.draft("then we")))
        .unwrap();
        let wanted = picker::Wanted::Preview {
            id: writer.id,
            messages: 2,
        };
        let items = held!(listed(&world, wanted.clone()), Ok(Listed::Preview(items)) => items);
        assert_eq!(texts(&items), ["an answer", "and then?", "then we"]);
        assert!(matches!(&items[2].what, What::Said(said) if said.interrupted));
        let claim = now(world.store().claim(writer.id)).unwrap();
        let items = held!(listed(&world, wanted), Ok(Listed::Preview(items)) => items);
        assert_eq!(items.len(), 2, "somebody is giving it");
        drop(claim);
    }
}

#[test]
fn the_search_gets_hits_and_what_stands_around_them() {
    for world in World::each() {
        let bodies = vec![
            human("one"),
            ai("demo", "two"),
            human("three"),
            calling("demo", "glob", serde_json::json!({})),
            tool_result("glob", "needle"),
            ai("demo", "four"),
        ];
        let writer = world.talk("talk", bodies);
        let hits = held!(searched(&world, search::Wanted::Search(Box::new(query("three")))), Ok(Searched::Found(hits)) => hits);
        let around = |seq, messages| {
            let session = writer.id;
            let spot = Spot { session, seq };
            let wanted = search::Wanted::Around { spot, messages };
            held!(searched(&world, wanted), Ok(Searched::Around(items)) => items)
        };
        let items = around(hits.hits[0].seq, 3);
        assert_eq!(texts(&items), ["two", "three", "glob"]);
        assert_eq!(items[1].seq, Some(hits.hits[0].seq));
        // A hit in a tool's output is shown with the call.
        let items = around(Seq(6), 3);
        assert_eq!(texts(&items), ["glob", "four"]);
        assert!(around(Seq(400), 3).len() <= 3);
        assert!(around(Seq(0), 0).is_empty());
        let session = world.nobody();
        let spot = Spot {
            session,
            seq: Seq(1),
        };
        let messages = 3;
        let wanted = search::Wanted::Around { spot, messages };
        assert!(refused(searched(&world, wanted)).contains("there is no session"));
    }
}

fn rewound(
    world: &World,
    id: SessionId,
    before: Option<u64>,
    count: usize,
) -> TuiResult<(Vec<rewind::Moment>, bool)> {
    let before = before.map(Seq);
    let wanted = rewind::Wanted { before, count };
    held!(world.answer(Request::Rewind(id, 3, wanted)), Answer::Rewind(of, 3, moments) => {
        assert_eq!(of, id);
        moments
    })
}

#[test]
fn what_the_person_said_is_told_newest_first() {
    for world in World::each() {
        let mut writer = world.talk("talk", Vec::new());
        for turn in 0..30 {
            let bodies = vec![
                human(&format!("question {turn}")),
                ai("demo", "x"),
                ai("demo", "y"),
            ];
            writer.append(world.store(), bodies);
        }
        let mut before = None;
        let mut texts = Vec::new();
        loop {
            let (moments, has_more) = rewound(&world, writer.id, before, 7).unwrap();
            before = moments.last().map(|moment| moment.seq.0).or(before);
            texts.extend(moments.into_iter().map(|moment| moment.text));
            if !has_more {
                break;
            }
        }
        let expected: Vec<String> = (0..30)
            .rev()
            .map(|turn| format!("question {turn}"))
            .collect();
        assert_eq!(texts, expected);
        let (none, has_more) = rewound(&world, writer.id, Some(0), 7).unwrap();
        assert!(none.is_empty() && !has_more);
        assert!(refused(rewound(&world, world.nobody(), None, 7)).contains("there is no session"));
        let long = world.talk("long", vec![human(&"ä".repeat(90_000))]);
        let words = |id, seq| held!(world.answer(Request::Words(id, Seq(seq))), Answer::Words(_, _, words) => words);
        assert_eq!(words(long.id, 2), Ok("ä".repeat(90_000)));
        assert!(refused(words(long.id, 1)).contains("is not a message"));
        assert!(refused(words(long.id, 3)).contains("it has entries 1 to 2"));
    }
}

#[test]
fn few_questions_in_a_long_talk_are_found() {
    let world = World::new("sqlite");
    let mut writer = world.small("long");
    for _ in 0..6 {
        let bodies = (0..1000).map(|_| ai("demo", "working"));
        writer.append(world.store(), bodies.collect());
    }
    writer.say(world.store(), "still there?");
    let (moments, has_more) = rewound(&world, writer.id, None, 100).unwrap();
    assert_eq!(
        (moments.len(), has_more),
        (1, true),
        "it does not read all at once"
    );
    assert!(world.store.lines() < 5000);
    let (moments, has_more) = rewound(&world, writer.id, Some(moments[0].seq.0), 100).unwrap();
    assert_eq!((moments.len(), has_more), (1, true));
    let (moments, has_more) = rewound(&world, writer.id, Some(moments[0].seq.0), 100).unwrap();
    assert!(moments.is_empty() && !has_more);
}

fn family(world: &World, id: SessionId) -> Family {
    held!(world.answer(Request::Tree(id)), Answer::Tree(of, family) => {
        assert_eq!(of, id);
        family.unwrap()
    })
}

fn members(family: &Family) -> BTreeSet<SessionId> {
    family.rows.iter().map(|row| row.meta.id).collect()
}

#[test]
fn a_family_is_whole_whoever_is_asked_about() {
    for world in World::each() {
        let eldest = world.small("eldest");
        world.small("a stranger");
        let mut all = BTreeSet::from([eldest.id]);
        let child = eldest.fork(world.store(), 2);
        let mut other = eldest.fork(world.store(), 3);
        other.append(world.store(), vec![trashed()]);
        let grandchild = child.fork(world.store(), 3);
        all.extend([child.id, other.id, grandchild.id]);
        for member in &all {
            let family = family(&world, *member);
            assert_eq!((members(&family), family.complete), (all.clone(), true));
            assert_eq!(family.rows.len(), 4, "each once");
            assert_eq!(Tree::new(*member, &family.rows).nodes()[0].id, eldest.id);
        }
        // More than are queried one by one.
        let mut last = grandchild;
        for _ in 0..30 {
            all.insert(eldest.fork(world.store(), 1).id);
            last = last.fork(world.store(), last.head().seq.0);
            all.insert(last.id);
        }
        world.store.rows();
        let family = family(&world, last.id);
        assert_eq!((members(&family), family.complete), (all.clone(), true));
        assert_eq!(family.rows.len(), all.len(), "each once");
        assert!(world.store.rows() < 4 * all.len());
        let missing =
            held!(world.answer(Request::Tree(world.nobody())), Answer::Tree(_, family) => family);
        assert!(refused(missing).contains("there is no session"));
    }
}

#[test]
fn a_fork_whose_parent_is_gone_is_still_shown() {
    let world = World::new("sqlite");
    let eldest = world.small("eldest");
    let child = eldest.fork(world.store(), 2);
    now(world.store().purge(eldest.id)).unwrap();
    let family = family(&world, child.id);
    assert_eq!(members(&family), BTreeSet::from([child.id]));
}

#[test]
fn figures_count_every_message_once() {
    for world in World::each() {
        let mut writer = world.talk("talk", Vec::new());
        for _ in 0..600 {
            writer.append(
                world.store(),
                vec![human("q"), ai("demo", "a"), ai("claude", "b")],
            );
        }
        let compacted = Body::Compacted(Compacted {
            upto: Seq(2),
            summary: "so far".to_owned(),
            agent: "demo".to_owned(),
            model: None,
            thread: None,
            usage: Some(Usage::told(100, 10)),
        });
        writer.append(world.store(), vec![compacted]);
        let figures = held!(world.answer(Request::Stats(writer.id)), Answer::Stats(_, figures) => figures.unwrap());
        let meta = writer.meta();
        let days = figures.days.iter().map(|(_, amount)| *amount);
        let total = days.reduce(|a, b| a.plus(b)).unwrap();
        assert_eq!((total.messages, total.tokens), (1800, meta.tokens));
        let names: Vec<&str> = figures
            .agents
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["claude", "demo"]);
        assert_eq!(
            figures.agents[1].1.tokens,
            Usage::told(600 * 7 + 100, 600 * 5 + 10)
        );
        let models: Vec<(&str, u64)> = figures
            .models
            .iter()
            .map(|(name, amount)| (name.as_str(), amount.messages))
            .collect();
        assert_eq!(models, [("claude-1", 600), ("demo-1", 600)]);
        assert!(figures.of.contains("talk") && figures.sessions == 1);
        let missing = held!(world.answer(Request::Stats(world.nobody())), Answer::Stats(_, figures) => figures);
        assert!(refused(missing).contains("there is no session"));
    }
}

#[test]
fn a_session_is_found_as_commands_find_it() {
    for world in World::each() {
        let find = |text: &str| {
            held!(world.answer(Request::Find(text.to_owned())), Answer::Found(named, row) => {
                assert_eq!(named, text);
                row
            })
        };
        assert!(refused(find("@")).contains("there are no sessions"));
        let parser = world.small("parser rewrite");
        world.small("twice");
        let newest = world.small("twice");
        assert_eq!(find("@").unwrap().meta.id, newest.id);
        assert_eq!(find(&parser.id.short()).unwrap().meta.id, parser.id);
        assert_eq!(find("parser rewrite").unwrap().meta.id, parser.id);
        let why = refused(find("twice"));
        assert!(
            why.contains("'twice' names 2 sessions") && why.contains(&newest.id.short()),
            "{why}"
        );
        let why = refused(find("parser rewrit"));
        assert!(
            why.contains("did you mean") && why.contains("parser rewrite"),
            "{why}"
        );
        assert!(!refused(find("  ")).is_empty());
        assert!(!refused(find("@~x")).is_empty());
    }
}

#[test]
fn who_answers_and_which_teams_are_told_in_lines() {
    let world = World::new("sqlite");
    let lines = held!(world.answer(Request::Teams), Answer::Teams(lines) => lines.unwrap());
    assert!(lines[0].contains("there are no teams here"), "{lines:?}");
    let folder = world.cwd().join(crate::teams::HOME);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("demo.json"), tertulia_core::team::EXAMPLE).unwrap();
    std::fs::write(folder.join("broken.json"), "{").unwrap();
    let lines = held!(world.answer(Request::Teams), Answer::Teams(lines) => lines.unwrap());
    assert!(
        lines[0].starts_with("NAME") && lines[2].contains("valid"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("broken"), "{lines:?}");
    let request = Request::Agents(None);
    let agents = held!(world.answer(request), Answer::Agents(_, agents) => agents.unwrap());
    let is_demo = |agent: &tertulia_tui::host::AgentRow| agent.name == "demo" && agent.is_ready;
    assert!(agents.iter().any(is_demo), "{agents:?}");
}
