//! The user's own keys: checked against the table and against each other.

use std::borrow::Cow;

use crossterm::event::{KeyCode, KeyModifiers};

use super::{Action, Binding, Key, Where, table};

/// Keys of an action in the settings: `[keys.CONTEXT] ACTION = KEYS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySetting {
    /// Name of the context.
    pub context: String,
    /// Name of the action.
    pub action: String,
    /// Keys such as `ctrl+t`; none if the action shall have none.
    pub keys: Vec<String>,
}

/// Contexts whose keys can be changed, with their names in the settings.
const CONTEXTS: [(&str, Where); 6] = [
    ("input", Where::Input),
    ("completion", Where::Popup),
    ("history", Where::Search),
    ("session", Where::Talk),
    ("transcript", Where::Transcript),
    ("everywhere", Where::Anywhere),
];

/// Contexts that get the same keys: one would hide the other.
const TOGETHER: [(Where, Where); 4] = [
    (Where::Input, Where::Talk),
    (Where::Input, Where::Anywhere),
    (Where::Talk, Where::Anywhere),
    (Where::Transcript, Where::Anywhere),
];

/// Returns the bindings with the user's keys, and a warning for each setting that is left out.
pub fn changed(settings: &[KeySetting]) -> (Vec<Binding>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut bindings = table::BINDINGS.to_vec();
    let mut own = Vec::new();
    for setting in settings {
        match place(setting) {
            Ok((place, keys)) => {
                bindings[place].keys = Cow::Owned(keys);
                bindings[place].also = Cow::Borrowed(&[]);
                own.push(place);
            }
            Err(why) => warnings.push(why),
        }
    }
    while let Some((place, other, key)) = conflict(&bindings, &own) {
        let (one, two) = (named(&bindings[place]), named(&bindings[other]));
        let key = key.name();
        warnings.push(format!(
            "{key} is both {one} and {two}; {one} keeps its usual keys"
        ));
        bindings[place] = table::BINDINGS[place].clone();
        own.retain(|own| *own != place);
    }
    follow(&mut bindings);
    (bindings, warnings)
}

/// Finds the binding that a setting means, and its keys.
fn place(setting: &KeySetting) -> Result<(usize, Vec<Key>), String> {
    let KeySetting {
        context, action, ..
    } = setting;
    let Some((_, at)) = CONTEXTS.iter().find(|(name, _)| name == context) else {
        let known = CONTEXTS.map(|(name, _)| name).join(", ");
        return Err(format!("[keys.{context}] is unknown: use one of {known}"));
    };
    // What a double press does follows the key that is pressed once.
    let is_named =
        |binding: &Binding| binding.at == *at && !binding.keys.iter().any(|key| key.twice);
    let here = || {
        table::BINDINGS
            .iter()
            .enumerate()
            .filter(|(_, binding)| is_named(binding))
    };
    let found = here().find(|(_, binding)| binding.action.name() == *action);
    let Some((place, _)) = found else {
        let known: Vec<String> = here().map(|(_, binding)| binding.action.name()).collect();
        let known = known.join(", ");
        return Err(format!(
            "[keys.{context}] has no '{action}'; it has {known}"
        ));
    };
    let mut keys = Vec::new();
    for written in &setting.keys {
        let key = parse(written).ok_or_else(|| {
            format!("keys.{context}.{action}: '{written}' is no key; write it as ctrl+t, alt+enter or f2")
        })?;
        let is_text = matches!(key.code, KeyCode::Char(_)) && key.modifiers.is_empty();
        if is_text && *at != Where::Transcript {
            let words = format!("keys.{context}.{action}: '{written}' is needed for writing");
            return Err(words);
        }
        keys.push(key);
    }
    Ok((place, keys))
}

/// Finds a changed binding that shares a key with another one.
fn conflict(bindings: &[Binding], own: &[usize]) -> Option<(usize, usize, Key)> {
    own.iter().rev().find_map(|place| {
        let binding = &bindings[*place];
        let others = bindings.iter().enumerate();
        let mut others = others.filter(|(other, _)| other != place);
        others.find_map(|(other, found)| {
            if !meet(binding.at, found.at) {
                return None;
            }
            let mut keys = binding.keys.iter();
            let shared = keys.find(|key| found.keys.contains(key) || found.also.contains(key));
            shared.map(|key| (*place, other, *key))
        })
    })
}

fn meet(one: Where, other: Where) -> bool {
    one == other || TOGETHER.contains(&(one, other)) || TOGETHER.contains(&(other, one))
}

/// Gives the actions of a double press the keys of the single press.
fn follow(bindings: &mut [Binding]) {
    for (single, double) in [
        (Action::Cancel, Action::Rewind),
        (Action::Interrupt, Action::Leave),
    ] {
        let first = bindings.iter().find(|binding| binding.action == single);
        let keys: Vec<Key> = first
            .into_iter()
            .flat_map(|binding| binding.keys.iter())
            .map(|key| Key {
                twice: true,
                ..*key
            })
            .collect();
        for binding in bindings
            .iter_mut()
            .filter(|binding| binding.action == double)
        {
            binding.keys = Cow::Owned(keys.clone());
        }
    }
}

fn named(binding: &Binding) -> String {
    let context = CONTEXTS.iter().find(|(_, at)| *at == binding.at);
    let context = context.map_or("", |(name, _)| name);
    format!("keys.{context}.{}", binding.action.name())
}

/// Parses a key such as `ctrl+t`, `alt+enter`, `f2` or `G`.
fn parse(written: &str) -> Option<Key> {
    let mut modifiers = KeyModifiers::NONE;
    let mut rest = written.trim();
    while let Some((modifier, key)) = rest.split_once('+').filter(|(_, key)| !key.is_empty()) {
        modifiers |= match modifier.to_ascii_lowercase().as_str() {
            "ctrl" => KeyModifiers::CONTROL,
            "alt" => KeyModifiers::ALT,
            "shift" => KeyModifiers::SHIFT,
            _ => return None,
        };
        rest = key;
    }
    let mut letters = rest.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        // A letter with Shift is another letter.
        let is_plain = modifiers.is_empty();
        let letter = if is_plain {
            letter
        } else {
            letter.to_ascii_lowercase()
        };
        let fits = !modifiers.contains(KeyModifiers::SHIFT);
        return fits.then(|| Key::new(KeyCode::Char(letter), modifiers));
    }
    let name = rest.to_ascii_lowercase();
    let code = match name.as_str() {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        "tab" => KeyCode::Tab,
        "space" => KeyCode::Char(' '),
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "insert" => KeyCode::Insert,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        _ => {
            let number = name.strip_prefix('f')?.parse().ok();
            KeyCode::F(number.filter(|number| (1..=24).contains(number))?)
        }
    };
    Some(Key::new(code, modifiers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(context: &str, action: &str, keys: &[&str]) -> KeySetting {
        KeySetting {
            context: context.to_owned(),
            action: action.to_owned(),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        }
    }

    fn keys(bindings: &[Binding], at: Where, action: Action) -> String {
        let found = bindings
            .iter()
            .find(|row| row.at == at && row.action == action);
        let names: Vec<String> = found.unwrap().keys.iter().map(Key::name).collect();
        names.join(", ")
    }

    #[test]
    fn keys_are_changed_swapped_and_taken_away() {
        let (bindings, warnings) = changed(&[
            setting("session", "transcript", &["f2", "alt+t"]),
            setting("session", "edit", &["ctrl+t"]),
            setting("session", "todos", &["ctrl+g"]),
            setting("input", "redo", &[]),
            setting("transcript", "copy", &["c"]),
            setting("everywhere", "interrupt", &["ctrl+q"]),
        ]);
        assert_eq!(warnings, [""; 0]);
        let check = |at, action, expected| assert_eq!(keys(&bindings, at, action), expected);
        check(Where::Talk, Action::Transcript, "F2, Alt+T");
        check(Where::Talk, Action::Edit, "Ctrl+T");
        check(Where::Talk, Action::Todos, "Ctrl+G");
        check(Where::Input, Action::Redo, "");
        check(Where::Transcript, Action::Copy, "c");
        check(Where::Anywhere, Action::Leave, "Ctrl+Q Ctrl+Q");
    }

    #[test]
    fn what_cannot_be_is_left_out_and_named() {
        let check = |setting: KeySetting, expected: &str| {
            let (bindings, warnings) = changed(&[setting]);
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].contains(expected), "{warnings:?}");
            let usual = keys(table::BINDINGS, Where::Talk, Action::Transcript);
            assert_eq!(keys(&bindings, Where::Talk, Action::Transcript), usual);
        };
        let transcript = |key| setting("session", "transcript", &[key]);
        check(
            transcript("ctrl+g"),
            "Ctrl+G is both keys.session.transcript and keys.session.edit",
        );
        check(transcript("ctrl+a"), "keys.input.line_start");
        check(transcript("ctrl+l"), "keys.everywhere.redraw");
        check(transcript("x"), "needed for writing");
        check(transcript("hyper+x"), "'hyper+x' is no key");
        check(
            setting("session", "tanscript", &["f2"]),
            "it has cancel, transcript",
        );
        check(
            setting("sesion", "transcript", &["f2"]),
            "use one of input, completion",
        );
        let both = [transcript("f2"), setting("session", "edit", &["f2"])];
        let (_, warnings) = changed(&both);
        assert_eq!(warnings.len(), 1, "one of both stays: {warnings:?}");
    }

    #[test]
    fn the_usual_keys_have_no_conflicts() {
        let all: Vec<usize> = (0..table::BINDINGS.len())
            .filter(|place| {
                CONTEXTS
                    .iter()
                    .any(|(_, at)| *at == table::BINDINGS[*place].at)
            })
            .collect();
        assert_eq!(conflict(table::BINDINGS, &all), None);
    }
}
