//! Settings of the full-screen interface: `[notify]`, `[theme]`, `[keys]` and `vim`.

use tertulia_tui::keymap::KeySetting;
use tertulia_tui::notify::Notify;
use tertulia_tui::theme::{self, Role, ThemeChoice};
use toml::{Table, Value};

use super::agent::command_words;
use super::values::Reader;

/// Keys of `[notify]`.
pub const NOTIFY_KEYS: &[&str] = &["bell", "desktop", "title", "after", "command", "content"];

/// How the full-screen interface looks and calls the user.
#[derive(Clone, Debug, Default)]
pub struct ScreenSettings {
    /// How the user is told that a session needs them.
    pub notify: Notify,
    /// Theme and colours.
    pub theme: ThemeChoice,
    /// The user's own keys.
    pub keys: Vec<KeySetting>,
    /// Whether the input has the modes of vim.
    pub vim: bool,
}

/// Keys of `[theme]`.
pub fn theme_keys() -> Vec<&'static str> {
    let roles = Role::ALL.iter().map(|(_, name, _)| *name);
    roles.chain(["name"]).collect()
}

impl ScreenSettings {
    /// Reads `[notify]`: what it does not say stays.
    pub fn read_notify(&mut self, reader: &Reader<'_>, table: &Table) {
        let notify = &mut self.notify;
        for (key, value) in [
            ("bell", &mut notify.bell),
            ("desktop", &mut notify.desktop),
            ("title", &mut notify.title),
            ("content", &mut notify.content),
        ] {
            *value = reader.flag(table, key).unwrap_or(*value);
        }
        notify.after = reader.seconds(table, "after").unwrap_or(notify.after);
        if let Some(command) = command_words(reader, table, "command") {
            notify.command = command;
        }
    }

    /// Reads the name of a theme.
    pub fn read_theme_name(&mut self, reader: &Reader<'_>, table: &Table, key: &str) {
        let Some(name) = reader.text(table, key) else {
            return;
        };
        match theme::NAMES.contains(&name.as_str()) {
            true => self.theme.name = Some(name),
            false => reader.expected(key, "\"dark\", \"light\" or \"contrast\""),
        }
    }

    /// Reads `[theme]`: a name, and colours of the user's own.
    pub fn read_theme(&mut self, reader: &Reader<'_>, table: &Table) {
        self.read_theme_name(reader, table, "name");
        for (_, role, _) in Role::ALL {
            let Some(text) = reader.text(table, role) else {
                continue;
            };
            match theme::colour(&text) {
                Some(colour) => self.theme.colours.push((role.to_owned(), colour)),
                None => reader.expected(role, "a colour such as \"cyan\", \"208\" or \"#88aaff\""),
            }
        }
    }

    /// Reads `[keys.CONTEXT]`: the keys of each action, one or a list.
    pub fn read_keys(&mut self, reader: &Reader<'_>, table: &Table) {
        for (context, value) in table {
            let Value::Table(actions) = value else {
                reader.expected(context, "a table such as [keys.session]");
                continue;
            };
            let reader = reader.within(context);
            for (action, value) in actions {
                let keys = match value {
                    Value::String(key) => Some(vec![key.clone()]),
                    _ => reader.texts(actions, action),
                };
                self.keys.extend(keys.map(|keys| KeySetting {
                    context: context.clone(),
                    action: action.clone(),
                    keys,
                }));
            }
        }
    }
}
