//! Opens the help at what is on the screen.

use super::open as open_layer;
use crate::help::{Help, HelpRow};
use crate::keymap::{self, Where};
use crate::slash as commands;
use crate::state::{Layer, State};

/// Opens the help: first what applies to the screen as it is, then the rest.
pub fn open(state: &mut State) {
    let mut rows = rows();
    if let Some(part) = context(state).map(Where::heading) {
        rows.sort_by_key(|row| row.part != part);
    }
    open_layer(state, Layer::Help(Box::new(Help::new(rows))));
}

/// What the next key would go to; `None` for the input of a session, to which commands matter most.
fn context(state: &State) -> Option<Where> {
    match state.overlays.last() {
        Some(Layer::Picker(_)) => Some(Where::Picker),
        Some(Layer::Search(_)) => Some(Where::Hits),
        Some(Layer::Rewind(_)) => Some(Where::Rewind),
        Some(Layer::Tree(_) | Layer::Stats(_) | Layer::Sheet(_)) => Some(Where::Sheet),
        Some(Layer::Help(_)) => Some(Where::Help),
        Some(_) => Some(Where::AgentRequest),
        None if state.reading => Some(Where::Transcript),
        None if state.input.is_searching() => Some(Where::Search),
        None if state.input.completion().is_open() => Some(Where::Popup),
        None => None,
    }
}

/// Rows of the help overlay: commands, keys and mouse.
fn rows() -> Vec<HelpRow> {
    let keys = keymap::help().into_iter().map(|row| HelpRow {
        part: row.at.heading().to_owned(),
        keys: row.keys,
        what: row.meaning.to_owned(),
    });
    let commands = commands::COMMANDS.iter().map(|command| HelpRow {
        part: "Commands".to_owned(),
        keys: format!("{} {}", command.name, command.arguments)
            .trim_end()
            .to_owned(),
        what: command.help.to_owned(),
    });
    let input = [
        ("!command", "run a shell command; the agent sees its output"),
        ("@path", "attach a text file of the folder"),
    ];
    let input = input.map(|(keys, what)| HelpRow {
        part: Where::Input.heading().to_owned(),
        keys: keys.to_owned(),
        what: what.to_owned(),
    });
    let mouse = HelpRow {
        part: "The mouse".to_owned(),
        keys: "wheel, drag".to_owned(),
        what: "scroll; copy what is dragged over (hold Shift for the terminal's own selection)"
            .to_owned(),
    };
    let click = HelpRow {
        part: mouse.part.clone(),
        keys: "click".to_owned(),
        what: "unfold a tool call; take a completion; choose a session, again to resume it"
            .to_owned(),
    };
    let mut rows: Vec<HelpRow> = commands.chain(keys).collect();
    let after = rows.iter().rposition(|row| row.part == input[0].part);
    let after = after.map_or(rows.len(), |last| last + 1);
    rows.splice(after..after, input);
    rows.extend([mouse, click]);
    rows
}
