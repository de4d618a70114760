//! Chooses the agents of a pair: as requested, as recorded, or the first one that is ready.

use std::sync::Arc;

use tertulia_agents::tool::Owner;
use tertulia_agents::{Agent, AgentError, FailureKind, ToolSide};
use tertulia_core::entry::{Paired, PairedAgent};
use tertulia_engine::pair::roster::{PairAgent, PairRoster};
use tertulia_engine::pair::{Budget, Pair, PairRole, words};
use tertulia_engine::policy::Maker;
use tertulia_engine::setup::{RunOptions, ToolAccess};

use tertulia_engine::spec::PairSpec;

use crate::agents::{self, Asked, Recorded};
use crate::error::CommandResult;
use crate::settings::Settings;

/// Both agents of a pair, and their introduction.
pub struct Seated {
    pub roster: PairRoster,
    pub introduction: String,
    pub unasked: bool,
}

/// Chooses both agents. `settings` are those of the work folder.
pub fn roster(
    settings: &Settings,
    spec: &PairSpec,
    known: Option<&Pair>,
    terms: &RunOptions,
) -> CommandResult<Seated> {
    let thinking = !spec.no_thinking && known.is_none_or(|known| known.thinking);
    let instructor = Wanted {
        seat: PairRole::Instructor,
        name: spec.instructor.as_deref(),
        model: spec.instructor_model.as_deref(),
        known: known.map(|known| &known.instructor),
        thinking,
    };
    let worker = Wanted {
        seat: PairRole::Worker,
        name: spec.worker.as_deref(),
        model: spec.worker_model.as_deref(),
        known: known.map(|known| &known.worker),
        thinking: true,
    };
    let instructor = instructor.find(settings, terms)?;
    let worker = worker.find(settings, terms)?;
    let paired = Paired {
        instructor: instructor.paired,
        worker: worker.paired,
        thinking,
        work_dir: settings.cwd.display().to_string(),
        system: words::INSTRUCTOR.to_owned(),
        round: None,
    };
    let introduction = format!(
        "Instructor: {}; worker: {}; work folder: {}. Choose others with --instructor and --worker.",
        instructor.introduction, worker.introduction, paired.work_dir
    );
    Ok(Seated {
        introduction,
        unasked: instructor.unasked || worker.unasked,
        roster: PairRoster {
            instructor: instructor.place,
            worker: worker.place,
            paired,
            budget: spec.max_rounds.map(Budget::Calls),
        },
    })
}

/// The requested agent for a role.
struct Wanted<'a> {
    seat: PairRole,
    name: Option<&'a str>,
    model: Option<&'a str>,
    known: Option<&'a PairedAgent>,
    thinking: bool,
}

struct Found {
    place: PairAgent,
    paired: PairedAgent,
    introduction: String,
    unasked: bool,
}

impl Wanted<'_> {
    fn find(&self, settings: &Settings, terms: &RunOptions) -> CommandResult<Found> {
        let recorded = self
            .known
            .map(|known| known.agent.as_str())
            .filter(|name| !name.is_empty());
        let asked = Asked {
            name: self.name,
            model: self.model,
        };
        let recorded = recorded.map(|name| Recorded { name, model: None });
        let chosen = agents::choose(settings, &asked, recorded)?;
        let name = chosen.agent.name().to_owned();
        // An agent that answered before keeps its model.
        let before = self.known.filter(|known| known.agent == name);
        let model = self
            .model
            .or_else(|| before.and_then(|known| known.model.as_deref()));
        let mut settings = agents::with_registered_for(settings, &name)?;
        if !self.thinking {
            let mut described = agents::described(&settings, &name);
            described.thinking = Some("false".to_owned());
            settings.agents.insert(name.clone(), described);
        }
        let agent = agents::named(&settings, &name, model)?;
        let introduction = match agent.model() {
            Some(model) => format!("{name} ({model})"),
            None => name.clone(),
        };
        let paired = PairedAgent {
            agent: name.clone(),
            model: agent.model().map(str::to_owned),
        };
        let access = self.access(agent.as_ref(), terms);
        let with_model: Maker = Arc::new(move |model: &str| {
            agents::named(&settings, &name, Some(model))
                .map_err(|error| AgentError::new(FailureKind::Unavailable, error.to_string()))
        });
        Ok(Found {
            place: PairAgent {
                agent,
                with_model,
                access,
                compact_at: chosen.compact_at,
            },
            paired,
            introduction: format!("{introduction}, {}", chosen.reason),
            unasked: chosen.unasked,
        })
    }

    fn access(&self, agent: &dyn Agent, terms: &RunOptions) -> ToolAccess {
        let owner = match self.seat {
            PairRole::Instructor => Owner::Instructor,
            PairRole::Worker => Owner::Worker,
        };
        // This program does not supervise an instructor's own tools, so the policy `all` counts as
        // `low` for them.
        let own_tools = self.seat == PairRole::Instructor && agent.tools() == ToolSide::Its;
        let rules = match own_tools {
            true => terms.rules.at_most_low(),
            false => terms.rules.clone(),
        };
        ToolAccess {
            tools: terms.tools.clone().map(|tools| tools.owned_by(owner)),
            rules,
        }
    }
}
