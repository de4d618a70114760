//! What the screen knows of a talk before it is opened: who is here, and where it goes on.

use tertulia_core::entry::{Kind, Speaker, SpeakerKind};
use tertulia_core::id::SessionId;
use tertulia_core::query::{ProjectIds, Row};
use tertulia_core::session::SessionMeta;
use tertulia_engine::setup::{Participants, Target};

use super::attach::Attachment;
use super::completion::Candidate;
use super::effect::Next;
use crate::moment::ago;
use crate::talk::Sort;
use crate::talk::opening::Opening;
use crate::talk::target;
use crate::ui::fit;

/// What the screen knows of a talk before it is opened.
#[derive(Clone, Debug)]
pub struct Scene {
    /// What kind of talk.
    pub kind: Kind,
    /// Which session.
    pub id: SessionId,
    /// Who is here and why.
    pub introduction: String,
    /// Who speaks, if it is one agent; else the team's name, or nothing.
    pub agent: String,
    /// With which model.
    pub model: Option<String>,
    /// Everybody in a team.
    pub members: Vec<Member>,
    /// The session that is gone on with.
    pub restored: Option<Box<SessionMeta>>,
    /// An earlier talk that could be gone on with.
    pub earlier: Option<Box<Row>>,
    /// Whether it goes on where it was only left for another model.
    pub is_switch: bool,
    /// Whether a server leads it: then it goes on without the screen.
    pub is_remote: bool,
    /// Whether nothing is kept.
    pub ephemeral: bool,
    /// Whether the bell is rung when a person is needed.
    pub notify: bool,
    /// The project that the screen is in.
    pub project: Option<ProjectIds>,
    /// The file that describes the team.
    pub team_file: Option<String>,
    /// What is said of an earlier talk to who begins anew.
    pub mention: Option<String>,
}

/// Somebody in a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The stable id.
    pub id: String,
    /// The name that markers use.
    pub name: String,
    /// The name that people read.
    pub display_name: String,
    /// Whether it is a person.
    pub is_human: bool,
    /// The colour of the name, if the team's file says one.
    pub colour: Option<String>,
}

impl Scene {
    /// What is known of a talk.
    pub fn of(opening: &Opening) -> Scene {
        let (id, restored) = match &opening.setup.target {
            Target::New(start) => (start.id, None),
            Target::Resume(row, _) => (row.meta.id, Some(Box::new(row.meta.clone()))),
        };
        let (agent, model) = match &opening.setup.participants {
            Participants::Chat(agent) => {
                (agent.name().to_owned(), agent.model().map(str::to_owned))
            }
            Participants::Team { team, .. } => (team.shown_name().to_owned(), None),
            Participants::Pair { .. } => ("pair".to_owned(), None),
        };
        Scene {
            kind: opening.setup.participants.kind(),
            id,
            introduction: opening.setup.introduction.clone(),
            agent,
            model,
            members: members(&opening.setup.participants),
            restored,
            earlier: opening.earlier.clone(),
            is_switch: opening.setup.options.model_switched,
            is_remote: false,
            ephemeral: opening.args.ephemeral,
            notify: matches!(
                opening.setup.participants,
                Participants::Pair { notify: true, .. }
            ),
            project: Some(opening.workspace.settings.project.ids.clone()),
            team_file: match &opening.setup.participants {
                Participants::Team { roster, .. } => roster.file.clone(),
                Participants::Chat(_) | Participants::Pair { .. } => None,
            },
            mention: mention(opening),
        }
    }

    /// What is known of a talk that a server leads.
    pub fn attached(attachment: &Attachment) -> Scene {
        let meta = attachment.row.as_ref().map(|row| &row.meta);
        let agent = meta.and_then(|meta| match meta.kind {
            Kind::Chat => meta.last_agent().map(str::to_owned),
            Kind::Team => meta.team.clone(),
            Kind::Pair => Some("pair".to_owned()),
        });
        let speakers = meta.map(|meta| meta.speakers.as_slice());
        let is_team = meta.is_some_and(|meta| meta.kind == Kind::Team);
        let members = speakers.unwrap_or_default().iter().filter(|_| is_team);
        Scene {
            kind: meta.map_or(Kind::Chat, |meta| meta.kind),
            id: attachment.id,
            introduction: "On a server: the session keeps running when you detach.".to_owned(),
            agent: agent.unwrap_or_else(|| "agent".to_owned()),
            model: meta.and_then(|meta| meta.model.clone()),
            members: members
                .map(|spoke| Member {
                    id: spoke.id.clone(),
                    name: spoke.name.clone(),
                    display_name: spoke.display_name.clone(),
                    is_human: spoke.kind == SpeakerKind::Human,
                    colour: None,
                })
                .collect(),
            restored: meta.cloned().map(Box::new),
            earlier: None,
            is_switch: false,
            is_remote: true,
            ephemeral: false,
            notify: false,
            project: Some(attachment.workspace.settings.project.ids.clone()),
            team_file: None,
            mention: None,
        }
    }

    /// Whoever answers unless somebody else is asked.
    pub fn speaker(&self) -> Speaker {
        Speaker::plain(&self.agent, SpeakerKind::Ai)
    }

    /// A new talk with the same agents.
    pub fn anew(&self) -> Next {
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

    /// Everybody who has a colour, in the order of the team.
    pub fn colours(&self) -> Vec<(String, Option<String>)> {
        let everybody = self.members.iter();
        everybody
            .map(|member| (member.id.clone(), member.colour.clone()))
            .collect()
    }

    /// Who can be named while writing.
    pub fn candidates(&self) -> Vec<Candidate> {
        self.named(|_| true)
    }

    /// As whom one can speak.
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
        .map(|member| Member {
            id: member.id.clone(),
            name: member.name.clone(),
            display_name: member.display_name.clone(),
            is_human: member.is_human(),
            colour: team
                .members
                .iter()
                .find(|described| described.name == member.name)
                .and_then(|described| described.theme_color.clone()),
        })
        .collect()
}

/// What is said of an earlier talk to who begins anew.
fn mention(opening: &Opening) -> Option<String> {
    let (Target::New(_), false) = (&opening.setup.target, opening.args.ephemeral) else {
        return None;
    };
    let (goes_on, sort) = match &opening.setup.participants {
        Participants::Chat(_) => ("tertulia -c", Kind::Chat),
        Participants::Pair { .. } => ("tertulia pair -c", Kind::Pair),
        // A team's is asked about.
        Participants::Team { .. } => return None,
    };
    let sort = Sort::of(sort, None);
    // Who begins anew is not held up by what cannot be listed.
    let row = target::newest(sort, &opening.workspace).ok()??;
    let when = ago(
        row.meta.updated_at,
        opening.workspace.sessions.clock().now(),
    );
    let title = fit(row.meta.title_or_untitled(), 50);
    Some(format!(
        "There is an earlier session here, \"{title}\" ({when}): `{goes_on}` or /sessions resumes it."
    ))
}
