//! The screen: every key and event is data, every screen is a function of the state.

pub mod item;
pub mod theme;
