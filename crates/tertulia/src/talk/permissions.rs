//! Asks the user line by line for tool permissions, and says which policy the next session gets.

use tertulia_agents::approval::{Approval, Permissions, ToolRequest, Verdict};
use tertulia_core::entry::Relation;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_engine::text::permissions::covers;
pub use tertulia_engine::text::permissions::{line, lines, mode, revocation, revoked};

use super::keyboard::Keyboard;
use crate::args::ApproveMode;
use crate::show;
use crate::ui::{Ui, harmless};

/// Asks the user line by line whether a tool may run. A line that is no answer is kept as a later
/// message; allowing a tool for the whole session takes a second yes.
pub async fn ask(request: &ToolRequest, ui: &mut Ui, keyboard: &mut Keyboard) -> Verdict {
    ui.ask(&show::request(ui, request));
    keyboard.put_aside();
    let allow = covers(request);
    let allow = format!(
        "{}? [y] yes, [n] no: ",
        harmless(&allow.replacen("allow", "Allow", 1))
    );
    let mut asked = Asked::Whether;
    loop {
        ui.prompt(match asked {
            Asked::Whether => QUESTION,
            Asked::ForGood => &allow,
            Asked::WhatInstead => "What to do instead (empty: back): ",
        });
        let Some(line) = keyboard.fresh_line().await else {
            return Verdict::No;
        };
        if asked == Asked::WhatInstead {
            match Verdict::denied(&String::from_utf8_lossy(&line)) {
                Verdict::No => asked = Asked::Whether,
                instead => return instead,
            }
            continue;
        }
        asked = match (typed_answer(&line), asked) {
            (Some(Typed::Yes), Asked::ForGood) => return Verdict::Always,
            (Some(_), Asked::ForGood) => Asked::Whether,
            (Some(Typed::Yes), _) => return Verdict::Yes,
            (Some(Typed::No), _) => return Verdict::No,
            (Some(Typed::Always), _) => Asked::ForGood,
            (Some(Typed::Instead), _) => Asked::WhatInstead,
            // A sentence is a message for the agent, not an answer to the question.
            (None, _) => {
                if keyboard.keep_for_later(line) {
                    ui.note("not an answer: sent when the current answer ends");
                }
                Asked::Whether
            }
        };
    }
}

const QUESTION: &str = "Allow it? [y] once, [a] this session, [n] no, [i] say what to do instead: ";

/// The question that the next line answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Whether,
    ForGood,
    WhatInstead,
}

/// An answer as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typed {
    Yes,
    Always,
    No,
    Instead,
}

/// Parses a line as an answer.
fn typed_answer(line: &[u8]) -> Option<Typed> {
    let line = String::from_utf8_lossy(line);
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Typed::Yes),
        "a" | "always" => Some(Typed::Always),
        "n" | "no" => Some(Typed::No),
        "i" | "instead" => Some(Typed::Instead),
        _ => None,
    }
}

/// A session that is left for another one in the same program.
pub struct LeftSession<'a> {
    pub id: Option<SessionId>,
    pub permissions: &'a Permissions,
    /// Tool policy that a flag of the program set.
    pub flag: Option<ApproveMode>,
}

/// Tool policy of the session that follows another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextPolicy {
    /// The user's word.
    pub approve: Option<ApproveMode>,
    /// Default that is tighter than that of the frontend.
    pub default_policy: Option<Approval>,
}

impl LeftSession<'_> {
    /// Returns the tool policy of the next session. A new one (`None`) and a fork that was just made carry
    /// the policy in force. Any other has its own, or the one in force if that is tighter; a flag
    /// of the program holds there, too, until the user changes the policy.
    pub fn next_policy(&self, next: Option<&Row>) -> NextPolicy {
        let (mode, said) = (self.permissions.mode(), self.permissions.said_mode());
        let flag = self.flag.filter(|flag| said == Some((*flag).into()));
        let tighter = (mode < Approval::Ask).then_some(mode);
        match next.filter(|row| !self.carries_terms(row)) {
            None => NextPolicy {
                approve: said.or(tighter).map(ApproveMode::from),
                default_policy: None,
            },
            Some(row) => NextPolicy {
                approve: flag.map(|flag| {
                    let recorded = row.meta.approve;
                    recorded.map_or(flag, |recorded| recorded.min(flag.into()).into())
                }),
                default_policy: tighter.filter(|_| flag.is_none()),
            },
        }
    }

    /// Returns true for this session itself, and for a fork of it that has nothing of its own.
    fn carries_terms(&self, next: &Row) -> bool {
        let is_new_fork = next.meta.parent.as_ref().is_some_and(|parent| {
            Some(parent.id) == self.id
                && parent.relation == Relation::Fork
                && next.meta.head.seq == parent.seq.next()
        });
        is_new_fork || Some(next.meta.id) == self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia_core::id::Seq;
    use tertulia_core::session::{Parent, SessionMeta};

    const LEFT: u128 = 1;

    fn id(number: u128) -> SessionId {
        SessionId::new(uuid::Uuid::from_u128(number))
    }

    fn row(number: u128, approve: Option<Approval>) -> Row {
        let meta = SessionMeta {
            approve,
            ..SessionMeta::of(id(number), &[])
        };
        Row { meta, open: false }
    }

    fn check(
        permissions: &Permissions,
        flag: Option<Approval>,
        next: Option<&Row>,
        expected: (Option<Approval>, Option<Approval>),
    ) {
        let left = LeftSession {
            id: Some(id(LEFT)),
            permissions,
            flag: flag.map(ApproveMode::from),
        };
        let next = left.next_policy(next);
        let approve = next.approve.map(Approval::from);
        assert_eq!((approve, next.default_policy), expected);
    }

    #[test]
    fn a_new_session_and_a_new_fork_carry_the_policy_in_force() {
        let mut fork = row(2, Some(Approval::Ask));
        fork.meta.parent = Some(Parent {
            id: id(LEFT),
            seq: Seq(4),
            relation: Relation::Fork,
        });
        fork.meta.head.seq = Seq(5);
        for next in [None, Some(&fork), Some(&row(LEFT, None))] {
            for mode in [Approval::None, Approval::Ask, Approval::All] {
                check(&Permissions::said(mode), None, next, (Some(mode), None));
            }
            check(&Permissions::new(Approval::Ask), None, next, (None, None));
            let low = Permissions::new(Approval::Low);
            check(&low, None, next, (Some(Approval::Low), None));
        }
        fork.meta.head.seq = Seq(6);
        let said = Permissions::said(Approval::All);
        check(&said, None, Some(&fork), (None, None));
    }

    #[test]
    fn another_session_has_its_own_policy_or_a_tighter_one() {
        let other = row(2, None);
        let said = |mode| Permissions::said(mode);
        check(&said(Approval::All), None, Some(&other), (None, None));
        let low = (None, Some(Approval::Low));
        check(&said(Approval::Low), None, Some(&other), low);
        check(&Permissions::new(Approval::Low), None, Some(&other), low);
    }

    #[test]
    fn a_flag_holds_until_the_user_changes_the_policy() {
        let (all, none) = (Some(Approval::All), Some(Approval::None));
        let other = row(2, None);
        let said = |mode| Permissions::said(mode);
        check(&said(Approval::All), all, Some(&other), (all, None));
        check(&said(Approval::Ask), all, Some(&other), (None, None));
        let tight = row(2, none);
        check(&said(Approval::All), all, Some(&tight), (none, None));
    }
}
