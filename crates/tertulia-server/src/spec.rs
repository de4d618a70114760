//! Converts the fields of `session_create` and `session_configure` to a [`SessionSpec`], and
//! remembers it until the session is opened.

use std::collections::VecDeque;
use std::path::PathBuf;

use tertulia_agents::approval::Approval;
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_engine::error::{ErrorBody, ErrorKind};
use tertulia_engine::spec::{AgentSpec, PairSpec, ParticipantSpec, SessionSpec, TeamSpec};

/// Number of sessions whose spec is remembered.
const REMEMBERED: usize = 4096;

/// The participants that a client asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Kind of session.
    pub kind: Option<Kind>,
    /// Agent of a chat.
    pub agent: Option<String>,
    /// Model of a chat.
    pub model: Option<String>,
    /// File of a team.
    pub team: Option<String>,
    /// Instructor of a pair.
    pub instructor: Option<String>,
    /// Worker of a pair.
    pub worker: Option<String>,
    /// Maximum number of worker calls.
    pub max_rounds: Option<u64>,
    /// Tool policy.
    pub approve: Option<Approval>,
    /// Folder of a new session.
    pub cwd: Option<String>,
}

impl Wish {
    /// Converts the wish, or says which fields do not fit together. Without an agent, `default`
    /// answers in a chat.
    pub fn spec(self, default: &ParticipantSpec) -> Result<SessionSpec, ErrorBody> {
        let is_chat = self.agent.is_some() || self.model.is_some();
        let is_team = self.team.is_some();
        let is_pair =
            self.instructor.is_some() || self.worker.is_some() || self.max_rounds.is_some();
        let kind = match (self.kind, is_team, is_pair) {
            (Some(kind), _, _) => kind,
            (None, true, _) => Kind::Team,
            (None, false, true) => Kind::Pair,
            (None, false, false) => Kind::Chat,
        };
        let wrong = match kind {
            Kind::Chat if is_team => Some("team"),
            Kind::Chat if is_pair => Some("instructor, worker or max_rounds"),
            Kind::Team if is_chat => Some("agent or model"),
            Kind::Team if is_pair => Some("instructor, worker or max_rounds"),
            Kind::Pair if is_chat => Some("agent or model"),
            Kind::Pair if is_team => Some("team"),
            Kind::Chat | Kind::Team | Kind::Pair => None,
        };
        if let Some(fields) = wrong {
            let words = format!("a {} session has no {fields}", kind.name());
            return Err(ErrorBody::new(ErrorKind::Usage, words)
                .hint("a chat has agent and model, a team has team, a pair has instructor, worker and max_rounds"));
        }
        let participants = match kind {
            Kind::Chat if !is_chat => default.clone(),
            Kind::Chat => ParticipantSpec::Chat(AgentSpec {
                agent: self.agent,
                model: self.model,
            }),
            Kind::Team if !is_team => {
                return Err(ErrorBody::new(ErrorKind::Usage, "which team?")
                    .hint("give `team`: the path or name of a team file"));
            }
            Kind::Team => ParticipantSpec::Team(TeamSpec {
                config: self.team,
                ..TeamSpec::default()
            }),
            Kind::Pair => ParticipantSpec::Pair(PairSpec {
                instructor: self.instructor,
                worker: self.worker,
                max_rounds: self.max_rounds,
                ..PairSpec::default()
            }),
        };
        Ok(SessionSpec {
            participants,
            approve: self.approve,
            no_project_instructions: false,
            cwd: self.cwd.map(PathBuf::from),
        })
    }
}

/// Specs of sessions, the oldest first.
#[derive(Debug, Default)]
pub struct Specs(VecDeque<(SessionId, SessionSpec)>);

impl Specs {
    /// Returns the spec of a session.
    pub fn get(&self, id: SessionId) -> Option<&SessionSpec> {
        let mut specs = self.0.iter();
        specs.find(|(known, _)| *known == id).map(|(_, spec)| spec)
    }

    /// Remembers the spec of a session, and forgets the oldest one if there are too many.
    pub fn set(&mut self, id: SessionId, spec: SessionSpec) {
        self.0.retain(|(known, _)| *known != id);
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((id, spec));
    }

    /// Forgets the tool policy that a session was created with. It is the user's word in the live session
    /// that has been opened now, and no other.
    pub fn forget_policy(&mut self, id: SessionId) {
        if let Some((_, spec)) = self.0.iter_mut().find(|(known, _)| *known == id) {
            spec.approve = None;
        }
    }

    /// Moves the spec of a session that continues in another one.
    pub fn move_to(&mut self, from: SessionId, to: SessionId) {
        if let Some((known, _)) = self.0.iter_mut().find(|(known, _)| *known == from) {
            *known = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish() -> Wish {
        Wish::default()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn fields_say_the_kind() {
        let kind = |wish: Wish| match wish.spec(&ParticipantSpec::Recorded).unwrap().participants {
            ParticipantSpec::Recorded => "default",
            ParticipantSpec::Chat(_) => "chat",
            ParticipantSpec::Team(_) => "team",
            ParticipantSpec::Pair(_) => "pair",
        };
        assert_eq!(kind(wish()), "default");
        let model = some("m");
        assert_eq!(kind(Wish { model, ..wish() }), "chat");
        let team = some("t");
        assert_eq!(kind(Wish { team, ..wish() }), "team");
        let max_rounds = Some(3);
        assert_eq!(
            kind(Wish {
                max_rounds,
                ..wish()
            }),
            "pair"
        );
        let kind_only = Some(Kind::Pair);
        assert_eq!(
            kind(Wish {
                kind: kind_only,
                ..wish()
            }),
            "pair"
        );
    }

    #[test]
    fn fields_that_do_not_fit_are_named() {
        let check = |wish: Wish, expected: &str| {
            let error = wish.spec(&ParticipantSpec::Recorded).unwrap_err();
            assert_eq!(error.message, expected);
        };
        let (team, agent) = (some("t"), some("a"));
        check(
            Wish {
                team: team.clone(),
                agent: agent.clone(),
                ..wish()
            },
            "a team session has no agent or model",
        );
        let kind = Some(Kind::Chat);
        check(
            Wish {
                kind,
                team,
                ..wish()
            },
            "a chat session has no team",
        );
        let kind = Some(Kind::Team);
        check(Wish { kind, ..wish() }, "which team?");
        let worker = some("w");
        check(
            Wish {
                worker,
                agent,
                ..wish()
            },
            "a pair session has no agent or model",
        );
    }

    #[test]
    fn only_so_many_are_remembered() {
        let id = |n: u128| SessionId::new(uuid::Uuid::from_u128(n));
        let mut specs = Specs::default();
        for n in 0..=REMEMBERED as u128 {
            specs.set(id(n), SessionSpec::default());
        }
        assert!(specs.get(id(0)).is_none());
        specs.move_to(id(1), id(9_999));
        assert!(specs.get(id(1)).is_none() && specs.get(id(9_999)).is_some());
    }
}
