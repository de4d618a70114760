//! Mentions: `@ben what do you think?` at the beginning of a person's message addresses that
//! member, as `[NEXT: ben]` would. Everywhere else, and for agents, an `@` is text.

use super::names::Member;
use tertulia_core::team::markers::{self, Addressee, Intent};

/// Returns the members mentioned at the beginning of a message, in order. Only complete names and
/// display names count, in any case: `@ben.txt`, `@ben/notes` and `ben@example.com` mention no
/// member.
pub fn leading(members: &[Member], text: &str) -> Vec<Addressee> {
    let mut found = Vec::new();
    // `[FROM: ann]` may precede it.
    let shown = markers::shown(text);
    let mut rest = shown.trim_start();
    while let Some((addressee, after)) = mention(members, rest) {
        found.push(addressee);
        rest = after.trim_start_matches([',', ':', ';']).trim_start();
    }
    found
}

/// Returns the mention with which a text begins, and the text after it.
fn mention<'a>(members: &[Member], text: &'a str) -> Option<(Addressee, &'a str)> {
    let name = text.strip_prefix(['@', '＠'])?;
    let names = members
        .iter()
        .flat_map(|member| [&member.name, &member.display_name].map(|name| (member, name)));
    let fitting = names.filter_map(|(member, written)| {
        let after = without_prefix(name, written)?;
        let (intent, after) = intent(after);
        is_end(after).then_some((written.len(), member, intent, after))
    });
    // `@Ada Lovelace` is not `@Ada`.
    let (_, member, intent, after) = fitting.max_by_key(|(length, ..)| *length)?;
    let name = member.name.clone();
    Some((Addressee { name, intent }, after))
}

/// Returns the text after a name at its beginning, in any case.
fn without_prefix<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    if name.is_empty() {
        return None;
    }
    let mut rest = text.chars();
    for letter in name.chars() {
        let same = rest.next()?.to_lowercase().eq(letter.to_lowercase());
        if !same {
            return None;
        }
    }
    Some(rest.as_str())
}

/// Parses the urgency that may follow a name: `!P1`.
fn intent(text: &str) -> (Intent, &str) {
    let intents = [
        ("!p1", Intent::P1),
        ("!p2", Intent::P2),
        ("!p3", Intent::P3),
    ];
    let written = intents
        .into_iter()
        .find_map(|(written, intent)| Some((intent, without_prefix(text, written)?)));
    written.unwrap_or((Intent::default(), text))
}

/// Returns whether a name ends here: followed neither by a letter nor by a part of a path or
/// address.
fn is_end(after: &str) -> bool {
    let mut letters = after.chars();
    match letters.next() {
        None => true,
        Some(letter) if letter.is_whitespace() => true,
        Some(',' | ':' | ';' | '.' | '!' | '?') => letters.next().is_none_or(char::is_whitespace),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::names::Nature;
    use super::*;

    fn team() -> Vec<Member> {
        [
            ("me", "Me"),
            ("ada", "Ada"),
            ("ada-l", "Ada Lovelace"),
            ("ben", "Ben"),
            ("tae", "多恵"),
        ]
        .iter()
        .enumerate()
        .map(|(order, (name, display_name))| Member {
            id: format!("m-{name}"),
            name: (*name).to_owned(),
            display_name: (*display_name).to_owned(),
            nature: Nature::Ai,
            order,
            usual: Vec::new(),
        })
        .collect()
    }

    fn names(text: &str) -> Vec<String> {
        let found = leading(&team(), text).into_iter();
        found.map(|addressee| addressee.name).collect()
    }

    #[test]
    fn a_leading_mention_addresses() {
        for text in [
            "@ben what do you think?",
            "@Ben, what do you think?",
            "  @BEN: hm",
            "@ben",
            "@ben.",
            "[FROM: me] @ben hello",
            "＠ben hello",
        ] {
            assert_eq!(names(text), ["ben"], "{text}");
        }
        assert_eq!(names("@ada @ben both of you"), ["ada", "ben"]);
        assert_eq!(names("@ada, @ben: both of you"), ["ada", "ben"]);
        assert_eq!(names("@Ada Lovelace what now"), ["ada-l"]);
        assert_eq!(names("@ada-l what now"), ["ada-l"]);
        assert_eq!(names("@多恵 hello"), ["tae"]);
        let urgent = leading(&team(), "@ben!P1 stop");
        assert_eq!((urgent.len(), urgent[0].intent), (1, Intent::P1));
    }

    #[test]
    fn an_at_elsewhere_is_text() {
        for text in [
            "what does @ben think?",
            "ben@example.com wrote",
            "@ben@example.com wrote",
            "@ben.txt is empty",
            "@ben/notes.md is empty",
            "@benjamin is nobody",
            "@be",
            "@ ben",
            "@",
            "`@ben` is code",
            "\"@ben\" is a quotation",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
        // Text after a mention may contain further `@`s.
        assert_eq!(names("@ben ask @ada about it"), ["ben"]);
        assert_eq!(names("@ben @src/main.rs is wrong"), ["ben"]);
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "(@|ben|ada|多恵| |!P1|\\PC){0,20}") {
            names(&text);
        }
    }
}
