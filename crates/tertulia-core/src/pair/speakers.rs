//! Who speaks in a pair, as the log names them.

use super::PairRole;
use crate::entry::{Speaker, SpeakerKind};

/// Who speaks from a seat.
pub fn speaker(seat: PairRole) -> Speaker {
    Speaker {
        display_name: match seat {
            PairRole::Instructor => "Instructor".to_owned(),
            PairRole::Worker => "Worker".to_owned(),
        },
        ..Speaker::plain(seat.name(), SpeakerKind::Ai)
    }
}

/// Who says what has happened.
pub fn narrator() -> Speaker {
    Speaker::plain("tertulia", SpeakerKind::System)
}
