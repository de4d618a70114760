//! The TUI as a user sees it: the built program on a real pseudo-terminal, read through a terminal
//! emulator, in an empty home.

mod agents;
mod asking;
mod attached;
mod held;
mod leaving;
mod lines;
mod load;
mod looking;
mod picking;
mod questions;
mod rough;
mod sealed;
mod shape;
mod slash;
pub mod stage;
mod talking;
mod together;
mod writing;
