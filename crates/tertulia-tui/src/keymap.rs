//! Key bindings as data, used for input handling and for the help.

mod custom;
mod table;

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub use custom::KeySetting;
pub use table::Action;

/// Bindings of this process with the changes of the user, once they are known.
static CHANGED: OnceLock<Vec<Binding>> = OnceLock::new();

/// Maximum time between two presses that count as a double press.
const TWICE_WITHIN: Duration = Duration::from_millis(800);
/// The same for leaving; longer because the screen has just announced it.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Context in which a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Where {
    /// Input, while nothing else is open.
    Input,
    /// Completion popup.
    Popup,
    /// Search in the input history.
    Search,
    /// Session screen around the input.
    Talk,
    /// Transcript in reading mode.
    Transcript,
    /// Session list.
    Picker,
    /// Results of a full-text search.
    Hits,
    /// List of messages to rewind to.
    Rewind,
    /// Read-only text, fork tree or statistics.
    Sheet,
    /// Help.
    Help,
    /// Dialog.
    AgentRequest,
    /// Every context.
    Anywhere,
}

impl Where {
    /// All contexts, in the order of the help.
    pub const ALL: [Where; 12] = [
        Where::Input,
        Where::Popup,
        Where::Search,
        Where::Talk,
        Where::Transcript,
        Where::Picker,
        Where::Hits,
        Where::Rewind,
        Where::Sheet,
        Where::Help,
        Where::AgentRequest,
        Where::Anywhere,
    ];

    /// Heading in the help.
    pub fn heading(self) -> &'static str {
        match self {
            Where::Input => "Writing",
            Where::Popup => "Completing",
            Where::Search => "Searching your prompts",
            Where::Talk => "Session",
            Where::Transcript => "The full transcript",
            Where::Picker => "The list of sessions (type to search)",
            Where::Hits => "Searching all sessions",
            Where::Rewind => "Going back",
            Where::Sheet => "Texts, the fork tree, statistics",
            Where::Help => "This help",
            Where::AgentRequest => "Questions",
            Where::Anywhere => "Everywhere",
        }
    }
}

/// A key of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
    twice: bool,
}

impl Key {
    const fn new(code: KeyCode, modifiers: KeyModifiers) -> Key {
        Key {
            code,
            modifiers,
            twice: false,
        }
    }

    /// The key of an event, as a single press.
    fn of(event: KeyEvent) -> Key {
        let KeyCode::Char(letter) = event.code else {
            return Key::new(event.code, event.modifiers);
        };
        // Shift already changes the letter itself, and caps lock must not affect Ctrl+R.
        let modifiers = event.modifiers - KeyModifiers::SHIFT;
        let letter = if modifiers.is_empty() {
            letter
        } else {
            letter.to_ascii_lowercase()
        };
        Key::new(KeyCode::Char(letter), modifiers)
    }

    /// Display name.
    pub fn name(&self) -> String {
        let mut name = String::new();
        for (modifier, word) in [
            (KeyModifiers::CONTROL, "Ctrl+"),
            (KeyModifiers::ALT, "Alt+"),
            (KeyModifiers::SHIFT, "Shift+"),
        ] {
            if self.modifiers.contains(modifier) {
                name.push_str(word);
            }
        }
        match self.code {
            KeyCode::Char(' ') => name.push_str("Space"),
            KeyCode::Char(c) if self.modifiers.is_empty() => name.push(c),
            KeyCode::Char(c) => name.push(c.to_ascii_uppercase()),
            KeyCode::Up => name.push('↑'),
            KeyCode::Down => name.push('↓'),
            KeyCode::Left => name.push('←'),
            KeyCode::Right => name.push('→'),
            KeyCode::PageUp => name.push_str("PgUp"),
            KeyCode::PageDown => name.push_str("PgDn"),
            KeyCode::Delete => name.push_str("Del"),
            // Some terminals name the modifier, some do not.
            KeyCode::BackTab if self.modifiers.contains(KeyModifiers::SHIFT) => {
                name.push_str("Tab");
            }
            KeyCode::BackTab => name.push_str("Shift+Tab"),
            code => name.push_str(&code.to_string()),
        }
        if self.twice {
            format!("{name} {name}")
        } else {
            name
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Binding {
    at: Where,
    action: Action,
    /// Keys shown in the help.
    keys: Cow<'static, [Key]>,
    /// Alternatives that terminals send or users know from elsewhere.
    also: Cow<'static, [Key]>,
}

/// Changes the bindings for the rest of the process, once, and returns a warning for each change that
/// cannot be made.
pub fn change(settings: &[KeySetting]) -> Vec<String> {
    let (bindings, warnings) = custom::changed(settings);
    // The bindings stay what they are if they were changed before.
    let _ = CHANGED.set(bindings);
    warnings
}

/// The bindings in force.
fn bindings() -> &'static [Binding] {
    CHANGED.get().map_or(table::BINDINGS, Vec::as_slice)
}

/// One row of the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpRow {
    /// Context.
    pub at: Where,
    /// Action.
    pub action: Action,
    /// Display names of the keys.
    pub keys: String,
    /// Explanation.
    pub meaning: &'static str,
}

/// Action of a key in a context or everywhere. A key release has none.
pub fn action(at: Where, key: KeyEvent) -> Option<Action> {
    only(at, key).or_else(|| only(Where::Anywhere, key))
}

/// Action of a key in a context only.
pub fn only(at: Where, key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let key = Key::of(key);
    let mut here = bindings().iter().filter(|binding| binding.at == at);
    here.find(|binding| binding.keys.contains(&key) || binding.also.contains(&key))
        .map(|binding| binding.action)
}

/// Display name of the first key for an action, if it has one.
pub fn key_of(at: Where, action: Action) -> Option<String> {
    let mut here = bindings().iter().filter(|binding| binding.at == at);
    let binding = here.find(|binding| binding.action == action)?;
    binding.keys.first().map(Key::name)
}

/// Rows of the help: every binding of the table.
pub fn help() -> Vec<HelpRow> {
    let rows = Where::ALL.iter().flat_map(|place| {
        bindings()
            .iter()
            .filter(move |binding| binding.at == *place)
    });
    let rows = rows.filter(|binding| !binding.keys.is_empty());
    rows.map(|binding| {
        let keys: Vec<String> = binding.keys.iter().map(Key::name).collect();
        HelpRow {
            at: binding.at,
            action: binding.action,
            keys: keys.join(", "),
            meaning: binding.action.meaning(),
        }
    })
    .collect()
}

/// Recognises double presses. The caller passes the time.
#[derive(Debug, Default)]
pub struct Keys {
    last: Option<(Where, Action, Instant)>,
}

impl Keys {
    /// Action of a key, where `Esc Esc` and `Ctrl+C Ctrl+C` have their own actions.
    pub fn action(&mut self, at: Where, key: KeyEvent, now: Instant) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let Some(action) = action(at, key) else {
            self.forget();
            return None;
        };
        let last = self.last.replace((at, action, now));
        let (twice, within) = match (at, action) {
            (Where::Talk, Action::Cancel) => (Action::Rewind, TWICE_WITHIN),
            (_, Action::Interrupt) => (Action::Leave, LEAVE_WITHIN),
            _ => return Some(action),
        };
        let again = last.is_some_and(|(before, same, then)| {
            same == action
                && (before == at || action == Action::Interrupt)
                && now.saturating_duration_since(then) <= within
        });
        if again {
            self.forget();
            return Some(twice);
        }
        Some(action)
    }

    /// Forgets the last key because another one was pressed in between.
    pub fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests;
