//! What a talk tells about itself, in words.

use jiff::Timestamp;
use tertulia_core::entry::Kind;
use tertulia_core::entry::human;
use tertulia_core::pair::Next;
use tertulia_core::session::SessionMeta;
use tertulia_engine::table::Table;

use super::Conversation;
use crate::moment::{ago, dated};
use crate::show;
use crate::talk::{Leaving, paired};
use crate::ui::fit;

/// Said to who asks for what only a team has.
const NO_TEAM: &str = "this session has no team";

/// What was left undone when a talk was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftUndone {
    /// What it is.
    pub words: String,
    /// Whether it cannot be gone on with before more calls of the worker are allowed.
    pub is_spent: bool,
}

impl Conversation {
    /// Which session it is, and how far it is.
    pub fn info(&self) -> Vec<String> {
        let writer = self.talk().writer();
        let id = writer.id();
        let Some(meta) = writer.meta() else {
            return vec![format!("{id}  no messages yet")];
        };
        let how_far = match self {
            Conversation::Chat(_) => show::messages(meta.messages),
            Conversation::Team(_) => statistics(meta),
            Conversation::Pair(duet) => paired::progress(&duet.progress()),
        };
        let title = fit(meta.title_or_untitled(), 60);
        vec![format!("{id}  \"{title}\"  {how_far}")]
    }

    /// Who is here.
    pub fn members(&self) -> Vec<String> {
        self.of_team(|table| {
            let members = table.router().members().iter();
            let shown = members.map(|member| {
                let kind = if member.is_human() { "person" } else { "agent" };
                format!("{}  [NEXT: {}]  {kind}", member.display_name, member.name)
            });
            shown.collect()
        })
    }

    /// Who is still to speak.
    pub fn queue(&self) -> Vec<String> {
        self.of_team(|table| {
            let items = table.router().queue().items().iter();
            let names: Vec<&str> = items.map(|item| item.request.target.as_str()).collect();
            vec![match names.as_slice() {
                [] => "the queue is empty".to_owned(),
                names => names.join(" → "),
            }]
        })
    }

    /// What the team works on.
    pub fn task(&self) -> Vec<String> {
        self.of_team(|table| {
            let none = "the team has no task: [TEAM_TASK: text] gives it one";
            vec![table.task().unwrap_or(none).to_owned()]
        })
    }

    fn of_team(&self, words: impl FnOnce(&Table) -> Vec<String>) -> Vec<String> {
        match self {
            Conversation::Team(table) => words(table),
            Conversation::Chat(_) | Conversation::Pair(_) => vec![NO_TEAM.to_owned()],
        }
    }

    /// The seat of the person of this name, or why it cannot be taken; without a name none is.
    pub fn seat_of(&self, name: &str) -> Result<Option<String>, String> {
        match self {
            Conversation::Team(_) if name.is_empty() => Ok(None),
            Conversation::Team(table) => match table.router().sender(Some(name), "") {
                Ok(member) => Ok(Some(member.id.clone())),
                Err(error) => Err(error.to_string()),
            },
            Conversation::Chat(_) | Conversation::Pair(_) => Err(NO_TEAM.to_owned()),
        }
    }

    /// Who is to speak: the seat that was taken, which is said, or who is waited for.
    pub fn whose_turn(&self, seat: Option<&str>) -> String {
        let Conversation::Team(table) = self else {
            return "you".to_owned();
        };
        let name = match table.router().sender(seat, "") {
            Ok(member) => member.display_name.clone(),
            Err(_) => {
                let members = table.router().members().iter();
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

    /// The name of whoever has the floor.
    pub fn waiting_for(&self) -> String {
        match self {
            Conversation::Team(table) => table.router().waiting().unwrap_or_default().to_owned(),
            Conversation::Chat(_) | Conversation::Pair(_) => human().name,
        }
    }

    /// Who is still to speak when the talk is left: the next time nobody waits.
    pub fn unheard(&self, leaving: &Leaving) -> Option<String> {
        let Conversation::Team(table) = self else {
            return None;
        };
        let members = table.router().members();
        let mut names: Vec<&str> = Vec::new();
        for item in table.router().queue().items() {
            let target = &item.request.target;
            let member = members.iter().find(|member| member.id == *target);
            let name = member.map_or(target, |member| &member.name).as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let all = names.join(", ");
        (!names.is_empty()).then(|| match leaving.is_resumable() {
            true => format!("still queued: {all} (ask again with [NEXT: {all}])"),
            false => format!("still queued: {all}"),
        })
    }

    /// What was left undone, for a person to say whether it is gone on with: nothing is done twice unasked.
    pub fn left_undone(&self) -> Option<LeftUndone> {
        let Conversation::Pair(duet) = self else {
            return None;
        };
        let next = duet.pending()?;
        let instruction = fit(&duet.pair()?.last_instruction.replace('\n', " "), 200);
        let mut words = match next {
            Next::Worker => {
                format!("The worker was cut off. Its instruction was: {instruction}")
            }
            Next::Handover => {
                format!("This instruction has not been given to the worker: {instruction}")
            }
            Next::Report => {
                "The worker has finished; its report has not reached the instructor.".to_owned()
            }
            _ => "The instructor has not replied.".to_owned(),
        };
        let is_spent = next == Next::Handover && duet.progress().remaining.is_spent();
        if is_spent {
            words.push_str("\nNo worker calls left: [r+5] allows five more.");
        }
        Some(LeftUndone { words, is_spent })
    }
}

/// What a resumed session holds, and from when it is.
pub fn resumed(meta: &SessionMeta, now: Timestamp) -> String {
    let how_far = match meta.kind {
        Kind::Chat => show::messages(meta.messages),
        Kind::Team => statistics(meta),
        Kind::Pair => {
            let pair = meta.pair.as_deref();
            let round = pair.map_or(0, |pair| pair.round);
            let remaining = pair.map(|pair| pair.remaining).unwrap_or_default();
            let messages = show::messages(meta.messages);
            format!("{messages}, round {round}, {remaining}")
        }
    };
    let title = fit(meta.title_or_untitled(), 60);
    let (date, ago) = (dated(meta.updated_at), ago(meta.updated_at, now));
    format!("Resumed \"{title}\" of {date} ({ago}): {how_far}.")
}

/// How much was said, by whom, over what time.
fn statistics(meta: &SessionMeta) -> String {
    let count = show::messages(meta.messages);
    format!("{count}, {}", show::statistics(meta))
}
