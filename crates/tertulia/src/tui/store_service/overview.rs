//! Lists agents, models and teams.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Models, StoreService};
use crate::commands::agents as who;
use crate::commands::team::files;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::ui::table_lines;
use crate::{agents, teams};

/// Time limit for agents to report whether they are ready.
const LOOK_WITHIN: Duration = Duration::from_secs(15);
/// Time limit for an agent to list its models.
const NAME_WITHIN: Duration = Duration::from_secs(5);
/// Lifetime of a cached model list, since every typed key requests it.
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
    pub(super) fn agents(&self) -> CommandResult<Vec<String>> {
        let rows = asked(LOOK_WITHIN, who::rows(&self.workspace.settings))??;
        Ok(table_lines(who::HEADINGS, &rows))
    }

    pub(super) fn teams(&self) -> CommandResult<Vec<String>> {
        let settings = &self.workspace.settings;
        let rows = files::rows(settings)?;
        let mut lines = match rows.is_empty() {
            true => vec![files::NONE.to_owned()],
            false => table_lines(files::HEADINGS, &rows),
        };
        lines.extend(teams::passed_over(&settings.cwd));
        Ok(lines)
    }

    /// Model names of the current agent.
    pub(super) fn models(&self) -> CommandResult<Vec<String>> {
        Ok(self.known_models()?.names)
    }

    /// Models of the current agent. Concurrent callers wait for a single query.
    pub(super) fn known_models(&self) -> CommandResult<Models> {
        let Some(name) = &self.models.agent else {
            return Ok(Models::default());
        };
        let known = self.models.known.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known
            .as_ref()
            .filter(|known| known.since.elapsed() < TRUE_FOR)
        {
            return Ok(known.models.clone().unwrap_or_default());
        }
        let models = self.ask_for_models(name);
        *known = Some(Known {
            since: Instant::now(),
            models: models.as_ref().ok().cloned(),
        });
        models
    }

    fn ask_for_models(&self, name: &str) -> CommandResult<Models> {
        let settings = agents::with_registered_for(&self.workspace.settings, name)?;
        let agent = agents::named(&settings, name, None)?;
        Ok(Models {
            names: asked(NAME_WITHIN, agent.models())??,
            complete: agents::names_all_models(agent.as_ref()),
        })
    }
}

/// Runs a future of an agent with a time limit, in a runtime on its own thread: independent of the
/// caller's runtime, and safe against panics of the agent.
fn asked<T: Send>(limit: Duration, work: impl Future<Output = T> + Send) -> CommandResult<T> {
    let failed = || CommandError::new(ErrorKind::Failed, "agents cannot be asked");
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed().because(error))?;
        let answer = runtime.block_on(async { tokio::time::timeout(limit, work).await });
        // Do not wait for a pending DNS lookup.
        runtime.shutdown_background();
        answer.map_err(|_| failed().because(format!("no answer within {} s", limit.as_secs())))
    };
    std::thread::scope(|scope| {
        let asking = std::thread::Builder::new()
            .name("tertulia-asks".to_owned())
            .spawn_scoped(scope, ask)
            .map_err(|error| failed().because(error))?;
        asking.join().unwrap_or_else(|_| Err(failed()))
    })
}
