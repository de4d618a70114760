//! How a talk goes: pure machines that turn events into effects, and the runner that carries the
//! effects out.
//!
//! | part | what |
//! |---|---|
//! | [`chat`] | one human, one agent: what follows from what, as data |
//! | [`context`] | what an agent is given of a talk: summary, as much as there is room for, calls with results |
//! | [`frontend`] | what a talk shows, and whom it asks |
//! | [`duet`] | an instructor and a worker at work: carries out what their machine decides, one answer at a time |
//! | [`pair`] | an instructor and a worker: what a reply says, the budget, who is next |
//! | [`log_writer`] | writes a talk's entries, keeps what could not be saved, steps aside into a fork |
//! | [`run`] | carries the effects out: the only room where an agent meets a store |
//! | [`table`] | a team at one table: carries out what its routing machine decides, one answer at a time |
//! | [`withdrawn`] | words that were stopped before an answer: found in a log, marked for agents |
//! | [`team`] | several people and agents in one talk: markers, names, the queue, who speaks next |

pub mod chat;
pub mod context;
pub mod conversation;
pub mod duet;
pub mod error;
pub mod event;
pub mod frontend;
pub mod live;
pub mod log_writer;
pub mod notice;
pub mod pair;
pub mod run;
pub mod setup;
pub mod spec;
pub mod table;
pub mod task;
pub mod team;
pub mod tokens;
pub mod withdrawn;
