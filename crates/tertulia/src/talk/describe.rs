//! Describes a conversation in lines of text.

use jiff::Timestamp;
use tertulia_core::entry::Kind;
use tertulia_core::session::SessionMeta;
use tertulia_engine::conversation::Conversation;
use tertulia_engine::pair::text;
use tertulia_engine::team::policy::Team;
use tertulia_engine::text::members::{MemberRow, member_lines};

use super::leaving::Leaving;
use crate::moment::{ago, dated};
use crate::show;
use crate::ui::fit;

/// Reply to commands that only teams have.
const NO_TEAM: &str = "this session has no team";

/// Returns the session's id and title, and how far it is.
pub fn info(conversation: &Conversation) -> Vec<String> {
    let writer = conversation.writer();
    let id = writer.id();
    let Some(meta) = writer.meta() else {
        return vec![format!("{id}  no messages yet")];
    };
    let how_far = match (meta.kind, conversation.progress()) {
        (_, Some(progress)) => text::progress(&progress),
        (Kind::Team, None) => statistics(meta),
        (Kind::Chat | Kind::Pair, None) => show::messages(meta.messages),
    };
    let title = fit(meta.title_or_untitled(), 60);
    vec![format!("{id}  \"{title}\"  {how_far}")]
}

/// Lists the members of a team.
pub fn members(conversation: &Conversation) -> Vec<String> {
    of_team(conversation, |team| {
        let members = team.router().members().iter();
        let rows: Vec<MemberRow<'_>> = members
            .map(|member| MemberRow {
                display_name: &member.display_name,
                name: &member.name,
                role: None,
                agent: None,
                is_human: member.is_human(),
                does: "",
            })
            .collect();
        member_lines(&rows)
    })
}

/// Lists the queued members of a team.
pub fn queue(conversation: &Conversation) -> Vec<String> {
    of_team(conversation, |team| {
        let items = team.router().queue().items().iter();
        let names: Vec<&str> = items.map(|item| item.request.target.as_str()).collect();
        vec![match names.as_slice() {
            [] => "the queue is empty".to_owned(),
            names => names.join(" → "),
        }]
    })
}

/// Returns the task of a team.
pub fn task(conversation: &Conversation) -> Vec<String> {
    of_team(conversation, |team| {
        let none = "the team has no task: [TEAM_TASK: text] gives it one";
        vec![team.task().unwrap_or(none).to_owned()]
    })
}

fn of_team(conversation: &Conversation, words: impl FnOnce(&Team) -> Vec<String>) -> Vec<String> {
    let none = || vec![NO_TEAM.to_owned()];
    conversation.team().map_or_else(none, words)
}

/// Names the members that are still queued when a session closes; the queue is not saved.
pub fn unheard(conversation: &Conversation, leaving: &Leaving) -> Option<String> {
    let names = conversation.queued_names();
    let all = names.join(", ");
    (!names.is_empty()).then(|| match leaving.is_resumable() {
        true => format!("still queued: {all} (ask again with [NEXT: {all}])"),
        false => format!("still queued: {all}"),
    })
}

/// Describes a resumed session: its title, its age and how far it is.
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

/// Formats the message count, in total and per speaker, and the duration.
fn statistics(meta: &SessionMeta) -> String {
    let count = show::messages(meta.messages);
    format!("{count} ({})", show::statistics(meta))
}
