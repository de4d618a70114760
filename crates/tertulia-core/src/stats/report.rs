//! Everything that a view of the statistics shows.

use jiff::{SignedDuration, Timestamp};

use super::{Amount, By, Figures, FileUse, Group, ToolUse, TopicUse, Unpriced};
use crate::id::SessionId;

/// Number of sessions among the longest.
const LONGEST: usize = 10;

/// Statistics of some sessions within some time.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which sessions.
    pub scope: ReportScope,
    /// Start of the time, if limited.
    pub since: Option<Timestamp>,
    /// End of the time, if limited.
    pub until: Option<Timestamp>,
    /// The time in words.
    pub span: String,
    /// Name of the time zone that days and hours are in.
    pub zone: String,
    /// Chosen grouping.
    pub by: By,
    /// Groups of the chosen grouping; empty for tools and files, which are below.
    pub rows: Vec<Group>,
    /// Sum of everything.
    pub total: Amount,
    /// Usage without a price.
    pub unpriced: Vec<Unpriced>,
    /// Groups by day.
    pub days: Vec<Group>,
    /// Groups by model.
    pub models: Vec<Group>,
    /// Groups by agent.
    pub agents: Vec<Group>,
    /// Groups by project.
    pub projects: Vec<Group>,
    /// Tools, most calls first.
    pub tools: Vec<ToolUse>,
    /// Files, most touched first.
    pub files: Vec<FileUse>,
    /// Common topics, most frequent first.
    pub topics: Vec<TopicUse>,
    /// Messages by hour of the day.
    pub hours: [u64; 24],
    /// Messages by day of the week, Monday first, and hour.
    pub heat: [[u64; 24]; 7],
    /// Sessions with the most messages.
    pub longest: Vec<LongSession>,
    /// Sessions among the counted ones that are in the trash.
    pub trashed: usize,
}

/// Which sessions a report is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportScope {
    /// Name of the project; `None` for all projects.
    pub project: Option<String>,
    /// Kind of conversation, if limited.
    pub kind: Option<&'static str>,
    /// Team, if limited.
    pub team: Option<String>,
    /// Tag, if limited.
    pub tag: Option<String>,
    /// True if only sessions in the trash count.
    pub trash: bool,
}

impl ReportScope {
    /// Describes the scope in a few words.
    pub fn words(&self) -> String {
        let mut words = match &self.project {
            Some(project) => format!("project {project}"),
            None => "all projects".to_owned(),
        };
        let limits = [
            self.kind.map(|kind| format!("{kind} sessions")),
            self.team.as_ref().map(|team| format!("team {team}")),
            self.tag.as_ref().map(|tag| format!("tag {tag}")),
            self.trash.then(|| "in the trash".to_owned()),
        ];
        for limit in limits.into_iter().flatten() {
            words.push_str(", ");
            words.push_str(&limit);
        }
        words
    }
}

/// A session with many messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongSession {
    /// The session.
    pub id: SessionId,
    /// Its title. Empty until the caller adds it.
    pub title: Option<String>,
    /// Time from its first message to its last.
    pub duration: SignedDuration,
    /// Its sum.
    pub amount: Amount,
}

impl Report {
    /// Groups the figures. The caller adds the titles of sessions.
    pub fn new(figures: &Figures, scope: ReportScope, by: By) -> Report {
        let longest = figures.longest(LONGEST).into_iter().filter_map(|group| {
            let id: SessionId = group.key?.parse().ok()?;
            let facts = figures.facts(id)?;
            let span = facts.first.zip(facts.last);
            Some(LongSession {
                id,
                title: None,
                duration: span.map_or(SignedDuration::ZERO, |(first, last)| {
                    last.duration_since(first)
                }),
                amount: group.amount,
            })
        });
        Report {
            scope,
            since: None,
            until: None,
            span: "all time".to_owned(),
            zone: String::new(),
            by,
            rows: figures.by(by),
            total: figures.total(),
            unpriced: figures.unpriced(),
            days: figures.by(By::Day),
            models: figures.by(By::Model),
            agents: figures.by(By::Agent),
            projects: figures.by(By::Project),
            tools: Vec::new(),
            files: Vec::new(),
            topics: Vec::new(),
            hours: figures.hours(),
            heat: figures.heat(),
            longest: longest.collect(),
            trashed: figures.trashed(),
        }
    }
}
