//! Closes a session: saves what is held in memory, and says how to resume.

use async_trait::async_trait;
use tertulia_engine::conversation::Conversation;
use tertulia_engine::event::{SessionEnd, Tone, UserMessage};
use tertulia_engine::live::Closing;
use tertulia_engine::text::hint::Invocation;

use super::{describe, unsaved};
use crate::error::ErrorKind;
use crate::open::Workspace;
use crate::settings::StoreUrl;
use crate::ui::{Told, Ui};

/// Closes a session: saves what is held in memory and says how to resume.
#[derive(Clone, Debug)]
pub struct Leaving {
    hint: Option<String>,
    /// How this run was started, for commands in hints.
    invocation: Invocation,
}

impl Leaving {
    pub fn new(ephemeral: bool, workspace: &Workspace, ui: &Ui) -> Leaving {
        let kept = !ephemeral && workspace.settings.store != StoreUrl::Memory;
        Leaving {
            hint: kept.then(|| format!("{} --resume", workspace.settings.program)),
            invocation: ui.invocation.clone(),
        }
    }

    /// Returns true if the session can be resumed later.
    pub fn is_resumable(&self) -> bool {
        self.hint.is_some()
    }
}

#[async_trait]
impl Closing for Leaving {
    async fn close(&self, conversation: &mut Conversation) -> SessionEnd {
        let mut ui = Ui::holding();
        ui.invocation = self.invocation.clone();
        if let Some(words) = describe::unheard(conversation, self) {
            ui.warn(&words);
        }
        conversation.save_at_last().await;
        let writer = conversation.writer();
        if let Err(reason) = writer.copy().await {
            ui.warn(&format!("saved, but not in the session file: {reason}"));
        }
        let unsaved = unsaved::offer(writer, &mut ui).await;
        if let Some(hint) = self.hint.as_ref().filter(|_| writer.meta().is_some()) {
            ui.note(&format!("Resume: {hint} {}", writer.id().short()));
        }
        let (told, content) = messages(&mut ui);
        SessionEnd {
            unsaved: unsaved.is_some(),
            locked_out: unsaved == Some(ErrorKind::Conflict),
            told,
            content,
        }
    }
}

/// Prints the closing messages of a session. Returns the kind of failure if entries remain unsaved.
pub fn tell_end(end: SessionEnd, ui: &mut Ui) -> Option<ErrorKind> {
    for told in end.told {
        match told.tone {
            Tone::Note => ui.note(&told.text),
            Tone::Warning | Tone::Error => ui.warn(&told.text),
        }
    }
    if let Some(content) = end.content {
        ui.data(&content);
    }
    end.unsaved.then_some(match end.locked_out {
        true => ErrorKind::Conflict,
        false => ErrorKind::Failed,
    })
}

/// Takes the messages and the data that `ui` has held back.
pub fn messages(ui: &mut Ui) -> (Vec<UserMessage>, Option<String>) {
    let mut content = None;
    let mut all = Vec::new();
    for told in ui.take_held() {
        match told {
            Told::Note(text) => all.push(UserMessage::note(text)),
            Told::Warning(text) => all.push(UserMessage::warning(text)),
            Told::Data(text) => content.get_or_insert_with(String::new).push_str(&text),
            Told::Error { message, hints, .. } => all.push(UserMessage {
                tone: Tone::Error,
                text: [vec![message], hints].concat().join("; "),
            }),
        }
    }
    (all, content)
}
