//! Drawing: each part of the screen is a function of what it shows.

pub mod input;
//! What the screen looks like: each view is a function of what it shows.

pub mod brush;
pub mod dialog;
pub mod help;
pub mod marked;
pub mod picker;
pub mod preview;
pub mod rewind;
pub mod search;
pub mod stats;
pub mod toast;
pub mod tree;
//! What is seen of the state.

pub mod transcript;
