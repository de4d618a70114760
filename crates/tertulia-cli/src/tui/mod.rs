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
pub mod view;
