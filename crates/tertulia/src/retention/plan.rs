//! Which sessions go to the trash, and which are removed from it for good.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use tertulia_core::id::SessionId;
use tertulia_core::query::{DamagedSession, Filter, Page, Row, Trash};

use crate::error::CommandResult;
use crate::open::Workspace;
use crate::settings::Retention;

/// Tag of sessions that are never pruned.
const PINNED: &str = "pinned";

/// Rules that select the sessions to prune.
pub struct Rules {
    pub retention: Retention,
    /// Number of newest sessions that stay, however old they are.
    pub keep: usize,
    /// Sessions that were moved to the trash before, and when. Those that are out of it again, and
    /// have no message since, are left alone.
    pub spared: BTreeMap<SessionId, Timestamp>,
}

/// What pruning would do.
#[derive(Default)]
pub struct Plan {
    /// Sessions to move to the trash.
    pub trash: Vec<Row>,
    /// Sessions in the trash to remove for good.
    pub purge: Vec<Row>,
    /// Sessions left alone because a running program has them open.
    pub open: Vec<Row>,
    /// Sessions left alone because they are pinned.
    pub pinned: Vec<Row>,
    /// Sessions left alone because the user took them out of the trash.
    pub restored: Vec<Row>,
    /// All sessions in the trash.
    pub in_trash: Vec<SessionId>,
}

/// Sessions that a plan was carried out for.
#[derive(Default)]
pub struct Done {
    pub trashed: Vec<SessionId>,
    pub purged: Vec<SessionId>,
}

impl Rules {
    /// Returns true if a session is to be pruned, given its position among the newest, that among the
    /// newest of its team if it has one, and the time since its last message.
    fn reach(&self, place: usize, in_team: Option<usize>, silence: SignedDuration) -> bool {
        let Retention {
            max_age,
            max_count,
            max_count_per_team,
            min_age,
            ..
        } = &self.retention;
        let over = max_age.is_some_and(|limit| silence > limit)
            || max_count.is_some_and(|limit| place >= limit)
            || (max_count_per_team.zip(in_team)).is_some_and(|(limit, place)| place >= limit);
        over && place >= self.keep && silence >= *min_age
    }

    /// Returns true if the session was taken out of the trash, and no message followed.
    fn spare(&self, row: &Row) -> bool {
        let moved = self.spared.get(&row.meta.id);
        moved.is_some_and(|moved| row.meta.updated_at <= *moved)
    }

    /// Returns the filter of sessions that the rules may reach.
    fn candidates(&self, now: Timestamp) -> Filter {
        let counts = self.retention.counts() || self.keep > 0;
        let oldest = self.retention.max_age.filter(|_| !counts);
        Filter {
            until: oldest.and_then(|limit| now.checked_sub(limit).ok()),
            ..Filter::default()
        }
    }
}

/// Applies the rules to the current sessions.
pub fn plan(rules: &Rules, workspace: &Workspace) -> CommandResult<Plan> {
    let now = workspace.sessions.clock().now();
    let mut plan = Plan::default();
    if rules.retention.is_on() {
        let mut place = 0;
        let mut of_teams: BTreeMap<String, usize> = BTreeMap::new();
        for row in sound(workspace, &rules.candidates(now))? {
            let team = row.meta.team.clone();
            let in_team = team.map(|team| of_teams.entry(team).or_default());
            let silence = now.duration_since(row.meta.updated_at);
            let reached = rules.reach(place, in_team.as_deref().copied(), silence);
            // Pinned sessions do not count towards the limits.
            let counted = usize::from(!is_pinned(&row));
            place += counted;
            if let Some(in_team) = in_team {
                *in_team += counted;
            }
            if reached {
                let spared = rules.spare(&row);
                let left = left_alone(&row).or(spared.then_some(Left::Restored));
                plan.put(left, row, |plan| &mut plan.trash);
            }
        }
    }
    let trash = Filter {
        trash: Trash::Only,
        ..Filter::default()
    };
    for row in sound(workspace, &trash)? {
        plan.in_trash.push(row.meta.id);
        let since = row.meta.trashed_at;
        let silence = since.map(|since| now.duration_since(since));
        if silence.is_some_and(|silence| silence > rules.retention.trash) {
            let left = left_alone(&row);
            plan.put(left, row, |plan| &mut plan.purge);
        }
    }
    Ok(plan)
}

/// Why a session is left alone.
enum Left {
    Open,
    Pinned,
    Restored,
}

fn left_alone(row: &Row) -> Option<Left> {
    let pinned = is_pinned(row).then_some(Left::Pinned);
    row.open.then_some(Left::Open).or(pinned)
}

fn is_pinned(row: &Row) -> bool {
    row.meta
        .tags
        .iter()
        .any(|tag| tag.eq_ignore_ascii_case(PINNED))
}

impl Plan {
    /// Returns true if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.trash.is_empty() && self.purge.is_empty()
    }

    fn put(&mut self, left: Option<Left>, row: Row, list: fn(&mut Plan) -> &mut Vec<Row>) {
        match left {
            None => list(self).push(row),
            Some(Left::Open) => self.open.push(row),
            Some(Left::Pinned) => self.pinned.push(row),
            Some(Left::Restored) => self.restored.push(row),
        }
    }

    /// Carries out the plan for the sessions that have not changed since it was made, and adds them
    /// to `done`.
    pub fn carry_out(&self, workspace: &Workspace, done: &mut Done) -> CommandResult<()> {
        let operation = workspace.sessions.clock().entry_id();
        let unchanged = |row: &Row| {
            let now = workspace.wait(workspace.sessions.row(row.meta.id));
            now.is_ok_and(|now| {
                !now.open
                    && now.meta.updated_at == row.meta.updated_at
                    && now.meta.trashed_at == row.meta.trashed_at
                    && now.meta.tags == row.meta.tags
            })
        };
        for row in self.trash.iter().filter(|row| unchanged(row)) {
            workspace.wait(workspace.sessions.trash(row.meta.id, operation))?;
            done.trashed.push(row.meta.id);
        }
        for row in self.purge.iter().filter(|row| unchanged(row)) {
            workspace.wait(workspace.sessions.store().purge(row.meta.id))?;
            done.purged.push(row.meta.id);
        }
        Ok(())
    }
}

/// Returns all rows that match the filter.
pub fn everything(workspace: &Workspace, filter: &Filter) -> CommandResult<Vec<Row>> {
    Ok(with_damaged(workspace, filter)?.0)
}

/// Returns all rows that match the filter, except damaged sessions: those are for `doctor`, not for
/// the trash.
fn sound(workspace: &Workspace, filter: &Filter) -> CommandResult<Vec<Row>> {
    let (mut rows, damaged) = with_damaged(workspace, filter)?;
    rows.retain(|row| {
        let is_it = |damaged: &DamagedSession| damaged.id == Some(row.meta.id);
        !damaged.iter().any(is_it)
    });
    Ok(rows)
}

/// Returns all rows that match the filter, and the damaged sessions of the store.
fn with_damaged(
    workspace: &Workspace,
    filter: &Filter,
) -> CommandResult<(Vec<Row>, Vec<DamagedSession>)> {
    let mut rows = Vec::new();
    let mut damaged = Vec::new();
    let mut page = Page::first(1000);
    loop {
        let listing = workspace.wait(workspace.sessions.store().list(filter, &page))?;
        rows.extend(listing.rows);
        for session in listing.damaged {
            if !damaged.contains(&session) {
                damaged.push(session);
            }
        }
        match listing.next {
            Some(next) => page.cursor = Some(next),
            None => return Ok((rows, damaged)),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn rules_reach_the_old_and_the_many() {
        let day = SignedDuration::from_hours(24);
        let check = |max_age: Option<i32>, max_count, keep, place, silence: i32, expected| {
            let rules = Rules {
                retention: Retention {
                    max_age: max_age.map(|days| day * days),
                    max_count,
                    max_count_per_team: None,
                    min_age: day,
                    trash: day,
                    compress_after: None,
                },
                keep,
                spared: BTreeMap::new(),
            };
            assert_eq!(
                rules.reach(place, None, day * silence),
                expected,
                "{max_age:?} {max_count:?} {keep} {place} {silence}"
            );
        };
        check(Some(30), None, 0, 5, 31, true);
        check(Some(30), None, 0, 5, 29, false);
        check(Some(30), None, 6, 5, 31, false);
        check(None, Some(5), 0, 5, 2, true);
        check(None, Some(5), 0, 4, 2, false);
        // However many there are: sessions with messages from today stay.
        check(None, Some(0), 0, 9, 0, false);
    }

    #[test]
    fn each_team_has_a_limit_of_its_own() {
        let day = SignedDuration::from_hours(24);
        let rules = Rules {
            retention: Retention {
                max_count_per_team: Some(2),
                ..Retention::default()
            },
            keep: 0,
            spared: BTreeMap::new(),
        };
        assert!(rules.retention.is_on());
        // Sessions without a team have no such limit.
        assert!(!rules.reach(9, None, day * 2));
        assert!(!rules.reach(9, Some(1), day * 2));
        assert!(rules.reach(9, Some(2), day * 2));
        assert!(!rules.reach(9, Some(2), SignedDuration::ZERO));
    }
}
