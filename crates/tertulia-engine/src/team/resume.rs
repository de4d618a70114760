//! Resumes a team session: maps earlier speakers to members and reads the recent messages. The queue
//! is empty, and the first human has the turn.

use std::collections::BTreeMap;

use super::memory::{Spoken, is_filled};
use super::names::{self, Member};
use super::policy::TeamRoster;
use super::summary::TeamSummary;
use crate::context::ran_text;
use crate::notice::Notice;
use crate::withdrawn::{Withdrawals, marked};
use tertulia_agents::FailureKind;
use tertulia_core::entry::{
    Addressee, Body, Entry, Message, Seated, ShellOutput, SpeakerKind, human,
};
use tertulia_core::id::{EntryId, Seq};
use tertulia_core::session::{Log, SessionMeta, Spoke};
use tertulia_core::team::markers::{self, Drop};

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
    roster: &TeamRoster,
    wanted: &MemberMap,
) -> Result<ResumePlan, ResumeError> {
    let session = meta.id.short().to_string();
    match &meta.team {
        Some(theirs) if *theirs == roster.team => {}
        Some(theirs) => {
            return Err(ResumeError::OtherTeam {
                session,
                theirs: theirs.clone(),
                ours: roster.team.clone(),
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
        let heir = names::find(&roster.members, new).ok_or_else(|| ResumeError::NoSuchMember {
            name: new.clone(),
            members: roster
                .members
                .iter()
                .map(|member| member.name.clone())
                .collect(),
        })?;
        if roster.members.iter().any(|member| member.id == spoke.id) {
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
    let is_member = |id: &str| roster.members.iter().any(|member| member.id == id);
    let heirs = seated_heirs(&recorded, is_member);
    // A speaker that had replaced a member who is back is not missing.
    let gave_back = |id: &str| {
        let mut taken = recorded.iter().filter(|(_, heir)| *heir == id);
        taken.any(|(old, _)| is_member(old))
    };
    let is_here = |id: &str| is_member(id) || heirs.contains_key(id) || gave_back(id);
    let missing = meta.speakers.iter().filter(|spoke| !is_here(&spoke.id));
    Ok(ResumePlan {
        missing: missing.map(|spoke| told_apart(spoke, roster)).collect(),
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
fn told_apart(spoke: &Spoke, roster: &TeamRoster) -> String {
    let mut members = roster.members.iter();
    match members.any(|member| member.display_name == spoke.display_name) {
        true => format!("{} ({})", spoke.display_name, spoke.name),
        false => spoke.display_name.clone(),
    }
}

/// What a resumed session holds for its team.
#[derive(Debug)]
pub struct Resumed {
    /// Roster entry to save with the next message. Saved on every resume, even if nothing has
    /// changed: it marks where the queue was emptied.
    pub seated: Seated,
    /// Recent messages.
    pub messages: Vec<Spoken>,
    /// The newest summary of the messages before them.
    pub summary: Option<TeamSummary>,
    /// Whether older messages of the log were not read.
    pub is_partial: bool,
    /// The last message.
    pub last: Option<EntryId>,
    /// The team's task.
    pub task: Option<String>,
}

impl Resumed {
    /// Reads the end of a log.
    pub fn read(log: &Log, meta: &SessionMeta, roster: &TeamRoster, plan: &ResumePlan) -> Resumed {
        let file = roster.file.clone();
        let file = file.filter(|file| meta.team_file.as_ref() != Some(file));
        Resumed {
            seated: Seated {
                file,
                heirs: plan.new_heirs.clone(),
            },
            messages: messages(log, &roster.members, &plan.heirs),
            summary: log.entries.iter().rev().find_map(newest_summary),
            is_partial: !begins_at_start(log),
            last: log.messages().last().map(|(entry, _)| entry.id),
            task: meta.task.clone(),
        }
    }
}

/// Returns the messages for the team's memory: text only, under the names of replacing members.
fn messages(log: &Log, members: &[Member], heirs: &MemberMap) -> Vec<Spoken> {
    let mut withdrawals = Withdrawals::default();
    let mut withdrawn = Vec::new();
    for entry in &log.entries {
        withdrawn.extend(withdrawals.apply(&entry.body, entry.id));
    }
    withdrawn.extend(withdrawals.take_stopped());
    let mut command = String::new();
    let spoken = log.entries.iter().filter_map(|entry| {
        let message = match &entry.body {
            Body::Message(message) if is_spoken(message) => message,
            Body::Shell(shell) => {
                command.clone_from(&shell.command);
                return None;
            }
            Body::ShellOutput(output) => {
                let at = (entry.id, Some(entry.seq));
                return Some(ran(members, at, &command, output));
            }
            _ => return None,
        };
        let speaker = &message.speaker;
        let heir = heirs.get(&speaker.id);
        let heir = heir.and_then(|heir| members.iter().find(|member| member.id == *heir));
        let text = markers::shown(&message.content);
        Some(Spoken {
            id: entry.id,
            seq: Some(entry.seq),
            by: heir.map_or(&speaker.id, |heir| &heir.id).clone(),
            from: match heir {
                Some(heir) => heir.prompt_name(),
                None => speaker.prompt_name().to_owned(),
            },
            to: shown_names(members, &message.addressees),
            replies_to: None,
            text: match withdrawn.iter().any(|(id, _)| *id == entry.id) {
                true => marked(&text),
                false => text,
            },
            attachments: message.attachments.clone(),
        })
    });
    spoken.collect()
}

/// Returns a shell command of the user as a message to all.
pub(super) fn ran(
    members: &[Member],
    (id, seq): (EntryId, Option<Seq>),
    command: &str,
    output: &ShellOutput,
) -> Spoken {
    let person = members.iter().find(|member| member.is_human());
    let user = human();
    Spoken {
        id,
        seq,
        from: person.map_or_else(|| user.prompt_name().to_owned(), Member::prompt_name),
        by: person.map_or(user.id, |member| member.id.clone()),
        to: Vec::new(),
        replies_to: None,
        text: ran_text(command, output),
        attachments: Vec::new(),
    }
}

/// Returns true for a text message of a person or an agent, which a team's memory holds.
fn is_spoken(message: &Message) -> bool {
    let speaks = matches!(message.speaker.kind, SpeakerKind::Human | SpeakerKind::Ai);
    speaks && !message.content.is_empty()
}

/// Returns the summary in an entry.
fn newest_summary(entry: &Entry) -> Option<TeamSummary> {
    match &entry.body {
        Body::Compacted(compacted) if compacted.thread.is_none() => Some(TeamSummary {
            upto: compacted.upto,
            text: markers::shown(&compacted.summary),
        }),
        _ => None,
    }
}

/// Returns true if the loaded part of a log has its first entry.
fn begins_at_start(log: &Log) -> bool {
    let first = log.entries.first();
    first.is_none_or(|entry| entry.seq <= Seq::START.next())
}

/// Returns true if the loaded part of a log covers everything that the team could need: the messages
/// in its memory, and, if it makes summaries, those that no summary covers. `upto` is the last entry
/// that the newest summary covers.
pub fn is_enough(roster: &TeamRoster, upto: Option<Seq>, log: &Log) -> bool {
    let sizes = || {
        let spoken = log.messages().filter(|(_, message)| is_spoken(message));
        spoken.map(|(_, message)| message.content.len())
    };
    let is_covered = || {
        let first = log.entries.first().map(|entry| entry.seq);
        let is_summed_up = upto.is_some_and(|upto| first.is_some_and(|first| first <= upto));
        // More than this is not summarised at once.
        is_summed_up || sizes().sum::<usize>() / 2 > roster.max_bytes
    };
    is_filled(sizes(), roster.window, roster.max_bytes) && (!roster.summarise || is_covered())
}

/// Returns the names of addressees for prompts; unresolved ones as written.
pub(super) fn shown_names(members: &[Member], addressees: &[Addressee]) -> Vec<String> {
    let name = |addressee: &Addressee| {
        let member = members
            .iter()
            .find(|member| Some(&member.id) == addressee.member.as_ref());
        member.map_or_else(|| addressee.identifier.clone(), Member::prompt_name)
    };
    addressees.iter().map(name).collect()
}

/// Returns notices of members that answered with another model before.
pub fn other_models(meta: &SessionMeta, roster: &TeamRoster, plan: &ResumePlan) -> Vec<Notice> {
    let speakers = meta.speakers.iter().filter_map(|spoke| {
        let id = plan.heirs.get(&spoke.id).unwrap_or(&spoke.id);
        let agent = roster.agents.get(id)?.agent.as_ref().ok()?;
        let member = Some(spoke.display_name.clone());
        Notice::other_model(member, spoke.model.as_deref(), agent.model())
    });
    speakers.collect()
}

/// Returns the names of agents that were still queued or prompted when the program ended, in the
/// order in which they were addressed, without those that the user stopped.
pub fn unheard(log: &Log, members: &[Member], recovered: bool) -> Vec<String> {
    let entries = &log.entries[last_empty_queue(log)..];
    let cut_off = entries
        .iter()
        .rposition(|entry| entry.message().is_some_and(|message| message.interrupted))
        .filter(|_| recovered);
    let mut waiting: Vec<&Member> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        match &entry.body {
            // A user who stops an answer stops the queue, too; a crash does not.
            Body::Message(message) if message.interrupted && Some(at) != cut_off => waiting.clear(),
            Body::Message(message) => update_waiting(&mut waiting, message, members),
            Body::Failed(failed) if failed.kind == FailureKind::Cancelled.name() => waiting.clear(),
            Body::Failed(failed) => waiting.retain(|member| member.name != failed.agent),
            _ => {}
        }
    }
    waiting.iter().map(|member| member.name.clone()).collect()
}

/// Returns the index at which the queue was last certainly empty: the last roster entry, or in an
/// imported session without one the last message of a person.
fn last_empty_queue(log: &Log) -> usize {
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
fn update_waiting<'a>(waiting: &mut Vec<&'a Member>, message: &Message, members: &'a [Member]) {
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
