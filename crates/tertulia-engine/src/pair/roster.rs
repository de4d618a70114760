//! The participants of a pair.

use std::sync::Arc;

use super::{Budget, PairRole};
use crate::notice::Notice;
use crate::policy::Maker;
use crate::setup::ToolAccess;
use tertulia_agents::Agent;
use tertulia_core::entry::{Body, Budgeted, Paired};

/// The instructor or the worker.
#[derive(Clone)]
pub struct PairAgent {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// Creates the same agent with another model.
    pub with_model: Maker,
    /// Tool access.
    pub access: ToolAccess,
    /// Number of tokens above which its context is compacted.
    pub compact_at: Option<u64>,
}

impl std::fmt::Debug for PairAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairAgent")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

/// The participants of a pair conversation.
#[derive(Debug)]
pub struct PairRoster {
    /// The instructor.
    pub instructor: PairAgent,
    /// The worker.
    pub worker: PairAgent,
    /// Both, as recorded in the log.
    pub paired: Paired,
    /// New budget of worker calls; `None` for the recorded or default one.
    pub budget: Option<Budget>,
}

impl PairRoster {
    /// Returns the entries that a session of the pair begins with.
    pub fn opening(&self) -> Vec<Body> {
        let budget = self.budget.unwrap_or_default();
        vec![
            Body::Paired(self.paired.clone()),
            Body::Budgeted(Budgeted { budget }),
        ]
    }
}

/// Returns notices if one of the two had another model before.
pub fn other_models(known: &Paired, now: &Paired) -> Vec<Notice> {
    let both = [
        (PairRole::Instructor, &known.instructor, &now.instructor),
        (PairRole::Worker, &known.worker, &now.worker),
    ];
    let notices = both.into_iter().filter_map(|(role, known, now)| {
        let member = Some(format!("the {}", role.name()));
        Notice::other_model(member, known.model.as_deref(), now.model.as_deref())
    });
    notices.collect()
}
