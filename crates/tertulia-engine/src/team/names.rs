//! The members of a team, and resolution of names to members.

use tertulia_core::entry::{Addressee, Speaker, SpeakerKind};
use tertulia_core::team::address;
use tertulia_core::team::markers::{self, split_intent, undecorated};

/// Whether a member is a person or an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// A person, whose message is waited for.
    Human,
    /// An agent, which is prompted.
    Ai,
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Stable id.
    pub id: String,
    /// Name in markers.
    pub name: String,
    /// Name shown to people.
    pub display_name: String,
    /// Person or agent.
    pub nature: Nature,
    /// Position in the team: lower comes first.
    pub order: usize,
    /// Default addressees, used for a message without markers while the queue is idle.
    pub usual: Vec<markers::Addressee>,
}

impl Member {
    /// Returns whether the member is a person.
    pub fn is_human(&self) -> bool {
        self.nature == Nature::Human
    }

    /// Returns the name for prompts, see [`Speaker::prompt_name`].
    pub fn prompt_name(&self) -> String {
        self.speaker().prompt_name().to_owned()
    }

    /// Returns the member as a speaker of the log.
    pub fn speaker(&self) -> Speaker {
        Speaker {
            id: self.id.clone(),
            name: self.name.clone(),
            display_name: self.display_name.clone(),
            kind: match self.nature {
                Nature::Human => SpeakerKind::Human,
                Nature::Ai => SpeakerKind::Ai,
            },
        }
    }
}

/// Normalises a name for comparison: lower case, without spaces, `-` and `_`, and without a
/// trailing `!P1`.
pub fn normalise(name: &str) -> String {
    address(split_intent(name).0)
}

/// Returns the first member with this id, name or display name, as written or without decoration:
/// `@ben`, `**ben**`.
pub fn find<'a>(members: &'a [Member], name: &str) -> Option<&'a Member> {
    let (name, _) = split_intent(name);
    called(members, name).or_else(|| called(members, undecorated(name)))
}

fn called<'a>(members: &'a [Member], name: &str) -> Option<&'a Member> {
    let wanted = normalise(name);
    if wanted.is_empty() {
        return None;
    }
    members.iter().find(|member| {
        [&member.id, &member.name, &member.display_name]
            .into_iter()
            .any(|name| normalise(name) == wanted)
    })
}

/// Resolves names to addressees for the log.
pub fn resolve(members: &[Member], named: &[markers::Addressee]) -> Vec<Addressee> {
    named
        .iter()
        .map(|addressee| Addressee {
            identifier: addressee.name.clone(),
            member: find(members, &addressee.name).map(|member| member.id.clone()),
            intent: addressee.intent,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn member(id: &str, name: &str, display_name: &str) -> Member {
        Member {
            id: id.into(),
            name: name.into(),
            display_name: display_name.into(),
            nature: Nature::Ai,
            order: 0,
            usual: Vec::new(),
        }
    }

    fn check(name: &str, expected: Option<&str>) {
        let team = [
            member("m-1", "code_reviewer", "Max the Reviewer"),
            member("m-2", "coder", "CODE-REVIEWER"),
            member("m-3", "李雷", "--"),
        ];
        let found = find(&team, name).map(|member| member.id.as_str());
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn names_are_matched_loosely() {
        check("M1", Some("m-1"));
        check("Code Reviewer", Some("m-1"));
        check("max-the_reviewer", Some("m-1"));
        check("Coder", Some("m-2"));
        check("李雷", Some("m-3"));
        check("code", None);
        check("maxx", None);
    }

    #[test]
    fn what_agents_put_around_a_name_is_no_part_of_it() {
        check("`coder`", Some("m-2"));
        check("@coder", Some("m-2"));
        check("**Coder**", Some("m-2"));
        check("**`@coder`**", Some("m-2"));
        check("\"max the reviewer\"", Some("m-1"));
        check("“李雷”", Some("m-3"));
        check("**coder**!P1", Some("m-2"));
        check("`coder!P1`", Some("m-2"));
        check("@", None);
        check("**", None);
        check("co*der", None);
    }

    /// A member with exactly this name takes precedence.
    #[test]
    fn a_name_that_is_written_so_goes_before() {
        let team = [member("bot", "bot", "Bot"), member("@bot", "@bot", "@Bot")];
        let found = |name| find(&team, name).map(|member| member.id.as_str());
        assert_eq!(found("@bot"), Some("@bot"));
        assert_eq!(found("bot"), Some("bot"));
        assert_eq!(found("`bot`"), Some("bot"));
    }

    #[test]
    fn the_first_member_of_a_name_is_meant() {
        check("code-reviewer", Some("m-1"));
    }

    #[test]
    fn an_intent_is_no_part_of_a_name() {
        check("coder!P1", Some("m-2"));
        check("coder !p3", Some("m-2"));
        check("coder！p1", Some("m-2"));
        check("coder ！P2", Some("m-2"));
        check("coder!P4", None);
        check("!P1", None);
    }

    #[test]
    fn nothing_is_nobody() {
        check("", None);
        check("--", None);
        check(" _ ", None);
    }

    proptest! {
        /// Every member is found by its own id, unless one before it has that name.
        #[test]
        fn members_are_found_by_id(ids in prop::collection::btree_set("[a-z][a-z0-9]{0,5}", 1..6)) {
            let team: Vec<Member> = ids.iter().map(|id| member(id, id, id)).collect();
            for id in &ids {
                let spelled = id.to_uppercase().chars().flat_map(|letter| [letter, '-']).collect::<String>();
                prop_assert_eq!(&find(&team, &spelled).unwrap().id, id);
            }
        }
    }
}
