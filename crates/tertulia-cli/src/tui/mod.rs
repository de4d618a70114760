//! The screen: every key and event is data, every screen is a function of the state.
#![allow(dead_code, reason = "the loop does not use all of it yet")]

pub mod activity;
pub mod again;
pub mod choice;
pub mod columns;
pub mod completion;
pub mod dialog;
pub mod editor;
pub mod effect;
pub mod engine;
pub mod entries;
pub mod floor;
pub mod help;
pub mod highlight;
pub mod history;
pub mod input;
pub mod item;
pub mod keymap;
pub mod lead;
pub mod librarian;
pub mod mailbox;
pub mod markdown;
pub mod news;
pub mod one_line;
pub mod picker;
pub mod press;
pub mod queue;
pub mod rewind;
pub mod scene;
pub mod search;
pub mod sheet;
pub mod slash;
#[cfg(test)]
mod stage;
pub mod state;
pub mod stats;
pub mod status;
pub mod terminal;
pub mod theme;
pub mod toast;
pub mod todos;
pub mod transcript;
pub mod tree;
pub mod update;
pub mod view;
pub mod wrap;

pub use lead::run;
