//! What the TUI knows of a session before it is opened: the participants, and the session it
//! resumes.

use jiff::Timestamp;
use tertulia_core::entry::{Kind, Speaker, SpeakerKind};
use tertulia_core::id::SessionId;
use tertulia_core::price::PriceTable;
use tertulia_core::query::{ProjectIds, Row};
use tertulia_core::session::SessionMeta;
use tertulia_engine::setup::{Participants, Target};

use super::attach::Attachment;
use super::completion::Candidate;
use super::effect::Next;
use super::host::{Followed, Host, Prepared};

/// What the TUI knows of a session before it is opened.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// Kind of session.
    pub kind: Kind,
    /// Id of the session.
    pub id: SessionId,
    /// Introduces the participants and why they were chosen.
    pub introduction: String,
    /// Name of the agent in a chat or of the team; `pair` for a pair.
    pub agent: String,
    /// Model of the agent in a chat.
    pub model: Option<String>,
    /// Members of a team.
    pub members: Vec<Member>,
    /// Metadata of the resumed session.
    pub restored: Option<Box<SessionMeta>>,
    /// An earlier session that could be resumed.
    pub earlier: Option<Box<Row>>,
    /// Whether a server runs the session, which then continues without the TUI.
    pub is_remote: bool,
    /// Since when an agent has been answering on the server, until that answer ends.
    pub busy_since: Option<Timestamp>,
    /// Whether nothing is saved.
    pub ephemeral: bool,
    /// Whether the session is only read, because another program writes to it.
    pub follows: Option<Follows>,
    /// Whether to ring the bell when the user is needed.
    pub notify: bool,
    /// The project that the TUI runs in.
    pub project: Option<ProjectIds>,
    /// Path of the team file.
    pub team_file: Option<String>,
    /// The last session of the project, for a new one: it can be resumed instead.
    pub last: Option<Box<SessionMeta>>,
    /// Working directory, as users write it.
    pub folder: String,
    /// Prices of models.
    pub prices: PriceTable,
}

/// A session that is only read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follows {
    /// The program that has the session open, if there is one.
    pub holder: Option<String>,
    /// Whether the user is asked what to do.
    pub asks: bool,
    /// Whether the next message goes to a fork. It is made then, so that no fork is left behind if
    /// nothing is said.
    pub forks: bool,
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Stable id.
    pub id: String,
    /// Name in markers.
    pub name: String,
    /// Name shown to the user.
    pub display_name: String,
    /// Whether the member is a person.
    pub is_human: bool,
    /// Role, as the team file shows it.
    pub role: Option<String>,
    /// Agent, with its model if that is known. None for a person, and for a session that runs elsewhere.
    pub agent: Option<String>,
    /// Colour of the name, if the team file sets one.
    pub colour: Option<String>,
}

impl SessionInfo {
    /// Describes a session of this process.
    pub fn of(prepared: &Prepared) -> SessionInfo {
        let (id, restored) = match &prepared.setup.target {
            Target::New(start) => (start.id, None),
            Target::Resume(row, _) => (row.meta.id, Some(Box::new(row.meta.clone()))),
        };
        let (agent, model) = match &prepared.setup.participants {
            Participants::Chat(agent) => {
                (agent.name().to_owned(), agent.model().map(str::to_owned))
            }
            Participants::Team { team, .. } => (team.shown_name().to_owned(), None),
            Participants::Pair { .. } => ("pair".to_owned(), None),
        };
        SessionInfo {
            kind: prepared.setup.participants.kind(),
            id,
            introduction: prepared.setup.introduction.clone(),
            agent,
            model,
            members: members(&prepared.setup.participants),
            restored,
            earlier: prepared.earlier.clone(),
            is_remote: false,
            busy_since: None,
            ephemeral: prepared.ephemeral,
            follows: None,
            notify: matches!(
                prepared.setup.participants,
                Participants::Pair { notify: true, .. }
            ),
            project: Some(prepared.host.workspace().project.clone()),
            team_file: match &prepared.setup.participants {
                Participants::Team { roster, .. } => roster.file.clone(),
                Participants::Chat(_) | Participants::Pair { .. } => None,
            },
            last: prepared.last.clone(),
            folder: prepared.host.workspace().folder(),
            prices: prepared.host.workspace().prices.clone(),
        }
    }

    /// Describes a session that a server runs.
    pub fn attached(attachment: &Attachment) -> SessionInfo {
        let meta = attachment.row.as_ref().map(|row| &row.meta);
        SessionInfo {
            introduction: String::new(),
            is_remote: true,
            busy_since: attachment.busy_since,
            ..SessionInfo::elsewhere(attachment.id, meta, attachment.server.host.as_ref())
        }
    }

    /// Describes a session that another program has open, or that is only read.
    pub fn followed(followed: &Followed) -> SessionInfo {
        let meta = &followed.row.meta;
        SessionInfo {
            introduction: "Read only: new messages appear as they are written.".to_owned(),
            follows: Some(Follows {
                holder: followed.holder.clone(),
                asks: followed.asks,
                forks: false,
            }),
            ..SessionInfo::elsewhere(meta.id, Some(meta), followed.host.as_ref())
        }
    }

    /// Describes a session that does not run in this process, by its metadata.
    fn elsewhere(id: SessionId, meta: Option<&SessionMeta>, host: &dyn Host) -> SessionInfo {
        let agent = meta.and_then(|meta| match meta.kind {
            Kind::Chat => meta.last_agent().map(str::to_owned),
            Kind::Team => meta.team.clone(),
            Kind::Pair => Some("pair".to_owned()),
        });
        let speakers = meta.map(|meta| meta.speakers.as_slice());
        let is_team = meta.is_some_and(|meta| meta.kind == Kind::Team);
        let members = speakers.unwrap_or_default().iter().filter(|_| is_team);
        SessionInfo {
            kind: meta.map_or(Kind::Chat, |meta| meta.kind),
            id,
            introduction: String::new(),
            agent: agent.unwrap_or_default(),
            model: meta.and_then(|meta| meta.model.clone()),
            members: members
                .map(|spoke| Member {
                    id: spoke.id.clone(),
                    name: spoke.name.clone(),
                    display_name: spoke.display_name.clone(),
                    is_human: spoke.kind == SpeakerKind::Human,
                    role: None,
                    agent: None,
                    colour: None,
                })
                .collect(),
            restored: meta.cloned().map(Box::new),
            earlier: None,
            is_remote: false,
            busy_since: None,
            ephemeral: false,
            follows: None,
            notify: false,
            project: Some(host.workspace().project.clone()),
            team_file: None,
            last: None,
            folder: host.workspace().folder(),
            prices: host.workspace().prices.clone(),
        }
    }

    /// Returns the default speaker of answers.
    pub fn speaker(&self) -> Speaker {
        Speaker::plain(&self.agent, SpeakerKind::Ai)
    }

    /// Returns a new session with the same participants.
    pub fn start_over(&self) -> Next {
        match (self.kind, &self.team_file) {
            (Kind::Chat | Kind::Team, _) if self.is_remote => Next::New {
                agent: None,
                model: None,
            },
            (Kind::Team, Some(file)) => Next::Team {
                config: file.clone(),
                fresh: true,
            },
            (Kind::Pair, _) => Next::Pair,
            (Kind::Chat, _) => Next::New {
                agent: Some(self.agent.clone()),
                model: self.model.clone(),
            },
            (Kind::Team, None) => Next::New {
                agent: None,
                model: None,
            },
        }
    }

    /// Returns all members with their colours, in the order of the team.
    pub fn colours(&self) -> Vec<(String, Option<String>)> {
        let everybody = self.members.iter();
        everybody
            .map(|member| (member.id.clone(), member.colour.clone()))
            .collect()
    }

    /// Returns the members that can be completed in the input.
    pub fn candidates(&self) -> Vec<Candidate> {
        self.named(|_| true)
    }

    /// Returns the people that the user can speak as.
    pub fn people(&self) -> Vec<Candidate> {
        self.named(|member| member.is_human)
    }

    fn named(&self, is_meant: impl Fn(&Member) -> bool) -> Vec<Candidate> {
        let meant = self.members.iter().filter(|member| is_meant(member));
        meant
            .map(|member| {
                Candidate::new(&member.name).noted(match member.is_human {
                    true => format!("{}, a person", member.display_name),
                    false => member.display_name.clone(),
                })
            })
            .collect()
    }
}

fn members(participants: &Participants) -> Vec<Member> {
    let Participants::Team { team, roster, .. } = participants else {
        return Vec::new();
    };
    let everybody = roster.members.iter();
    everybody
        .map(|member| {
            let mut described = team.members.iter();
            let described = described.find(|other| other.name == member.name);
            let agent = described.and_then(|described| described.agent_type.clone());
            let running = roster.agents.get(&member.id);
            let running = running.and_then(|running| running.agent.as_ref().ok());
            let model = running.and_then(|running| running.model());
            Member {
                id: member.id.clone(),
                name: member.name.clone(),
                display_name: member.display_name.clone(),
                is_human: member.is_human(),
                role: described.map(|described| described.shown_role().to_owned()),
                agent: agent.map(|agent| match model {
                    Some(model) => format!("{agent} · {model}"),
                    None => agent,
                }),
                colour: described.and_then(|described| described.theme_color.clone()),
            }
        })
        .collect()
}
