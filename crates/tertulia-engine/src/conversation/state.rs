//! The state of a conversation between turns.

use super::Conversation;
use crate::event::{ContextUse, QueuedMember, SessionState, UnfinishedWork};
use crate::pair::Next;
use crate::pair::policy::pair;
use crate::pair::text::NO_CALLS_LEFT;
use crate::policy::Policy;
use crate::team::policy::Team;
use tertulia_agents::ToolSide;
use tertulia_core::entry::human;

/// Why a command that only teams have is not available.
const NO_TEAM: &str = "this session has no team";
/// Characters of an instruction that are shown.
const SHOWN: usize = 200;

impl Conversation {
    /// Describes the conversation between turns; the user speaks as `seat` in a team.
    pub fn state(&self, seat: Option<&str>) -> SessionState {
        let writer = &self.writer;
        let agent = match &self.policy {
            Policy::Chat(chat) => Some(chat.agent()),
            Policy::Team(_) | Policy::Pair(_) => None,
        };
        SessionState {
            id: writer.id(),
            meta: writer.meta().cloned(),
            introduction: String::new(),
            folder: self.options.folder.path.display().to_string(),
            is_elsewhere: self.options.folder.is_elsewhere,
            writer: self.whose_turn(seat),
            agent: agent.map(|agent| agent.name().to_owned()),
            model: agent.and_then(|agent| agent.model().map(str::to_owned)),
            context: self.context_use(),
            unsaved: writer.has_unsaved(),
            waiting: self.team().map(queued).unwrap_or_default(),
            unfinished: self.unfinished(),
            failed: false,
        }
    }

    /// Returns how full the context of a chat was when it was last sent, as the agent counted it. An agent with a
    /// memory of its own does not say.
    fn context_use(&self) -> Option<ContextUse> {
        let Policy::Chat(chat) = &self.policy else {
            return None;
        };
        let reported = self.contexts.get(&None)?.reported?;
        let limit = self.options.compact_at.filter(|limit| *limit > 0)?;
        (chat.agent().tools() != ToolSide::Its).then_some(ContextUse {
            tokens: reported.sent,
            limit,
        })
    }

    /// Returns the member id of the person with this name; an empty name stands for no
    /// particular person. Fails with a message for the user.
    pub fn seat_of(&self, name: &str) -> Result<Option<String>, String> {
        match self.team() {
            None => Err(NO_TEAM.to_owned()),
            Some(_) if name.is_empty() => Ok(None),
            Some(team) => match team.router().sender(Some(name), "") {
                Ok(member) => Ok(Some(member.id.clone())),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// Returns the member as whom the user chose to speak in this session, if it is still a person of the team.
    pub fn recorded_seat(&self) -> Option<String> {
        let seat = self.writer.meta()?.seat.as_deref()?;
        self.seat_of(seat).ok()?
    }

    /// Returns the display name of the person who writes next.
    pub fn whose_turn(&self, seat: Option<&str>) -> String {
        let Some(team) = self.team() else {
            return "you".to_owned();
        };
        let name = match team.router().sender(seat, "") {
            Ok(member) => member.display_name.clone(),
            Err(_) => {
                let members = team.router().members().iter();
                let humans = members.filter(|member| member.is_human());
                let names: Vec<&str> = humans.map(|human| human.display_name.as_str()).collect();
                names.join("/")
            }
        };
        match seat {
            Some(_) => format!("as {name}"),
            None => name,
        }
    }

    /// Returns the name of the person that the conversation waits for.
    pub fn waiting_for(&self) -> String {
        match self.team() {
            Some(team) => team.router().waiting().unwrap_or_default().to_owned(),
            None => human().name,
        }
    }

    /// Returns the names of queued members, each once.
    pub fn queued_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        if let Some(team) = self.team() {
            let members = team.router().members();
            for item in team.router().queue().items() {
                let target = &item.request.target;
                let member = members.iter().find(|member| member.id == *target);
                let name = member.map_or(target, |member| &member.name).as_str();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Returns the unfinished work of a pair. It is never repeated without asking.
    pub fn unfinished(&self) -> Option<UnfinishedWork> {
        let progress = self.progress()?;
        let pair = pair(&self.view())?;
        let instruction = shown(&pair.last_instruction);
        let (question, mut text) = match pair.next {
            Next::Human => return None,
            Next::Worker => (
                "Repeat the interrupted instruction?",
                format!("The worker was interrupted: {instruction}"),
            ),
            Next::Handover => (
                "Give the instruction to the worker?",
                format!("The worker has not got this instruction: {instruction}"),
            ),
            Next::Report => (
                "Report to the instructor?",
                "The worker has finished; the instructor has not got its report.".to_owned(),
            ),
            Next::Instructor | Next::Correction => (
                "Ask the instructor again?",
                "The instructor has not replied.".to_owned(),
            ),
        };
        // The budget of this run, which may be larger than the one in the log.
        let is_spent = pair.is_out_of_calls(progress.remaining);
        if is_spent {
            text.push_str(&format!("\n({NO_CALLS_LEFT})"));
        }
        Some(UnfinishedWork {
            question: question.to_owned(),
            text,
            is_spent,
        })
    }
}

/// Shortens an instruction to one line.
fn shown(instruction: &str) -> String {
    let line = instruction.replace('\n', " ");
    match line.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

fn queued(team: &Team) -> Vec<QueuedMember> {
    let items = team.router().queue().items().iter();
    items
        .map(|item| {
            let target = &item.request.target;
            let members = team.router().members();
            let member = members.iter().find(|member| member.id == *target);
            QueuedMember {
                name: member.map_or(target, |member| &member.display_name).clone(),
                intent: item.request.intent,
                is_you: false,
            }
        })
        .collect()
}
