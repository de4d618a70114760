//! State of a pair session (instructor and worker), folded from its log: each entry updates the
//! [`Pair`], which determines the next step, so that a session that was killed at any point resumes
//! from its last entry.
//!
//! | part | contents |
//! |---|---|
//! | [`reply`] | parsing of the instructor's reply: thinking, an instruction, DONE |
//! | [`budget`] | remaining worker calls, and `[r+5]` |
//! | [`instructions`] | system prompts |
//! | [`speakers`] | speakers of a pair session |
//! | [`state`] | the fold: counters, the last reply, the next step |

pub mod budget;
pub mod instructions;
pub mod reply;
pub mod speakers;
pub mod state;

pub use budget::Budget;
pub use reply::Reply;
pub use state::{Next, Pair, Todo, Wait};

/// Role of an agent in a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PairRole {
    /// Plans and reviews.
    Instructor,
    /// Does the work.
    Worker,
}

impl PairRole {
    /// Returns the name, used for the speaker and for the thread.
    pub const fn name(self) -> &'static str {
        match self {
            PairRole::Instructor => "instructor",
            PairRole::Worker => "worker",
        }
    }

    /// Returns the role whose thread has this name.
    pub fn of_thread(thread: Option<&str>) -> Option<PairRole> {
        [PairRole::Instructor, PairRole::Worker]
            .into_iter()
            .find(|seat| thread == Some(seat.name()))
    }
}
