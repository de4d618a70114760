//! Models of an agent, cached: every typed key requests them.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::StoreService;
use crate::error::TuiResult;
use crate::host::Models;

/// Lifetime of a cached model list.
const TRUE_FOR: Duration = Duration::from_secs(60);

/// Cached models of the agent that was asked last.
#[derive(Default)]
pub struct ModelList {
    known: Mutex<Option<Known>>,
}

struct Known {
    agent: String,
    since: Instant,
    /// `None` if the agent failed to answer, which is cached too so that typing does not wait
    /// again.
    models: Option<Models>,
}

impl StoreService {
    /// Models of an agent. Concurrent callers wait for a single query.
    pub(super) async fn models(&self, agent: &str) -> TuiResult<Models> {
        let mut known = self.models.known.lock().await;
        let fresh = known.as_ref().filter(|known| known.agent == agent);
        if let Some(known) = fresh.filter(|known| known.since.elapsed() < TRUE_FOR) {
            return Ok(known.models.clone().unwrap_or_default());
        }
        let models = self.host.models(agent).await;
        *known = Some(Known {
            agent: agent.to_owned(),
            since: Instant::now(),
            models: models.as_ref().ok().cloned(),
        });
        models
    }
}
