//! What is seen of the state.

pub mod transcript;
