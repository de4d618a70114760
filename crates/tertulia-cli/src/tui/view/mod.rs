//! Drawing: each part of the screen is a function of what it shows.

pub mod input;
