//! Table of key bindings.

use std::borrow::Cow;

use crossterm::event::{KeyCode, KeyModifiers};

use super::{Binding, Key, Where};

macro_rules! actions {
    ($($name:ident: $meaning:literal,)*) => {
        /// Action of a key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Action {
            $(#[doc = $meaning] $name,)*
        }

        impl Action {
            /// All actions.
            pub const ALL: &'static [Action] = &[$(Action::$name,)*];

            /// Name of the variant.
            fn variant(self) -> &'static str {
                match self {
                    $(Action::$name => stringify!($name),)*
                }
            }

            /// Name in the settings: `SearchHistory` is `search_history`.
            pub fn name(self) -> String {
                let mut name = String::new();
                for letter in self.variant().chars() {
                    if letter.is_uppercase() && !name.is_empty() {
                        name.push('_');
                    }
                    name.push(letter.to_ascii_lowercase());
                }
                name
            }

            /// Explanation for the help.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Action::$name => $meaning,)*
                }
            }
        }
    };
}

actions! {
    Send: "send it",
    NewLine: "begin a new line (also \\ and Enter)",
    Complete: "complete the word; unfold the paste before the cursor",
    SearchHistory: "search your prompt history",
    Left: "one character back",
    Right: "one character on",
    WordLeft: "one word back",
    WordRight: "one word on",
    Up: "line up; from the first line, queued message or previous prompt",
    Down: "line down; from the last line, next prompt",
    LineStart: "to the start of the line",
    LineEnd: "to the end of the line",
    DeleteBack: "delete the character before",
    DeleteForward: "delete the next character; exit if the input is empty",
    DeleteWordBack: "delete the word before",
    DeleteWordForward: "delete the word after",
    DeleteToBlank: "delete back to the last blank",
    DeleteToStart: "delete to the start of the line",
    DeleteToEnd: "delete to the end of the line",
    Yank: "put back what was deleted last",
    Undo: "undo",
    Redo: "redo",
    Accept: "accept",
    Next: "choose the next",
    Previous: "choose the one before",
    Close: "close it",
    Older: "an older one",
    Take: "take it, to be changed or sent",
    GiveUp: "back to what was written",
    Cancel: "stop the speaker and clear the queue",
    Rewind: "choose a message to go back to",
    Transcript: "the full transcript",
    PageUp: "a page up",
    PageDown: "a page down",
    ToTop: "to the beginning",
    ToEnd: "to the end",
    LineUp: "a line up",
    LineDown: "a line down",
    HalfUp: "half a page up",
    HalfDown: "half a page down",
    Find: "find words in the whole session",
    FindNext: "previous match",
    FindBack: "next match",
    SelectLines: "select lines; ↑ ↓ extend",
    SelectMessages: "select messages",
    Copy: "copy the selection, or the code block on the screen",
    Unfold: "fold or unfold the last tool call or long message",
    UnfoldAll: "fold or unfold all of them",
    CopyAll: "copy a text",
    Filter: "find words in this help",
    Resume: "resume",
    GoThere: "go there",
    ForkThere: "fork there",
    Other: "the fork tree: resume; statistics: tokens or messages",
    Empty: "show or hide empty ones",
    Preview: "preview",
    Rename: "give it another title",
    Tag: "change its tags",
    Fork: "fork",
    Trash: "move to trash (asks)",
    Scope: "this project, or all",
    RewindHere: "go back to it",
    Yes: "choose: once (Enter answers)",
    No: "choose: no",
    Always: "choose: this session",
    Instead: "choose: no, and say what to do instead",
    Interrupt: "stop the speaker",
    Leave: "leave",
    Edit: "write in your editor ($VISUAL, $EDITOR)",
    Todos: "show or hide the todo list",
    Mode: "switch the tool policy: ask, edits, all",
    Unqueue: "remove the queued message being edited",
    Suspend: "back to the shell; fg comes back",
    Detach: "detach; the session keeps running on its server",
    Redraw: "redraw the screen",
    Help: "this help",
}

const fn key(code: KeyCode) -> Key {
    Key::new(code, KeyModifiers::NONE)
}

const fn letter(letter: char) -> Key {
    key(KeyCode::Char(letter))
}

const fn ctrl(letter: char) -> Key {
    Key::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
}

const fn alt(letter: char) -> Key {
    Key::new(KeyCode::Char(letter), KeyModifiers::ALT)
}

const fn with(modifiers: KeyModifiers, code: KeyCode) -> Key {
    Key::new(code, modifiers)
}

const fn twice(key: Key) -> Key {
    Key { twice: true, ..key }
}

const fn bind(at: Where, action: Action, keys: &'static [Key]) -> Binding {
    Binding {
        at,
        action,
        keys: Cow::Borrowed(keys),
        also: Cow::Borrowed(&[]),
    }
}

const fn bind_also(
    at: Where,
    action: Action,
    keys: &'static [Key],
    also: &'static [Key],
) -> Binding {
    Binding {
        at,
        action,
        keys: Cow::Borrowed(keys),
        also: Cow::Borrowed(also),
    }
}

const CTRL: KeyModifiers = KeyModifiers::CONTROL;
const ALT: KeyModifiers = KeyModifiers::ALT;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;

use Action as A;
use KeyCode as K;
use Where::{AgentRequest, Anywhere, Hits, Input, Picker, Popup, Search, Sheet, Talk, Transcript};

/// All bindings. Terminals that cannot tell `Shift+Enter` from `Enter` send `Ctrl+J` for the former
/// at best, and `Ctrl+_` arrives as `Ctrl+7`.
pub const BINDINGS: &[Binding] = &[
    bind(Input, A::Send, &[key(K::Enter)]),
    bind_also(
        Input,
        A::NewLine,
        &[with(ALT, K::Enter), with(SHIFT, K::Enter), ctrl('j')],
        &[with(CTRL, K::Enter)],
    ),
    bind(Input, A::Complete, &[key(K::Tab)]),
    bind(Input, A::SearchHistory, &[ctrl('r')]),
    bind_also(Input, A::Left, &[key(K::Left)], &[ctrl('b')]),
    bind_also(Input, A::Right, &[key(K::Right)], &[ctrl('f')]),
    bind_also(
        Input,
        A::WordLeft,
        &[with(CTRL, K::Left), alt('b')],
        &[with(ALT, K::Left)],
    ),
    bind_also(
        Input,
        A::WordRight,
        &[with(CTRL, K::Right), alt('f')],
        &[with(ALT, K::Right)],
    ),
    bind_also(Input, A::Up, &[key(K::Up)], &[ctrl('p')]),
    bind_also(Input, A::Down, &[key(K::Down)], &[ctrl('n')]),
    bind(Input, A::LineStart, &[key(K::Home), ctrl('a')]),
    bind(Input, A::LineEnd, &[key(K::End), ctrl('e')]),
    bind_also(
        Input,
        A::DeleteBack,
        &[key(K::Backspace)],
        &[with(SHIFT, K::Backspace), ctrl('h')],
    ),
    bind(Input, A::DeleteForward, &[key(K::Delete), ctrl('d')]),
    bind_also(
        Input,
        A::DeleteWordBack,
        &[with(ALT, K::Backspace)],
        &[with(CTRL, K::Backspace)],
    ),
    bind_also(
        Input,
        A::DeleteWordForward,
        &[alt('d')],
        &[with(CTRL, K::Delete), with(ALT, K::Delete)],
    ),
    bind(Input, A::DeleteToBlank, &[ctrl('w')]),
    bind(Input, A::DeleteToStart, &[ctrl('u')]),
    bind(Input, A::DeleteToEnd, &[ctrl('k')]),
    bind(Input, A::Yank, &[ctrl('y')]),
    bind_also(
        Input,
        A::Undo,
        &[ctrl('_'), alt('u')],
        &[ctrl('7'), ctrl('/')],
    ),
    bind(Input, A::Redo, &[alt('e')]),
    bind(Popup, A::Accept, &[key(K::Tab), key(K::Enter)]),
    bind_also(Popup, A::Next, &[key(K::Down)], &[ctrl('n')]),
    bind_also(
        Popup,
        A::Previous,
        &[key(K::Up)],
        &[ctrl('p'), key(K::BackTab), with(SHIFT, K::BackTab)],
    ),
    bind(Popup, A::Close, &[key(K::Esc)]),
    bind(Search, A::Older, &[ctrl('r')]),
    bind_also(Search, A::Take, &[key(K::Enter)], &[key(K::Tab)]),
    bind_also(Search, A::GiveUp, &[key(K::Esc), ctrl('c')], &[ctrl('g')]),
    bind_also(
        Search,
        A::DeleteBack,
        &[key(K::Backspace)],
        &[with(SHIFT, K::Backspace), ctrl('h')],
    ),
    bind(Talk, A::Cancel, &[key(K::Esc)]),
    bind(Talk, A::Rewind, &[twice(key(K::Esc))]),
    bind(Talk, A::Transcript, &[ctrl('o')]),
    bind(Talk, A::Edit, &[ctrl('g')]),
    bind(Talk, A::Todos, &[ctrl('t')]),
    bind_also(
        Talk,
        A::Mode,
        &[with(SHIFT, K::BackTab)],
        &[key(K::BackTab)],
    ),
    bind(Talk, A::Unqueue, &[ctrl('x')]),
    bind(Talk, A::PageUp, &[key(K::PageUp)]),
    bind(Talk, A::PageDown, &[key(K::PageDown)]),
    bind_also(Talk, A::LineUp, &[with(SHIFT, K::Up)], &[with(CTRL, K::Up)]),
    bind_also(
        Talk,
        A::LineDown,
        &[with(SHIFT, K::Down)],
        &[with(CTRL, K::Down)],
    ),
    bind(Talk, A::ToTop, &[with(CTRL, K::Home)]),
    bind(Talk, A::ToEnd, &[with(CTRL, K::End)]),
    bind_also(
        Transcript,
        A::Mode,
        &[with(SHIFT, K::BackTab)],
        &[key(K::BackTab)],
    ),
    bind_also(
        Transcript,
        A::PageUp,
        &[key(K::PageUp)],
        &[letter('b'), ctrl('b')],
    ),
    bind_also(
        Transcript,
        A::PageDown,
        &[key(K::PageDown)],
        &[letter(' '), ctrl('f')],
    ),
    bind(Transcript, A::HalfUp, &[ctrl('u')]),
    bind(Transcript, A::HalfDown, &[ctrl('d')]),
    bind(Transcript, A::LineUp, &[key(K::Up), letter('k')]),
    bind(Transcript, A::LineDown, &[key(K::Down), letter('j')]),
    bind_also(
        Transcript,
        A::ToTop,
        &[key(K::Home), letter('g')],
        &[with(CTRL, K::Home)],
    ),
    bind_also(
        Transcript,
        A::ToEnd,
        &[key(K::End), letter('G')],
        &[with(CTRL, K::End)],
    ),
    bind(Transcript, A::Find, &[letter('/')]),
    bind(Transcript, A::FindNext, &[letter('n')]),
    bind(Transcript, A::FindBack, &[letter('N')]),
    bind(Transcript, A::SelectLines, &[letter('v')]),
    bind(Transcript, A::SelectMessages, &[letter('V')]),
    bind(Transcript, A::Copy, &[letter('y')]),
    bind_also(
        Transcript,
        A::Unfold,
        &[letter('o'), key(K::Enter)],
        &[key(K::Tab)],
    ),
    bind(Transcript, A::UnfoldAll, &[letter('a')]),
    bind_also(
        Transcript,
        A::Close,
        &[key(K::Esc), ctrl('o')],
        &[letter('q')],
    ),
    bind_also(Picker, A::Previous, &[key(K::Up)], &[ctrl('p')]),
    bind_also(Picker, A::Next, &[key(K::Down)], &[ctrl('n')]),
    bind(Picker, A::PageUp, &[key(K::PageUp)]),
    bind(Picker, A::PageDown, &[key(K::PageDown)]),
    bind(Picker, A::Resume, &[key(K::Enter)]),
    bind_also(Picker, A::Preview, &[letter(' '), ctrl('v')], &[alt('p')]),
    bind(Picker, A::Rename, &[ctrl('r')]),
    bind(Picker, A::Tag, &[ctrl('t')]),
    bind(Picker, A::Fork, &[ctrl('f')]),
    bind(Picker, A::Trash, &[ctrl('x')]),
    bind_also(Picker, A::Undo, &[alt('u')], &[ctrl('_'), ctrl('7')]),
    bind_also(Picker, A::Scope, &[key(K::Tab)], &[key(K::BackTab)]),
    bind(Picker, A::Empty, &[ctrl('e')]),
    bind(Picker, A::Close, &[key(K::Esc)]),
    bind_also(
        Where::Rewind,
        A::Previous,
        &[key(K::Up)],
        &[ctrl('p'), letter('k')],
    ),
    bind_also(
        Where::Rewind,
        A::Next,
        &[key(K::Down)],
        &[ctrl('n'), letter('j')],
    ),
    bind(Where::Rewind, A::PageUp, &[key(K::PageUp)]),
    bind(Where::Rewind, A::PageDown, &[key(K::PageDown)]),
    bind(Where::Rewind, A::RewindHere, &[key(K::Enter)]),
    bind_also(Where::Rewind, A::Close, &[key(K::Esc)], &[letter('q')]),
    bind(Hits, A::GoThere, &[key(K::Enter)]),
    bind_also(Hits, A::Previous, &[key(K::Up)], &[ctrl('p')]),
    bind_also(Hits, A::Next, &[key(K::Down)], &[ctrl('n')]),
    bind(Hits, A::ForkThere, &[ctrl('f')]),
    bind(Hits, A::Scope, &[key(K::Tab)]),
    bind(Hits, A::Close, &[key(K::Esc)]),
    bind(Sheet, A::LineUp, &[key(K::Up)]),
    bind(Sheet, A::LineDown, &[key(K::Down)]),
    bind(Sheet, A::CopyAll, &[letter('y')]),
    bind(Sheet, A::Other, &[key(K::Enter), key(K::Tab)]),
    bind_also(Sheet, A::Close, &[key(K::Esc)], &[letter('q')]),
    bind(Where::Help, A::Filter, &[letter('/')]),
    bind_also(Where::Help, A::LineUp, &[key(K::Up)], &[letter('k')]),
    bind_also(Where::Help, A::LineDown, &[key(K::Down)], &[letter('j')]),
    bind(Where::Help, A::PageUp, &[key(K::PageUp)]),
    bind_also(
        Where::Help,
        A::PageDown,
        &[key(K::PageDown)],
        &[letter(' ')],
    ),
    bind_also(
        Where::Help,
        A::Close,
        &[key(K::Esc), key(K::F(1))],
        &[letter('q')],
    ),
    bind_also(AgentRequest, A::Yes, &[letter('y')], &[letter('Y')]),
    bind_also(
        AgentRequest,
        A::No,
        &[letter('n'), key(K::Esc)],
        &[letter('N')],
    ),
    bind_also(AgentRequest, A::Always, &[letter('a')], &[letter('A')]),
    bind_also(AgentRequest, A::Instead, &[letter('i')], &[letter('I')]),
    bind(AgentRequest, A::PageUp, &[key(K::PageUp)]),
    bind(AgentRequest, A::PageDown, &[key(K::PageDown)]),
    bind(Anywhere, A::Interrupt, &[ctrl('c')]),
    bind(Anywhere, A::Leave, &[twice(ctrl('c'))]),
    bind(Anywhere, A::Redraw, &[ctrl('l')]),
    bind(Anywhere, A::Suspend, &[ctrl('z')]),
    // Some terminals send one, some the other.
    bind_also(Anywhere, A::Detach, &[ctrl('\\')], &[ctrl('4')]),
    bind(Anywhere, A::Help, &[key(K::F(1))]),
];
