//! The screen: every key and event is data, every screen is a function of the state.

pub mod engine;
pub mod entries;
pub mod item;
pub mod terminal;
pub mod theme;
pub mod completion;
pub mod history;
pub mod input;
pub mod item;
pub mod keymap;
pub mod slash;
pub mod theme;
#![allow(dead_code, reason = "the loop that shows all this is built beside it")]

pub mod choice;
pub mod columns;
pub mod dialog;
pub mod help;
pub mod item;
pub mod one_line;
pub mod picker;
pub mod press;
pub mod rewind;
pub mod search;
#[cfg(test)]
mod stage;
pub mod stats;
pub mod theme;
pub mod toast;
pub mod tree;
pub mod view;
pub mod highlight;
pub mod item;
pub mod markdown;
pub mod theme;
pub mod transcript;
pub mod view;
pub mod wrap;
