//! Going on with a team's talk: everybody is asked for by name, the context is whole, the queue is empty,
//! and the first human has the floor.

use std::collections::BTreeMap;

use super::super::door::{Door, Notice, TalkEvent};
use super::super::record::Recorder;
use super::super::run::{Talk, Terms};
use super::super::team::events::Event;
use super::super::team::markers::{self, Drop};
use super::super::team::memory::Spoken;
use super::super::team::names::{self, Member};
use super::{Seating, Table, nobody};
use crate::entry::{Addressee, Body, Entry, Message, Seated, SpeakerKind};
use crate::id::SessionId;
use crate::session::{Log, Summary};
use crate::store::{StoreError, StoreResult};

/// Earlier speakers and the members who have their seats now, by id.
pub type Heirs = BTreeMap<String, String>;

/// Why a session does not fit a team.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It is another team's.
    #[error("session {session} is of the team '{theirs}', and this is the team '{ours}'")]
    OtherTeam {
        /// The session's short id.
        session: String,
        /// Its team.
        theirs: String,
        /// The team that was to go on with it.
        ours: String,
    },
    /// It is no team's at all.
    #[error("session {session} is a {kind}, not a team's talk")]
    NoTeam {
        /// The session's short id.
        session: String,
        /// What it is.
        kind: &'static str,
    },
    /// Somebody is to have the seat of nobody.
    #[error("'{0}' has not spoken in this session, so that nobody can take their seat")]
    NoSuchSpeaker(String),
    /// The heir is not in the team.
    #[error("'{name}' is not a member of the team; the members are {}", .members.join(", "))]
    NoSuchMember {
        /// As it was given.
        name: String,
        /// The members, by name.
        members: Vec<String>,
    },
}

/// What is known about a session before a team goes on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Seats that are taken over, those of earlier times included.
    pub heirs: Heirs,
    /// The seats that are taken over now.
    new_heirs: Heirs,
    /// Those who spoke and are not in the team any more, as people know them.
    pub missing: Vec<String>,
}

/// Whether a team can go on with a session, found out without touching it. `wanted` are the seats that are
/// to be taken over, by any name that means them.
pub fn fit(summary: &Summary, seating: &Seating, wanted: &Heirs) -> Result<Fit, Misfit> {
    let session = summary.id.short().to_string();
    match &summary.team {
        Some(theirs) if *theirs == seating.team => {}
        Some(theirs) => {
            return Err(Misfit::OtherTeam {
                session,
                theirs: theirs.clone(),
                ours: seating.team.clone(),
            });
        }
        None => {
            return Err(Misfit::NoTeam {
                session,
                kind: summary.kind.name(),
            });
        }
    }
    let mut new_heirs = Heirs::new();
    for (old, new) in wanted {
        let loose = names::normalise(old);
        let spoke = summary.speakers.iter().find(|spoke| {
            [&spoke.id, &spoke.name, &spoke.display_name]
                .into_iter()
                .any(|name| names::normalise(name) == loose)
        });
        let spoke = spoke.ok_or_else(|| Misfit::NoSuchSpeaker(old.clone()))?;
        let heir = names::find(&seating.members, new).ok_or_else(|| Misfit::NoSuchMember {
            name: new.clone(),
            members: seating
                .members
                .iter()
                .map(|member| member.name.clone())
                .collect(),
        })?;
        new_heirs.insert(spoke.id.clone(), heir.id.clone());
    }
    let mut heirs = summary.heirs.clone();
    heirs.extend(new_heirs.clone());
    let is_here = |id: &str| {
        let id = heirs.get(id).map_or(id, String::as_str);
        seating.members.iter().any(|member| member.id == id)
    };
    let missing = summary.speakers.iter().filter(|spoke| !is_here(&spoke.id));
    Ok(Fit {
        missing: missing.map(|spoke| spoke.display_name.clone()).collect(),
        heirs: heirs.clone(),
        new_heirs,
    })
}

impl Table {
    /// A talk that goes on, after [`fit`] has been asked: reads back what was said, repairs what a crash
    /// left behind, and gives the first human the floor.
    pub async fn resume(
        recorder: Recorder,
        left: Option<SessionId>,
        seating: Seating,
        fit: Fit,
        terms: Terms,
        door: &mut dyn Door,
    ) -> StoreResult<Table> {
        let enough = Enough {
            messages: seating.window + 1,
            bytes: seating.max_bytes,
        };
        let reopened = Talk::reopen(recorder, left, nobody(), terms, door).await?;
        let (mut talk, recovered) = reopened;
        let log = talk.look_back(|log| enough.is(log), door).await?;
        let summary = talk.recorder().summary().cloned();
        let Some(summary) = summary else {
            return Err(StoreError::Refused(
                "nothing was said in this session".into(),
            ));
        };
        if !fit.missing.is_empty() {
            door.show(TalkEvent::Notice(Notice::Missing(fit.missing.clone())));
        }
        compare_models(&summary, &seating, &fit.heirs, door);
        let file = seating
            .file
            .clone()
            .filter(|file| summary.team_file.as_ref() != Some(file));
        let seated = Seated {
            file,
            heirs: fit.new_heirs.clone(),
        };
        let seated = (seated != Seated::default()).then_some(seated);
        let unheard = unheard(&log, &seating.members, recovered);
        let mut table = Table::around(talk, seating, seated)
            .map_err(|error| StoreError::Refused(error.to_string()))?;
        table.take_in(&log, &fit.heirs);
        if !unheard.is_empty() {
            door.show(TalkEvent::Notice(Notice::NotHeard(unheard)));
        }
        let last = log.messages().last().map(|(entry, _)| entry.id);
        let restored = table.router.step(Event::Restored {
            last,
            task: summary.task.clone(),
        });
        table.show(restored, door);
        Ok(table)
    }

    fn take_in(&mut self, log: &Log, heirs: &Heirs) {
        for (entry, message) in log.messages() {
            if let Some(spoken) = self.spoken(entry, message, heirs) {
                self.memory.hear(spoken);
            }
        }
        self.memory.forget(&[]);
    }

    /// A message as the team remembers it: words alone, under the name of who has the seat now.
    fn spoken(&self, entry: &Entry, message: &Message, heirs: &Heirs) -> Option<Spoken> {
        let speaks = matches!(message.speaker.kind, SpeakerKind::Human | SpeakerKind::Ai);
        if !speaks || message.content.is_empty() {
            return None;
        }
        let members = self.router.members();
        let speaker = &message.speaker;
        let heir = heirs.get(&speaker.id);
        let heir = heir.and_then(|heir| members.iter().find(|member| member.id == *heir));
        Some(Spoken {
            id: entry.id,
            by: heir.map_or(&speaker.id, |heir| &heir.id).clone(),
            from: heir
                .map_or(&speaker.display_name, |heir| &heir.display_name)
                .clone(),
            to: shown_names(members, &message.addressees),
            replies_to: None,
            text: markers::shown(&message.content),
        })
    }
}

/// How far back a team's memory goes.
struct Enough {
    messages: usize,
    bytes: usize,
}

impl Enough {
    fn is(&self, log: &Log) -> bool {
        let sizes = log.messages().map(|(_, message)| message.content.len());
        log.messages().count() >= self.messages || sizes.sum::<usize>() > self.bytes
    }
}

/// Whom a message addresses, as people know them.
pub(super) fn shown_names(members: &[Member], addressees: &[Addressee]) -> Vec<String> {
    let name = |addressee: &Addressee| {
        let member = members
            .iter()
            .find(|member| Some(&member.id) == addressee.member.as_ref());
        member.map_or_else(
            || addressee.identifier.clone(),
            |member| member.display_name.clone(),
        )
    };
    addressees.iter().map(name).collect()
}

fn compare_models(summary: &Summary, seating: &Seating, heirs: &Heirs, door: &mut dyn Door) {
    for spoke in &summary.speakers {
        let id = heirs.get(&spoke.id).unwrap_or(&spoke.id);
        let agent = seating
            .places
            .get(id)
            .and_then(|place| place.agent.as_ref().ok());
        let now = agent.and_then(|agent| agent.model());
        if let (Some(recorded), Some(now)) = (&spoke.model, now)
            && recorded != now
        {
            door.show(TalkEvent::Notice(Notice::OtherModelOf {
                member: spoke.display_name.clone(),
                recorded: recorded.clone(),
                now: now.to_owned(),
            }));
        }
    }
}

/// Which agents were to speak when the program ended, in the order in which they were addressed. Who was
/// stopped by a person is not waited for any more.
fn unheard(log: &Log, members: &[Member], recovered: bool) -> Vec<String> {
    let is_human = |message: &Message| message.speaker.kind == SpeakerKind::Human;
    let from = log
        .entries
        .iter()
        .rposition(|entry| entry.message().is_some_and(is_human));
    let mut waiting: Vec<&Member> = Vec::new();
    for entry in &log.entries[from.unwrap_or(0)..] {
        match &entry.body {
            Body::Message(message) => {
                waiting.retain(|member| member.id != message.speaker.id);
                if message.interrupted && !recovered {
                    waiting.clear();
                }
                match markers::parse(&message.content).drop {
                    Some(Drop::All) => waiting.clear(),
                    Some(Drop::Names(dropped)) => waiting.retain(|member| {
                        let is_dropped = |name: &String| {
                            names::find(members, name).is_some_and(|named| named.id == member.id)
                        };
                        !dropped.iter().any(is_dropped)
                    }),
                    None => {}
                }
                let addressed = message.addressees.iter().filter_map(|addressee| {
                    let id = addressee.member.as_ref()?;
                    members
                        .iter()
                        .find(|member| member.id == *id && !member.is_human())
                });
                for member in addressed {
                    if !waiting.contains(&member) {
                        waiting.push(member);
                    }
                }
            }
            Body::Failed(failed) if failed.kind == "cancelled" => waiting.clear(),
            Body::Failed(failed) => waiting.retain(|member| member.name != failed.agent),
            _ => {}
        }
    }
    waiting.iter().map(|member| member.name.clone()).collect()
}
