//! Resumes a team session: maps earlier speakers to members and loads the recent messages. The
//! queue is empty, and the first human has the turn.

use std::collections::BTreeMap;

use super::super::frontend::Frontend;
use super::super::log_writer::LogWriter;
use super::super::notice::Notice;
use super::super::runner::{RunOptions, Runner};
use super::super::team::events::Event;
use super::super::team::memory::Spoken;
use super::super::team::names::{self, Member};
use super::super::withdrawn::{Withdrawals, marked};
use super::{TeamConversation, TeamRoster, nobody};
use tertulia_agents::FailureKind;
use tertulia_core::entry::{Addressee, Body, Entry, Message, Seated, SpeakerKind};
use tertulia_core::id::SessionId;
use tertulia_core::session::{Log, SessionMeta, Spoke};
use tertulia_core::team::markers::{self, Drop};
use tertulia_store::{StoreError, StoreResult};

/// Earlier speakers and the members that replace them, by id.
pub type MemberMap = BTreeMap<String, String>;

/// Why a team cannot resume a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The session belongs to another team.
    #[error("session {session} is of the team '{theirs}', and this is the team '{ours}'")]
    OtherTeam {
        /// Short id of the session.
        session: String,
        /// Team of the session.
        theirs: String,
        /// Team that was to resume it.
        ours: String,
    },
    /// The session is not a team session.
    #[error("session {session} is a {kind}, not a team session")]
    NoTeam {
        /// Short id of the session.
        session: String,
        /// Kind of the session.
        kind: &'static str,
    },
    /// The speaker to be replaced does not occur in the session.
    #[error("'{0}' has not spoken in this session: there is nothing to map")]
    NoSuchSpeaker(String),
    /// The speaker to be replaced is still a member.
    #[error("'{0}' is still in the team and cannot be mapped")]
    StillHere(String),
    /// A person would replace an agent, or vice versa.
    #[error("'{old}' and '{new}' are not both people or both agents")]
    OtherNature {
        /// The speaker to be replaced.
        old: String,
        /// The replacing member.
        new: String,
    },
    /// The replacing name is not a member of the team.
    #[error("'{name}' is not a member of the team; the members are {}", .members.join(", "))]
    NoSuchMember {
        /// The name as given.
        name: String,
        /// Names of the members.
        members: Vec<String>,
    },
}

/// Result of checking whether a team can resume a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumePlan {
    /// Replaced speakers, including those of earlier resumes.
    pub heirs: MemberMap,
    /// Speakers replaced by this resume.
    new_heirs: MemberMap,
    /// Display names of speakers that are neither members nor replaced.
    pub missing: Vec<String>,
}

/// Checks whether a team can resume a session, without changing it. `wanted` maps speakers to
/// members that replace them, each by id, name or display name.
pub fn resume_plan(
    meta: &SessionMeta,
    seating: &TeamRoster,
    wanted: &MemberMap,
) -> Result<ResumePlan, ResumeError> {
    let session = meta.id.short().to_string();
    match &meta.team {
        Some(theirs) if *theirs == seating.team => {}
        Some(theirs) => {
            return Err(ResumeError::OtherTeam {
                session,
                theirs: theirs.clone(),
                ours: seating.team.clone(),
            });
        }
        None => {
            return Err(ResumeError::NoTeam {
                session,
                kind: meta.kind.name(),
            });
        }
    }
    let mut new_heirs = MemberMap::new();
    for (old, new) in wanted {
        let loose = names::normalise(old);
        let spoke = meta.speakers.iter().find(|spoke| {
            [&spoke.id, &spoke.name, &spoke.display_name]
                .into_iter()
                .any(|name| names::normalise(name) == loose)
        });
        let spoke = spoke.ok_or_else(|| ResumeError::NoSuchSpeaker(old.clone()))?;
        let heir = names::find(&seating.members, new).ok_or_else(|| ResumeError::NoSuchMember {
            name: new.clone(),
            members: seating
                .members
                .iter()
                .map(|member| member.name.clone())
                .collect(),
        })?;
        if seating.members.iter().any(|member| member.id == spoke.id) {
            return Err(ResumeError::StillHere(spoke.display_name.clone()));
        }
        if heir.is_human() != (spoke.kind == SpeakerKind::Human) {
            return Err(ResumeError::OtherNature {
                old: spoke.display_name.clone(),
                new: heir.display_name.clone(),
            });
        }
        new_heirs.insert(spoke.id.clone(), heir.id.clone());
    }
    let mut recorded = meta.heirs.clone();
    recorded.extend(new_heirs.clone());
    let is_member = |id: &str| seating.members.iter().any(|member| member.id == id);
    let heirs = seated_heirs(&recorded, is_member);
    // A speaker that had replaced a member who is back is not missing.
    let gave_back = |id: &str| {
        let mut taken = recorded.iter().filter(|(_, heir)| *heir == id);
        taken.any(|(old, _)| is_member(old))
    };
    let is_here = |id: &str| is_member(id) || heirs.contains_key(id) || gave_back(id);
    let missing = meta.speakers.iter().filter(|spoke| !is_here(&spoke.id));
    Ok(ResumePlan {
        missing: missing.map(|spoke| told_apart(spoke, seating)).collect(),
        heirs,
        new_heirs,
    })
}

/// Resolves recorded replacements to current members, through several replacements if needed.
/// Speakers that are members again are not replaced.
fn seated_heirs(recorded: &MemberMap, is_member: impl Fn(&str) -> bool) -> MemberMap {
    let mut heirs = MemberMap::new();
    for old in recorded.keys().filter(|old| !is_member(old)) {
        let mut heir = recorded.get(old);
        for _ in 0..recorded.len() {
            match heir {
                Some(id) if is_member(id) => {
                    heirs.insert(old.clone(), id.clone());
                    break;
                }
                Some(id) => heir = recorded.get(id),
                None => break,
            }
        }
    }
    heirs
}

/// Returns the display name of a speaker, with its marker name if a member has the same display
/// name.
fn told_apart(spoke: &Spoke, seating: &TeamRoster) -> String {
    let mut members = seating.members.iter();
    match members.any(|member| member.display_name == spoke.display_name) {
        true => format!("{} ({})", spoke.display_name, spoke.name),
        false => spoke.display_name.clone(),
    }
}

impl TeamConversation {
    /// Resumes a session with the result of [`resume_plan`]: loads the recent messages, repairs
    /// what a crash left open, and gives the first human the turn. `left` is the original session
    /// if `writer` has forked it.
    pub async fn resume(
        writer: LogWriter,
        left: Option<SessionId>,
        seating: TeamRoster,
        resume_plan: ResumePlan,
        options: RunOptions,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<TeamConversation> {
        let enough = Enough {
            messages: seating.window + 1,
            bytes: seating.max_bytes,
        };
        let reopened = Runner::reopen(writer, left, nobody(), options, frontend).await?;
        let (mut runner, recovered) = reopened;
        let log = runner.look_back(|log| enough.is(log), frontend).await?;
        let meta = runner.writer().meta().cloned();
        let Some(meta) = meta else {
            return Err(StoreError::Refused("this session has no messages".into()));
        };
        if !resume_plan.missing.is_empty() {
            frontend.show(Notice::Missing(resume_plan.missing.clone()).into());
        }
        compare_models(&meta, &seating, &resume_plan.heirs, frontend);
        let file = seating
            .file
            .clone()
            .filter(|file| meta.team_file.as_ref() != Some(file));
        let seated = Seated {
            file,
            heirs: resume_plan.new_heirs.clone(),
        };
        let unheard = match left {
            // The other process may be prompting them now.
            Some(_) => Vec::new(),
            None => unheard(&log, &seating.members, recovered),
        };
        // Saved on every resume, even if nothing has changed: it marks where the queue was emptied.
        let mut table = TeamConversation::around(runner, seating, Some(seated))
            .map_err(|error| StoreError::Refused(error.to_string()))?;
        table.take_in(&log, &resume_plan.heirs);
        if !unheard.is_empty() {
            frontend.show(Notice::NotHeard(unheard).into());
        }
        let last = log.messages().last().map(|(entry, _)| entry.id);
        let restored = table.router.step(Event::Restored {
            last,
            task: meta.task.clone(),
        });
        table.show(restored, frontend);
        Ok(table)
    }

    fn take_in(&mut self, log: &Log, heirs: &MemberMap) {
        let withdrawn = Withdrawals::of(&log.entries);
        for (entry, message) in log.messages() {
            if let Some(mut spoken) = self.spoken(entry, message, heirs) {
                if withdrawn.contains_key(&entry.seq) {
                    spoken.text = marked(&spoken.text);
                }
                self.memory.hear(spoken);
            }
        }
        self.memory.forget(&[]);
    }

    /// Converts a message for the team's memory: text only, under the name of the replacing member.
    /// Returns `None` for a message without text, or of a tool.
    fn spoken(&self, entry: &Entry, message: &Message, heirs: &MemberMap) -> Option<Spoken> {
        if !is_spoken(message) {
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

/// Returns true for a text message of a person or an agent, which a team's memory holds.
fn is_spoken(message: &Message) -> bool {
    let speaks = matches!(message.speaker.kind, SpeakerKind::Human | SpeakerKind::Ai);
    speaks && !message.content.is_empty()
}

/// Limits of a team's memory.
struct Enough {
    messages: usize,
    bytes: usize,
}

impl Enough {
    fn is(&self, log: &Log) -> bool {
        let spoken = || log.messages().filter(|(_, message)| is_spoken(message));
        let sizes = spoken().map(|(_, message)| message.content.len());
        spoken().count() >= self.messages || sizes.sum::<usize>() > self.bytes
    }
}

/// Returns the display names of addressees; unresolved ones as written.
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

fn compare_models(
    meta: &SessionMeta,
    seating: &TeamRoster,
    heirs: &MemberMap,
    frontend: &mut dyn Frontend,
) {
    for spoke in &meta.speakers {
        let id = heirs.get(&spoke.id).unwrap_or(&spoke.id);
        let agent = seating
            .places
            .get(id)
            .and_then(|place| place.agent.as_ref().ok());
        let now = agent.and_then(|agent| agent.model());
        if let (Some(recorded), Some(now)) = (&spoke.model, now)
            && recorded != now
        {
            frontend.show(
                Notice::OtherModelOf {
                    member: spoke.display_name.clone(),
                    recorded: recorded.clone(),
                    now: now.to_owned(),
                }
                .into(),
            );
        }
    }
}

/// Returns the names of agents that were still queued or prompted when the program ended, in the
/// order in which they were addressed, without those that the user stopped.
fn unheard(log: &Log, members: &[Member], recovered: bool) -> Vec<String> {
    let entries = &log.entries[sat_down(log)..];
    let cut_off = entries
        .iter()
        .rposition(|entry| entry.message().is_some_and(|message| message.interrupted))
        .filter(|_| recovered);
    let mut waiting: Vec<&Member> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        match &entry.body {
            // A user who stops an answer stops the queue, too; a crash does not.
            Body::Message(message) if message.interrupted && Some(at) != cut_off => waiting.clear(),
            Body::Message(message) => hear(&mut waiting, message, members),
            Body::Failed(failed) if failed.kind == FailureKind::Cancelled.name() => waiting.clear(),
            Body::Failed(failed) => waiting.retain(|member| member.name != failed.agent),
            _ => {}
        }
    }
    waiting.iter().map(|member| member.name.clone()).collect()
}

/// Returns the index at which the queue was last certainly empty: the last roster entry, or in an
/// imported session without one the last message of a person.
fn sat_down(log: &Log) -> usize {
    let entries = log.entries.iter();
    let seated = entries
        .clone()
        .rposition(|entry| matches!(entry.body, Body::Seated(_)));
    let is_human = |message: &Message| message.speaker.kind == SpeakerKind::Human;
    let spoke = || {
        entries
            .clone()
            .rposition(|entry| entry.message().is_some_and(is_human))
    };
    seated.or_else(spoke).unwrap_or(0)
}

/// Updates the waiting agents after a message.
fn hear<'a>(waiting: &mut Vec<&'a Member>, message: &Message, members: &'a [Member]) {
    waiting.retain(|member| member.id != message.speaker.id);
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
    for addressee in &message.addressees {
        let is_meant =
            |member: &&Member| Some(&member.id) == addressee.member.as_ref() && !member.is_human();
        let member = members.iter().find(is_meant);
        waiting.extend(member.filter(|member| !waiting.contains(member)));
    }
}
