//! Operations, and the generation of histories.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tertulia_core::entry::{Kind, Role};
use tertulia_core::query::{Filter, Order, Trash};

use crate::clock::moment;

/// Message texts; few, so that searches match.
pub const WORDS: &[&str] = &["apple", "pear", "apples", "Brücke", "世界", "a\r\nb"];
/// Titles.
pub const TITLES: &[&str] = &["Plans", "plans", "It's \"new\""];
/// Tags.
pub const TAGS: &[&str] = &["x", "y"];
/// Projects.
pub const PROJECTS: &[&str] = &["/a", "/b"];
/// Search queries.
pub const QUERIES: &[&str] = &[
    "apple",
    "appl*",
    "pear -apple",
    "\"apple pear\"",
    "bruc*",
    "世",
    "plans",
];

/// One step. Sessions are numbered in order of creation; numbers beyond the last mean the last one.
/// The same holds for positions in a log.
#[derive(Clone, Debug)]
pub enum Op {
    /// Creates a session with some messages.
    Create {
        /// Project.
        project: Option<&'static str>,
        /// Kind.
        kind: Kind,
        /// Title.
        title: Option<&'static str>,
        /// Messages in the same append.
        said: Vec<&'static str>,
    },
    /// Creates a session with an existing id: succeeds if that session is purged, fails otherwise.
    CreateAgain(usize),
    /// Appends messages of a person and an agent in turn, in one append.
    Say(usize, Vec<&'static str>),
    /// Appends messages after an earlier position: fails unless it is the last.
    SayAfter(usize, usize),
    /// Forks a session.
    Fork {
        /// The session.
        of: usize,
        /// The entry.
        at: usize,
        /// Project of the fork.
        project: Option<&'static str>,
    },
    /// Forks with a sequence number and hash that do not belong together: fails.
    ForkWrongly(usize),
    /// Sets the title.
    Rename(usize, &'static str),
    /// Adds a tag.
    Tag(usize, &'static str),
    /// Removes a tag.
    Untag(usize, &'static str),
    /// Moves to the trash.
    Trash(usize),
    /// Restores from the trash.
    Restore(usize),
    /// Undoes the change this many before the newest; only 0 has an effect.
    Undo(usize, usize),
    /// Purges.
    Purge(usize),
    /// Compresses.
    Compress(usize),
    /// Saves a draft that answers the entry this many before the last.
    Draft(usize, usize, &'static str),
    /// Switches to another handle.
    OtherHandle,
    /// Rebuilds all derived data.
    Rebuild,
    /// Lists all pages.
    List(Box<Filter>, usize),
    /// Reads a section of a log.
    Read(usize, u64, usize),
    /// Looks up by prefix of an id.
    FindBeginning(usize, usize),
    /// Looks up by suffix of an id.
    FindEnding(usize, usize),
    /// Looks up by title.
    FindTitle(&'static str),
    /// Searches for terms, optionally by project, speaker and role.
    Search(
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
        Option<Role>,
    ),
    /// Verifies every byte.
    Check,
}

/// Number of handles that a backend supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handles {
    /// Only one: [`Op::OtherHandle`] is not generated.
    One,
    /// Any number.
    Several,
}

/// Generates histories of up to thirty steps.
pub fn histories(handles: Handles) -> impl Strategy<Value = Vec<Op>> {
    let step = prop_oneof![
        8 => beginnings(),
        10 => changes(),
        8 => questions(),
    ];
    match handles {
        Handles::One => vec(step.boxed(), 1..30),
        Handles::Several => vec(
            prop_oneof![12 => step, 1 => Just(Op::OtherHandle)].boxed(),
            1..30,
        ),
    }
}

fn session() -> impl Strategy<Value = usize> {
    0..6_usize
}

fn project() -> impl Strategy<Value = Option<&'static str>> {
    proptest::option::of(select(PROJECTS))
}

fn beginnings() -> impl Strategy<Value = Op> {
    let kinds = select(vec![Kind::Chat, Kind::Team]);
    let titles = proptest::option::of(select(TITLES));
    let created = (project(), kinds, titles, vec(select(WORDS), 0..3));
    prop_oneof![
        4 => created.prop_map(|(project, kind, title, said)| Op::Create { project, kind, title, said }),
        4 => (session(), 0..12_usize, project())
            .prop_map(|(of, at, project)| Op::Fork { of, at, project }),
        1 => session().prop_map(Op::ForkWrongly),
        1 => session().prop_map(Op::CreateAgain),
    ]
}

fn changes() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (session(), vec(select(WORDS), 1..4)).prop_map(|(n, said)| Op::Say(n, said)),
        1 => (session(), 0..9_usize).prop_map(|(n, at)| Op::SayAfter(n, at)),
        1 => (session(), select(TITLES)).prop_map(|(n, title)| Op::Rename(n, title)),
        1 => (session(), select(TAGS)).prop_map(|(n, tag)| Op::Tag(n, tag)),
        1 => (session(), select(TAGS)).prop_map(|(n, tag)| Op::Untag(n, tag)),
        2 => session().prop_map(Op::Trash),
        1 => session().prop_map(Op::Restore),
        2 => (session(), 0..2_usize).prop_map(|(n, back)| Op::Undo(n, back)),
        2 => session().prop_map(Op::Purge),
        3 => session().prop_map(Op::Compress),
        1 => (session(), 0..2_usize, select(WORDS)).prop_map(|(n, back, said)| Op::Draft(n, back, said)),
        1 => Just(Op::Rebuild),
    ]
}

fn questions() -> impl Strategy<Value = Op> {
    let speaker = proptest::option::of(select(vec!["you", "claude"]));
    let role = proptest::option::of(select(vec![Role::User, Role::Assistant]));
    prop_oneof![
        3 => (filters(), 1..5_usize).prop_map(|(filter, limit)| Op::List(Box::new(filter), limit)),
        2 => (session(), 0..9_u64, 0..9_usize).prop_map(|(n, after, limit)| Op::Read(n, after, limit)),
        1 => (session(), 4..=36_usize).prop_map(|(n, length)| Op::FindBeginning(n, length)),
        1 => (session(), 4..=36_usize).prop_map(|(n, length)| Op::FindEnding(n, length)),
        1 => select(TITLES).prop_map(Op::FindTitle),
        4 => (select(QUERIES), project(), speaker, role)
            .prop_map(|(words, project, speaker, role)| Op::Search(words, project, speaker, role)),
        1 => Just(Op::Check),
    ]
}

fn filters() -> impl Strategy<Value = Filter> {
    let trash = select(vec![Trash::Without, Trash::Only, Trash::With]);
    let order = select(vec![Order::Updated, Order::Changed]);
    let kind = proptest::option::of(select(vec![Kind::Chat, Kind::Team]));
    let tag = proptest::option::of(select(TAGS));
    let since = proptest::option::of(0..40_i64);
    let until = proptest::option::of(0..60_i64);
    let projects = proptest::option::of(vec(select(PROJECTS), 1..3));
    (projects, kind, tag, since, until, trash, order).prop_map(
        |(projects, kind, tag, since, until, trash, order)| Filter {
            project: projects.map(|ids| ids.into_iter().collect()),
            kind,
            tag: tag.map(str::to_owned),
            since: since.map(moment),
            until: until.map(moment),
            trash,
            order,
            ..Filter::default()
        },
    )
}
