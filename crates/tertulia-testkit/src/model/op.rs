//! What may happen, and how a history is made up.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tertulia_core::entry::{Kind, Role};
use tertulia_core::query::{Filter, Order, Trash};

use crate::clock::moment;

/// The words that everybody uses, so that searches find something.
pub const WORDS: &[&str] = &["apple", "pear", "apples", "Brücke", "世界", "a\r\nb"];
/// The titles.
pub const TITLES: &[&str] = &["Plans", "plans", "It's \"new\""];
/// The tags.
pub const TAGS: &[&str] = &["x", "y"];
/// The projects.
pub const PROJECTS: &[&str] = &["/a", "/b"];
/// What people type into the search.
pub const QUERIES: &[&str] = &[
    "apple",
    "appl*",
    "pear -apple",
    "\"apple pear\"",
    "bruc*",
    "世",
    "plans",
];

/// One step. Sessions are numbered in the order of their making, and the last one stands for all numbers
/// beyond; places in a log likewise.
#[derive(Clone, Debug)]
pub enum Op {
    /// A session begins with some messages.
    Create {
        /// Its project.
        project: Option<&'static str>,
        /// Its kind.
        kind: Kind,
        /// Its title.
        title: Option<&'static str>,
        /// What is said at once.
        said: Vec<&'static str>,
    },
    /// A purged session's id is used again; an id that is taken is refused.
    CreateAgain(usize),
    /// Messages in one append, by a person and an agent in turn.
    Say(usize, Vec<&'static str>),
    /// Messages after an earlier place: refused, unless it is the last.
    SayAfter(usize, usize),
    /// A fork after a place.
    Fork {
        /// Of which session.
        of: usize,
        /// After which entry.
        at: usize,
        /// The project it moves to.
        project: Option<&'static str>,
    },
    /// A fork from an entry that is another's: refused.
    ForkWrongly(usize),
    /// A new title.
    Rename(usize, &'static str),
    /// A tag comes.
    Tag(usize, &'static str),
    /// A tag goes.
    Untag(usize, &'static str),
    /// Into the trash.
    Trash(usize),
    /// Out of it.
    Restore(usize),
    /// The newest change but so many is taken back; only with 0 that has an effect.
    Undo(usize, usize),
    /// Physically removed.
    Purge(usize),
    /// A half-written answer to the last entry but so many.
    Draft(usize, usize, &'static str),
    /// From now on through another handle.
    OtherHandle,
    /// Everything derived is derived anew.
    Rebuild,
    /// All pages of a list.
    List(Box<Filter>, usize),
    /// A piece of a log.
    Read(usize, u64, usize),
    /// By the beginning of an id.
    FindBeginning(usize, usize),
    /// By the ending of an id.
    FindEnding(usize, usize),
    /// By title.
    FindTitle(&'static str),
    /// Words, in one project or all, by one speaker or all, in one role or all.
    Search(
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
        Option<Role>,
    ),
    /// A look at every byte.
    Check,
}

/// How many handles a backend has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handles {
    /// Only one: [`Op::OtherHandle`] never happens.
    One,
    /// As many as one likes.
    Several,
}

/// Histories of up to thirty steps.
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
