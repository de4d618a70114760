//! Which key means what, as data: the screen acts on it, and its help is made from it.

mod table;

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub use table::Action;

/// Two presses further apart than this are two, not one of twice.
const TWICE_WITHIN: Duration = Duration::from_millis(800);
/// Whoever wants to leave has more time: the screen has just said that the same key does it.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Where {
    /// In the input, while nothing else is open.
    Input,
    /// In what is offered to complete a word.
    Popup,
    /// In the search through what was said before.
    Search,
    /// On the screen around the input.
    Talk,
    /// In the full transcript.
    Transcript,
    /// In the list of sessions.
    Picker,
    /// In the list of what can be gone back to.
    Rewind,
    /// In the help.
    Help,
    /// At a question.
    AgentRequest,
    /// On every screen.
    Anywhere,
}

impl Where {
    /// All of them, in the order of the help.
    pub const ALL: [Where; 10] = [
        Where::Input,
        Where::Popup,
        Where::Search,
        Where::Talk,
        Where::Transcript,
        Where::Picker,
        Where::Rewind,
        Where::Help,
        Where::AgentRequest,
        Where::Anywhere,
    ];

    /// Its heading in the help.
    pub fn heading(self) -> &'static str {
        match self {
            Where::Input => "Writing",
            Where::Popup => "Completing",
            Where::Search => "Searching your prompts",
            Where::Talk => "The talk",
            Where::Transcript => "The full transcript",
            Where::Picker => "The list of sessions (type to search)",
            Where::Rewind => "Going back",
            Where::Help => "This help",
            Where::AgentRequest => "Questions",
            Where::Anywhere => "Everywhere",
        }
    }
}

/// A key as the table has it.
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

    /// The key of an event, pressed once.
    fn of(event: KeyEvent) -> Key {
        let KeyCode::Char(letter) = event.code else {
            return Key::new(event.code, event.modifiers);
        };
        // What shift makes of a letter is already another letter, and caps lock changes no Ctrl+R.
        let modifiers = event.modifiers - KeyModifiers::SHIFT;
        let letter = if modifiers.is_empty() {
            letter
        } else {
            letter.to_ascii_lowercase()
        };
        Key::new(KeyCode::Char(letter), modifiers)
    }

    /// The key in words.
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
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    at: Where,
    action: Action,
    /// The keys that the help names.
    keys: &'static [Key],
    /// What terminals send in their stead, and what hands know from elsewhere.
    also: &'static [Key],
}

/// One row of the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpRow {
    /// Where the keys work.
    pub at: Where,
    /// What they do.
    pub action: Action,
    /// The keys, in words.
    pub keys: String,
    /// What they do, in words.
    pub meaning: &'static str,
}

/// What a key means there, or everywhere. A key that is let go of means nothing.
pub fn action(at: Where, key: KeyEvent) -> Option<Action> {
    only(at, key).or_else(|| only(Where::Anywhere, key))
}

/// What a key means there and not elsewhere.
pub fn only(at: Where, key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let key = Key::of(key);
    let mut here = table::BINDINGS.iter().filter(|binding| binding.at == at);
    here.find(|binding| binding.keys.contains(&key) || binding.also.contains(&key))
        .map(|binding| binding.action)
}

/// The rows of the help: every action of the table.
pub fn help() -> Vec<HelpRow> {
    let rows = Where::ALL.iter().flat_map(|place| {
        table::BINDINGS
            .iter()
            .filter(move |binding| binding.at == *place)
    });
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

/// Keys that mean more when they are pressed twice. The time is handed in.
#[derive(Debug, Default)]
pub struct Keys {
    last: Option<(Where, Action, Instant)>,
}

impl Keys {
    /// What a key means there: `Esc Esc` and `Ctrl+C Ctrl+C` mean something else than twice the same.
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

    /// Something else was pressed in between.
    pub fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests;
