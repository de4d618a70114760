//! Views: each part of the screen is drawn by a function of the state it shows.

pub mod activity;
pub mod brush;
pub mod chooser;
pub mod dialog;
pub mod help;
pub mod input;
pub mod marked;
pub mod picker;
pub mod preview;
pub mod queue;
pub mod rewind;
pub mod screen;
pub mod search;
pub mod sheet;
pub mod start_card;
pub mod stats;
pub mod status;
pub mod title;
pub mod toast;
pub mod todos;
pub mod transcript;
pub mod tree;
