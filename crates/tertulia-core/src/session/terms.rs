//! The terms of a session, which are the same for every frontend.

use super::SessionMeta;
use crate::entry::{Kind, Terms};

impl SessionMeta {
    /// Returns the terms in force at the end of the log.
    pub fn terms(&self) -> Terms {
        let pair = self.pair.as_deref();
        let agent = match self.kind {
            Kind::Chat => self.last_agent().map(str::to_owned),
            Kind::Team | Kind::Pair => None,
        };
        Terms {
            approve: self.approve,
            model: self.pinned_model.clone().filter(|_| agent.is_some()),
            agent,
            instructor: pair.map(|pair| pair.instructor.clone()),
            worker: pair.map(|pair| pair.worker.clone()),
            cwd: pair
                .map(|pair| pair.work_dir.clone())
                .filter(|folder| !folder.is_empty())
                .or_else(|| self.cwd.clone()),
            project: self.project.clone(),
            project_ids: self.project_ids.clone(),
            seat: self.seat.clone(),
        }
    }

    /// Takes over the terms that an entry sets.
    pub(super) fn agree(&mut self, terms: &Terms) {
        if terms.approve.is_some() {
            self.approve = terms.approve;
        }
        if terms.agent.is_some() {
            self.answered_by.clone_from(&terms.agent);
            self.pinned_model.clone_from(&terms.model);
        }
        if let Some(pair) = &mut self.pair {
            if let Some(instructor) = &terms.instructor {
                pair.instructor = instructor.clone();
            }
            if let Some(worker) = &terms.worker {
                pair.worker = worker.clone();
            }
        }
        if terms.cwd.is_some() {
            self.cwd.clone_from(&terms.cwd);
            if let (Some(pair), Some(cwd)) = (&mut self.pair, &terms.cwd) {
                pair.work_dir.clone_from(cwd);
            }
        }
        if terms.project.is_some() {
            self.project.clone_from(&terms.project);
            self.project_ids.clone_from(&terms.project_ids);
        }
        if let Some(seat) = &terms.seat {
            self.seat = Some(seat.clone()).filter(|seat| !seat.is_empty());
        }
    }
}
