//! Title of the terminal's window.

use crate::activity::Doing;
use crate::state::State;
use crate::text::cut;

/// Maximum width of the title of a session.
const COLUMNS: usize = 60;

/// Title of the window: the session and whether it works or needs the user.
pub fn of(state: &State) -> String {
    let title = state.meta.as_ref().and_then(|meta| meta.title.as_deref());
    let title = match title {
        Some(title) => cut(title, COLUMNS),
        None => "tertulia".to_owned(),
    };
    match &state.running {
        _ if state.question().is_some() => format!("needs you · {title}"),
        Some(running) if running.doing == Doing::Waiting => format!("needs you · {title}"),
        Some(_) => format!("working · {title}"),
        None => title,
    }
}
