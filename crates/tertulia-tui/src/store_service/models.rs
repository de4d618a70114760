//! Models of the current agent, cached: every typed key requests them.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::StoreService;
use crate::error::TuiResult;
use crate::host::Models;

/// Lifetime of a cached model list.
const TRUE_FOR: Duration = Duration::from_secs(60);

/// Cached models of the current agent.
pub struct ModelList {
    agent: Option<String>,
    known: Mutex<Option<Known>>,
}

struct Known {
    since: Instant,
    /// `None` if the agent failed to answer, which is cached too so that typing does not wait
    /// again.
    models: Option<Models>,
}

impl ModelList {
    pub fn new(agent: Option<String>) -> ModelList {
        ModelList {
            agent,
            known: Mutex::new(None),
        }
    }
}

impl StoreService {
    /// Models of the current agent. Concurrent callers wait for a single query.
    pub(super) async fn models(&self) -> TuiResult<Models> {
        let Some(name) = &self.models.agent else {
            return Ok(Models::default());
        };
        let mut known = self.models.known.lock().await;
        let fresh = known.as_ref();
        if let Some(known) = fresh.filter(|known| known.since.elapsed() < TRUE_FOR) {
            return Ok(known.models.clone().unwrap_or_default());
        }
        let models = self.host.models(name).await;
        *known = Some(Known {
            since: Instant::now(),
            models: models.as_ref().ok().cloned(),
        });
        models
    }
}
