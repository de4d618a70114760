use proptest::prelude::*;

use super::*;

/// Aligns texts letter by letter; a letter resembles the same one in the other case.
fn aligned(a: &str, b: &str) -> String {
    let [a, b] = [a, b].map(|text| text.chars().collect::<Vec<_>>());
    let [keys_a, keys_b] =
        [&a, &b].map(|text| text.iter().map(|c| u128::from(*c)).collect::<Vec<_>>());
    let likeness = |at_a: usize, at_b: usize| match a[at_a].eq_ignore_ascii_case(&b[at_b]) {
        true => 0.8,
        false => 0.0,
    };
    let steps = align(&keys_a, &keys_b, likeness);
    let show = |step: &Step| match step {
        Step::Equal(at, _) => a[*at].to_string(),
        Step::Changed(at_a, at_b) => format!("({}{})", a[*at_a], b[*at_b]),
        Step::OnlyA(at) => format!("-{}", a[*at]),
        Step::OnlyB(at) => format!("+{}", b[*at]),
    };
    steps.iter().map(show).collect()
}

#[track_caller]
fn check(a: &str, b: &str, expected: &str) {
    assert_eq!(aligned(a, b), expected, "{a} {b}");
}

#[test]
fn sequences_are_aligned() {
    check("", "", "");
    check("abc", "abc", "abc");
    check("abc", "", "-a-b-c");
    check("", "abc", "+a+b+c");
    check("abc", "xyz", "-a-b-c+x+y+z");
    check("abcd", "abxd", "ab-c+xd");
    check("abd", "abcd", "ab+cd");
    // What moved is found once: the longer run stays in place.
    check("abcdx", "xabcd", "+xabcd-x");
    // Repeated items do not hide the run around them.
    check("xoyoz", "oxoyoz", "+oxoyoz");
    check("oooo", "ooo", "ooo-o");
}

#[test]
fn similar_items_are_pairs() {
    check("aBc", "abc", "a(Bb)c");
    check("aBCd", "abcd", "a(Bb)(Cc)d");
    check("aXBd", "abd", "a-X(Bb)d");
    check("aBd", "axbd", "a+x(Bb)d");
    // Of two candidates one is taken, and nothing is paired across another pair.
    let crossed = aligned("xBAy", "xaby");
    assert_eq!(crossed.matches('(').count(), 1, "{crossed}");
}

#[test]
fn long_gaps_are_compared_nearby() {
    let upper: String = ('A'..='Z').cycle().take(200).collect();
    let lower = upper.to_lowercase();
    let steps = aligned(&upper, &lower);
    assert_eq!(steps.matches('(').count(), 200);
    // After another conversation of the same length, the pairs are found again.
    let (other, different) = ("!".repeat(600), "?".repeat(600));
    let steps = aligned(&format!("{other}{upper}"), &format!("{different}{lower}"));
    assert!(steps.matches('(').count() > 190, "{steps}");
}

/// Sequences without any structure, on which a search for the shortest difference takes minutes.
#[test]
fn contrived_sequences_take_no_time() {
    let mut state = 7_u64;
    let mut letters = |of: u64| -> Vec<Key> {
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            Key::from(state % of)
        };
        (0..30_000).map(next).collect()
    };
    for of in [2, 50, 20_000] {
        let (a, b) = (letters(of), letters(of));
        let begun = std::time::Instant::now();
        let steps = align(&a, &b, |_, _| 0.0);
        assert!(
            begun.elapsed().as_secs() < 20,
            "{of}: {:?}",
            begun.elapsed()
        );
        assert!(steps.len() < 60_000);
    }
    let (a, b): (Vec<Key>, Vec<Key>) = ((0..30_000).collect(), (0..30_000).rev().collect());
    let steps = align(&a, &b, |_, _| 0.0);
    assert_eq!(steps.len(), 59_999);
}

fn keys() -> impl Strategy<Value = Vec<Key>> {
    prop::collection::vec((0..12_u8).prop_map(Key::from), 0..40)
}

/// Keys resemble each other if they differ by one.
fn near(a: Key, b: Key) -> f32 {
    if a.abs_diff(b) == 1 { 0.6 } else { 0.0 }
}

proptest! {
    #[test]
    fn every_item_is_in_one_step_and_in_order(a in keys(), b in keys()) {
        let steps = align(&a, &b, |at_a, at_b| near(a[at_a], b[at_b]));
        let (mut in_a, mut in_b) = (Vec::new(), Vec::new());
        for step in &steps {
            match *step {
                Step::Equal(at_a, at_b) => {
                    prop_assert_eq!(a[at_a], b[at_b]);
                    in_a.push(at_a);
                    in_b.push(at_b);
                }
                Step::Changed(at_a, at_b) => {
                    prop_assert!(near(a[at_a], b[at_b]) >= ALIKE);
                    in_a.push(at_a);
                    in_b.push(at_b);
                }
                Step::OnlyA(at) => in_a.push(at),
                Step::OnlyB(at) => in_b.push(at),
            }
        }
        prop_assert_eq!(in_a, (0..a.len()).collect::<Vec<_>>());
        prop_assert_eq!(in_b, (0..b.len()).collect::<Vec<_>>());
    }

    #[test]
    fn swapping_the_sequences_swaps_the_steps(a in keys(), b in keys()) {
        let steps = align(&a, &b, |at_a, at_b| near(a[at_a], b[at_b]));
        let swapped = align(&b, &a, |at_b, at_a| near(a[at_a], b[at_b]));
        let back: Vec<Step> = swapped.into_iter().map(Step::swapped).collect();
        prop_assert_eq!(steps, only_a_first(back));
    }

    #[test]
    fn equal_sequences_do_not_differ(a in keys()) {
        let steps = align(&a, &a, |_, _| 1.0);
        prop_assert!(steps.iter().all(|step| matches!(step, Step::Equal(..))));
    }

    /// Items that only one sequence has never hide a common one.
    #[test]
    fn inserted_items_are_the_only_difference(
        a in keys(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let mut b = a.clone();
        for (number, place) in places.iter().enumerate() {
            b.insert(place.index(b.len() + 1), 1000 + number as Key);
        }
        let steps = align(&a, &b, |_, _| 0.0);
        let equal = steps.iter().filter(|step| matches!(step, Step::Equal(..))).count();
        // Repeated items may be paired with another of their kind, so that one more is left over.
        let unique = a.iter().filter(|key| a.iter().filter(|other| other == key).count() == 1);
        prop_assert!(equal >= unique.count());
        prop_assert_eq!(steps.len(), a.len() + b.len() - equal);
    }
}
