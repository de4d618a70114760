//! The screen: every key and event is data, every screen is a function of the state.

pub mod engine;
pub mod item;
pub mod theme;
