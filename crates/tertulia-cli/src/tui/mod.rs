//! The screen: every key and event is data, every screen is a function of the state.

pub mod highlight;
pub mod item;
pub mod markdown;
pub mod theme;
pub mod transcript;
pub mod view;
pub mod wrap;
