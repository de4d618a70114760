//! Several people and agents in one talk: who is meant, and who speaks next. All of it is pure.
//!
//! | part | what |
//! |---|---|
//! | [`mentions`] | `@ben` at the beginning of a person's words |
//! | [`names`] | members, and which of them a name means |
//! | [`queue`] | who is still to speak, and who of them is next |
//! | [`events`] | what happens in a talk and what follows from it, as data |
//! | [`routing`] | the machine: what is said and done comes in, who has the floor goes out |
//! | [`memory`] | what was said last, and what somebody is still to reply to |
//! | [`prompt`] | what a member is told when it is asked to speak |

pub mod events;
pub mod memory;
pub mod mentions;
pub mod names;
pub mod prompt;
pub mod queue;
pub mod routing;
