//! Describes a conversation in lines of text.

use jiff::Timestamp;
use tertulia_core::entry::Kind;
use tertulia_core::session::SessionMeta;
use tertulia_engine::conversation::Conversation;
use tertulia_engine::pair::text;
use tertulia_engine::team_conversation::TeamConversation;

use super::Leaving;
use crate::moment::{ago, dated};
use crate::show;
use crate::ui::fit;

/// Said to who asks for what only a team has.
const NO_TEAM: &str = "this session has no team";

/// Which session it is, and how far it is.
pub fn info(conversation: &Conversation) -> Vec<String> {
    let writer = conversation.runner().writer();
    let id = writer.id();
    let Some(meta) = writer.meta() else {
        return vec![format!("{id}  no messages yet")];
    };
    let how_far = match conversation {
        Conversation::Chat(_) => show::messages(meta.messages),
        Conversation::Team(_) => statistics(meta),
        Conversation::Pair(duet) => text::progress(&duet.progress()),
    };
    let title = fit(meta.title_or_untitled(), 60);
    vec![format!("{id}  \"{title}\"  {how_far}")]
}

/// Who is here.
pub fn members(conversation: &Conversation) -> Vec<String> {
    of_team(conversation, |table| {
        let members = table.router().members().iter();
        let shown = members.map(|member| {
            let kind = if member.is_human() { "person" } else { "agent" };
            format!("{}  [NEXT: {}]  {kind}", member.display_name, member.name)
        });
        shown.collect()
    })
}

/// Who is still to speak.
pub fn queue(conversation: &Conversation) -> Vec<String> {
    of_team(conversation, |table| {
        let items = table.router().queue().items().iter();
        let names: Vec<&str> = items.map(|item| item.request.target.as_str()).collect();
        vec![match names.as_slice() {
            [] => "the queue is empty".to_owned(),
            names => names.join(" → "),
        }]
    })
}

/// What the team works on.
pub fn task(conversation: &Conversation) -> Vec<String> {
    of_team(conversation, |table| {
        let none = "the team has no task: [TEAM_TASK: text] gives it one";
        vec![table.task().unwrap_or(none).to_owned()]
    })
}

fn of_team(
    conversation: &Conversation,
    words: impl FnOnce(&TeamConversation) -> Vec<String>,
) -> Vec<String> {
    match conversation {
        Conversation::Team(table) => words(table),
        Conversation::Chat(_) | Conversation::Pair(_) => vec![NO_TEAM.to_owned()],
    }
}

/// Names the members who are still queued when a session is left: the next time the queue is empty.
pub fn unheard(conversation: &Conversation, leaving: &Leaving) -> Option<String> {
    let names = conversation.queued_names();
    let all = names.join(", ");
    (!names.is_empty()).then(|| match leaving.is_resumable() {
        true => format!("still queued: {all} (ask again with [NEXT: {all}])"),
        false => format!("still queued: {all}"),
    })
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
