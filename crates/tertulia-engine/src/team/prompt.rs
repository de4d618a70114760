//! Builds the prompt of a team member as one text, in the format that suits its agent. Messages are
//! not reworded: what does not fit is left out, the least needed first.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::memory::{Recalled, Spoken};
use tertulia_core::team::code::code;
use tertulia_core::team::markers::Intent;

/// Maximum number of bytes of the message to reply to, if there is little room.
pub const PARENT_LIMIT: usize = 1024;
/// Number of bytes of the last message that are always kept.
pub const MESSAGE_LEAST: usize = 1024;
/// Maximum number of characters of a related reply.
pub const RELATED_LIMIT: usize = 200;

/// Part of the room that the summary may take: one in so many.
const SUMMARY_SHARE: usize = 4;
/// Maximum number of bytes of a character beyond its first.
const REST_OF_CHARACTER: usize = 3;
/// Separator of two sections.
const BLANK_LINE: &str = "\n\n";

/// Format of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Sections that begin with `[SYSTEM]`, `[CONTEXT]`, `[MESSAGE]` and the like.
    Claude,
    /// The same.
    Codex,
    /// Sections that begin with plain headings.
    Gemini,
    /// Only messages and their speakers.
    Plain,
}

/// Content of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Material<'a> {
    /// The member's role and instructions.
    pub system: &'a str,
    /// Whether the agent gets the system text separately, so that the prompt leaves it out.
    pub system_apart: bool,
    /// The team's task.
    pub task: Option<&'a str>,
    /// Summary of messages that are left out of every prompt.
    pub summary: Option<&'a str>,
    /// Messages of the conversation.
    pub recalled: &'a Recalled<'a>,
    /// Urgency of the request.
    pub intent: Intent,
}

impl Layout {
    /// Returns the layout for an agent, by its name, else by its type.
    pub fn of(name: &str, kind: &str) -> Layout {
        let known = known(name).or_else(|| known(kind));
        known.unwrap_or(Layout::Plain)
    }

    fn headers(self) -> Headers {
        match self {
            Layout::Claude | Layout::Codex => BRACKETS,
            Layout::Gemini => WORDS,
            Layout::Plain => NONE,
        }
    }

    /// Formats one earlier message.
    pub(super) fn line(self, spoken: &Spoken) -> String {
        let Spoken { from, to, text, .. } = spoken;
        match self {
            Layout::Claude | Layout::Codex => {
                let to = if to.is_empty() {
                    "all".to_owned()
                } else {
                    to.join(", ")
                };
                format!("- {from} -> {to}: {text}")
            }
            Layout::Gemini => format!("- {from}: {text}"),
            Layout::Plain => format!("{from}: {text}"),
        }
    }

    /// Separator of two earlier messages.
    fn between(self) -> &'static str {
        match self {
            Layout::Claude | Layout::Codex | Layout::Gemini => "\n",
            Layout::Plain => BLANK_LINE,
        }
    }
}

fn known(name: &str) -> Option<Layout> {
    let name = name.to_lowercase();
    let has = |part| name.contains(part);
    if has("claude") || has("anthropic") {
        Some(Layout::Claude)
    } else if has("codex") || has("openai") {
        Some(Layout::Codex)
    } else if has("gemini") {
        Some(Layout::Gemini)
    } else {
        None
    }
}

/// Headings of the sections.
#[derive(Clone, Copy, Debug)]
struct Headers {
    system: &'static str,
    task: &'static str,
    summary: &'static str,
    context: &'static str,
    parent: &'static str,
    related: &'static str,
    message: &'static str,
    meta: &'static str,
}

const BRACKETS: Headers = Headers {
    system: "[SYSTEM]",
    task: "[TEAM_TASK]",
    summary: "[SUMMARY]",
    context: "[CONTEXT]",
    parent: "[PARENT_CONTEXT]",
    related: "[RELATED_CONTEXT]",
    message: "[MESSAGE]",
    meta: "[ROUTING_META]",
};

const WORDS: Headers = Headers {
    system: "Instructions:",
    task: "Team Task:",
    summary: "Summary of earlier messages:",
    context: "Conversation so far:",
    parent: "Original message:",
    related: "Related responses:",
    message: "Last message:",
    meta: "Routing info:",
};

const NONE: Headers = Headers {
    system: "",
    task: "",
    summary: "Summary of earlier messages:",
    context: "",
    parent: "",
    related: "",
    message: "",
    meta: "",
};

/// A prompt, and what there was no room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedPrompt {
    /// The prompt.
    pub text: String,
    /// Number of the oldest earlier messages that are left out.
    pub left_out: usize,
}

/// Builds the prompt in at most `room` bytes, including system text that is given separately.
/// System text, task, and a part of the message to reply to and of the last message are kept even
/// if there is no room for them. The summary gets at most a quarter of the room.
pub fn prompt(layout: Layout, material: &Material<'_>, room: usize) -> FittedPrompt {
    let apart = if material.system_apart {
        material.system.len()
    } else {
        0
    };
    let room = room.saturating_sub(apart);
    let context = material.recalled.context.iter();
    let lines: Vec<String> = context.map(|spoken| layout.line(spoken)).collect();
    let context = context_size(layout, &lines);
    let mut draft = Draft::whole(layout, material, room / SUMMARY_SHARE);
    let mut fixed = draft.text(&[]).len();
    if fixed + context > room {
        draft.related.clear();
        fixed = draft.text(&[]).len();
    }
    if fixed + context > room {
        draft.cut_parent();
        fixed = draft.text(&[]).len();
    }
    if fixed > room {
        draft.summary = None;
        fixed = draft.text(&[]).len();
    }
    let kept = fitting(layout, &lines, room.saturating_sub(fixed));
    if fixed > room {
        draft.cut_message(fixed - room);
    }
    let left_out = lines.len() - kept;
    FittedPrompt {
        text: draft.text(&lines[left_out..]),
        left_out,
    }
}

/// A prompt without its earlier messages.
struct Draft<'a> {
    layout: Layout,
    material: &'a Material<'a>,
    summary: Option<Cow<'a, str>>,
    parent: Option<Cow<'a, str>>,
    related: Vec<String>,
    message: Cow<'a, str>,
}

impl<'a> Draft<'a> {
    fn whole(layout: Layout, material: &'a Material<'a>, summary_room: usize) -> Draft<'a> {
        let recalled = material.recalled;
        let parent = recalled.parent.map(|parent| parent.text.as_str().into());
        let related = recalled.related.iter();
        let in_brief = |spoken: &&Spoken| format!("- {}: {}", spoken.from, brief(&spoken.text));
        Draft {
            layout,
            material,
            summary: material.summary.map(|summary| cut(summary, summary_room)),
            parent,
            related: match layout {
                Layout::Plain => Vec::new(),
                _ => related.map(in_brief).collect(),
            },
            message: recalled.message.text.as_str().into(),
        }
    }

    fn cut_parent(&mut self) {
        if let Some(parent) = self.material.recalled.parent {
            self.parent = Some(cut(&parent.text, PARENT_LIMIT));
        }
    }

    fn cut_message(&mut self, excess: usize) {
        let text = &self.material.recalled.message.text;
        let least = MESSAGE_LEAST + REST_OF_CHARACTER + mark(text.len()).len();
        let most = text.len().saturating_sub(excess);
        self.message = cut(text, most.max(least));
    }

    /// Renders the prompt with these earlier messages.
    fn text(&self, lines: &[String]) -> String {
        let headers = self.layout.headers();
        let mut sections = Vec::new();
        if !self.material.system_apart {
            sections.extend(section(headers.system, self.material.system));
        }
        let task = self.material.task.unwrap_or_default();
        sections.extend(section(headers.task, task));
        let summary = self.summary.as_deref().unwrap_or_default();
        sections.extend(section(headers.summary, summary));
        sections.extend(self.talk(lines));
        sections.extend(section(headers.related, &self.related.join("\n")));
        let from = &self.material.recalled.message.from;
        let message = format!("{from}: {}", self.message);
        sections.extend(section(headers.message, &message));
        if self.layout != Layout::Plain {
            sections.extend(section(headers.meta, &self.meta()));
        }
        sections.join(BLANK_LINE)
    }

    /// Renders the messages before the last one. In the plain layout the message to reply to keeps
    /// its position, because no heading would show that it is older or newer than the rest.
    fn talk(&self, lines: &[String]) -> Vec<String> {
        let headers = self.layout.headers();
        let recalled = self.material.recalled;
        let parent = recalled.parent.zip(self.parent.as_ref());
        let parent = parent.map(|(spoken, text)| format!("{}: {text}", spoken.from));
        let parent = section(headers.parent, &parent.unwrap_or_default());
        if self.layout == Layout::Plain {
            let left_out = recalled.context.len() - lines.len();
            let place = recalled.parent_at.saturating_sub(left_out);
            let (earlier, later) = lines.split_at(place.min(lines.len()));
            return [earlier, parent.as_slice(), later].concat();
        }
        let context = section(headers.context, &lines.join(self.layout.between()));
        context.into_iter().chain(parent).collect()
    }

    fn meta(&self) -> String {
        let recalled = self.material.recalled;
        let parent = recalled.parent.unwrap_or(recalled.message).id;
        let intent = match self.material.intent {
            Intent::P1 => "P1_INTERRUPT",
            Intent::P2 => "P2_REPLY",
            Intent::P3 => "P3_EXTEND",
        };
        format!("parentMessageId: {parent}\nintent: {intent}")
    }
}

/// Renders a section, unless it is empty.
fn section(header: &str, body: &str) -> Option<String> {
    if body.trim().is_empty() {
        return None;
    }
    Some(match header {
        "" => body.to_owned(),
        _ => format!("{header}\n{body}"),
    })
}

/// Returns by how much these earlier messages lengthen a prompt.
fn context_size(layout: Layout, lines: &[String]) -> usize {
    if lines.is_empty() {
        return 0;
    }
    let sizes = lines.iter().map(|line| size(layout, line));
    opening(layout) + sizes.sum::<usize>()
}

/// Counts how many of the newest earlier messages fit.
fn fitting(layout: Layout, lines: &[String], room: usize) -> usize {
    let mut used = opening(layout);
    let newest_first = lines.iter().rev();
    let fits = newest_first.take_while(|line| {
        used += size(layout, line);
        used <= room
    });
    fits.count()
}

/// Returns the size of an earlier message with its separator.
fn size(layout: Layout, line: &str) -> usize {
    line.len() + layout.between().len()
}

/// Returns the size of the section of earlier messages without them.
fn opening(layout: Layout) -> usize {
    match layout.headers().context {
        "" => 0,
        // The header has its own line, and no separator follows the last message of the section.
        header => header.len() + "\n".len() + BLANK_LINE.len() - layout.between().len(),
    }
}

/// Limits a text to `most` bytes: unchanged, or its beginning and a mark.
pub(super) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    // For fewer missing bytes the mark is not longer.
    let end = text.floor_char_boundary(most.saturating_sub(mark(text.len()).len()));
    format!("{}{}", &text[..end], mark(text.len() - end)).into()
}

/// Formats the mark with the number of missing bytes.
fn mark(missing: usize) -> String {
    format!("\n[… {missing} bytes are missing here …]")
}

/// Abridges a text: without its code, and cut to `RELATED_LIMIT` characters.
fn brief(text: &str) -> String {
    let mut words = String::new();
    let mut at = 0;
    for block in code(text).into_iter().filter(|code| code.fenced) {
        words.push_str(&text[at..block.range.start]);
        words.push_str("[code]");
        if text[block.range.clone()].ends_with('\n') {
            words.push('\n');
        }
        at = block.range.end;
    }
    words.push_str(&text[at..]);
    let words = words.trim();
    match words.char_indices().nth(RELATED_LIMIT) {
        None => words.to_owned(),
        Some(_) => words.chars().take(RELATED_LIMIT - 1).chain(['…']).collect(),
    }
}
