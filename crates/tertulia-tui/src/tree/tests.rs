use proptest::prelude::*;
use tertulia_core::session::Parent;

use super::*;
use crate::test_support::{any_key, any_size, before, id, key, look, noon, screen, session};
use crate::view;

fn fork(number: u64, of: u64, seq: u64, title: &str, minutes: i64) -> Row {
    let mut row = session(number, title, minutes);
    row.meta.parent = Some(Parent {
        id: id(of),
        seq: Seq(seq),
        relation: Relation::Fork,
    });
    row
}

fn family() -> Vec<Row> {
    let mut trashed = fork(5, 1, 9, "A dead end", 50);
    trashed.meta.trashed_at = Some(before(3));
    vec![
        fork(4, 3, 20, "Deeper 漢字", 40),
        trashed,
        session(1, "Fix the parser", 100),
        fork(2, 1, 4, "Fix the parser (fork)", 90),
        fork(
            3,
            2,
            12,
            "Another try with a title that is far too long for a line of a tree",
            80,
        ),
    ]
}

fn shown(tree: &Tree, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        view::tree::draw(tree, look(), area, buffer);
        None
    })
}

#[test]
fn a_family_is_drawn_with_lines_from_parents_to_forks() {
    let mut tree = Tree::new(id(3), &family());
    insta::assert_snapshot!("family_80", shown(&tree, (80, 24)));
    insta::assert_snapshot!("family_120", shown(&tree, (120, 40)));
    assert_eq!(
        tree.key(key("enter"), noon()),
        Reaction::Resume {
            id: id(3),
            at: None
        }
    );
    assert_eq!(tree.key(key("up"), noon()), Reaction::Changed);
    assert_eq!(
        tree.key(key("enter"), noon()),
        Reaction::Resume {
            id: id(2),
            at: None
        }
    );
    assert_eq!(tree.key(key("x"), noon()), Reaction::Nothing);
    assert_eq!(tree.key(key("esc"), noon()), Reaction::Close);
}

#[test]
fn a_long_chain_of_forks_is_drawn_as_far_as_it_fits() {
    let mut rows = vec![session(0, "the eldest", 100_000)];
    for number in 1..50_000 {
        let minutes = 100_000 - i64::try_from(number).unwrap();
        rows.push(fork(number, number - 1, 1, "a fork", minutes));
    }
    let tree = Tree::new(id(49_999), &rows);
    assert_eq!(tree.nodes().len(), 50_000);
    let screen = shown(&tree, (80, 24));
    assert!(
        screen.contains('⋯') && screen.contains(&id(49_999).short()),
        "{screen}"
    );
}

#[test]
fn a_family_that_claims_to_be_a_circle_is_shown_whole() {
    let rows = [
        fork(1, 2, 1, "hen", 10),
        fork(2, 1, 1, "egg", 9),
        fork(3, 3, 1, "itself", 8),
        fork(4, 99, 1, "orphan", 7),
    ];
    let tree = Tree::new(id(1), &rows);
    assert_eq!(tree.nodes().len(), 4);
    insta::assert_snapshot!("circle", shown(&tree, (80, 12)));
}

#[test]
fn no_family_is_no_trouble() {
    let mut tree = Tree::new(id(1), &[]);
    assert_eq!(tree.key(key("enter"), noon()), Reaction::Nothing);
    shown(&tree, (80, 24));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_session_is_there_once_and_after_its_parent(
        parents in proptest::collection::vec(0..12_u64, 1..12),
    ) {
        let rows: Vec<Row> = parents
            .iter()
            .enumerate()
            .map(|(number, parent)| fork(number as u64, *parent, 1, "x", 50 - number as i64))
            .collect();
        let tree = Tree::new(id(0), &rows);
        prop_assert_eq!(tree.nodes().len(), rows.len());
        for (place, node) in tree.nodes().iter().enumerate() {
            prop_assert!(node.parent.is_none_or(|parent| parent < place));
        }
    }

    #[test]
    fn no_keys_and_no_size_break_it(
        keys in proptest::collection::vec(any_key(), 0..20), size in any_size(), told in any_size(),
    ) {
        let mut tree = Tree::new(id(3), &family());
        tree.resize(Size::new(told.0, told.1));
        for key in keys {
            tree.key(key, noon());
            shown(&tree, size);
        }
    }
}
