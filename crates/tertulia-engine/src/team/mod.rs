//! Several people and agents in one conversation: addressing and turn-taking. All of it is pure.
//!
//! | part | what |
//! |---|---|
//! | [`mentions`] | `@ben` at the beginning of a person's message |
//! | [`names`] | members, and resolution of names |
//! | [`queue`] | queued requests to speak, and which of them is next |
//! | [`events`] | inputs and outputs of the router, as data |
//! | [`routing`] | the state machine: messages and ends of turns in, next turn out |
//! | [`policy`] | prompts the members that the router names |
//! | [`resume`] | earlier speakers and messages of a resumed session |
//! | [`memory`] | recent messages, and those that still await a reply |
//! | [`prompt`] | the prompt of a member |
//! | [`summary`] | summary of the messages that fell out of the context |

pub mod events;
pub mod memory;
pub mod mentions;
pub mod names;
pub mod policy;
pub mod prompt;
pub mod queue;
pub mod resume;
pub mod routing;
pub mod summary;
