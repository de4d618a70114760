//! Teams as a user sees them: the built program in an empty home, members that are real processes,
//! with and without a terminal.

mod bytes;
pub mod cast;
mod ending;
mod failing;
mod file;
mod hostile;
mod prompts;
mod restore;
mod screen;
mod subtle;
mod summaries;
mod talk;
mod trouble;
