//! An instructor and a worker, folded from their log: each entry changes the [`Pair`], which knows what is to be
//! done next, so that a session that was killed anywhere goes on from its last entry.
//!
//! | part | what |
//! |---|---|
//! | [`reply`] | what the instructor's reply says: thinking, an instruction, DONE |
//! | [`budget`] | how often the worker may still be called, and `[r+5]` |
//! | [`instructions`] | what each of the two is told about its part |
//! | [`speakers`] | the two and the narrator, as speakers |
//! | [`state`] | the fold: counters, the last reply, who is next |

pub mod budget;
pub mod instructions;
pub mod reply;
pub mod speakers;
pub mod state;

pub use budget::Budget;
pub use reply::Reply;
pub use state::{Next, Pair, Todo, Wait};

/// One of the two seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairRole {
    /// Plans and reviews.
    Instructor,
    /// Does the work.
    Worker,
}

impl PairRole {
    /// Its name: the speaker's, and that of its thread.
    pub const fn name(self) -> &'static str {
        match self {
            PairRole::Instructor => "instructor",
            PairRole::Worker => "worker",
        }
    }

    /// The seat whose thread has this name.
    pub fn of_thread(thread: Option<&str>) -> Option<PairRole> {
        [PairRole::Instructor, PairRole::Worker]
            .into_iter()
            .find(|seat| thread == Some(seat.name()))
    }
}
