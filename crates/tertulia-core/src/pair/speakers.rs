//! Speakers of a pair session.

use super::PairRole;
use crate::entry::{Speaker, SpeakerKind};

/// Returns the speaker for a role.
pub fn speaker(seat: PairRole) -> Speaker {
    Speaker {
        display_name: match seat {
            PairRole::Instructor => "Instructor".to_owned(),
            PairRole::Worker => "Worker".to_owned(),
        },
        ..Speaker::plain(seat.name(), SpeakerKind::Ai)
    }
}

/// Returns the speaker for messages of tertulia itself.
pub fn narrator() -> Speaker {
    Speaker::plain("tertulia", SpeakerKind::System)
}
