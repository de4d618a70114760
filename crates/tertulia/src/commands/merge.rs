use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tertulia_agents::Agent;
use tertulia_core::entry::{Body, Entry, Head, Kind, Message, Origin};
use tertulia_core::id::SessionId;
use tertulia_core::merge::{self, MergeError, MergeOrder, MergedEntries, Side};
use tertulia_core::query::Row;
use tertulia_core::session::{Log, SessionMeta};
use tertulia_engine::merge_summary::summarise_merge;
use tertulia_formats::{comparison, json};
use tertulia_store::{Divergence, MergeBase, NewMerge, Start};

use super::rename;
use crate::agents;
use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::runtime;
use crate::show;
use crate::signals::Signals;
use crate::ui::Ui;

/// Merge two sessions into a new one
///
/// The new session has the part that both share, stored once, and then the messages that only one of
/// them has. Both sessions stay as they are. Tool calls stay together with their results; in pairs,
/// whole tasks stay together. Only sessions of the same kind, and of the same team, can be merged: a
/// team's task is the last one that was set, a pair has the participants of A and the smaller of both
/// budgets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia merge 5f3a9c1e @                 by time\n  \
    tertulia merge 5f3a9c1e @ --order ours    first what only 5f3a9c1e has\n  \
    tertulia merge @~1 @ --dry-run            only say what would be merged\n  \
    tertulia merge @~1 @ --summarise claude   and let an agent summarise both sides\n  \
    tertulia --resume $(tertulia merge @~1 @ -q)   and continue there")]
pub struct MergeArgs {
    /// First session
    #[arg(value_name = "A")]
    ours: String,
    /// Second session
    #[arg(value_name = "B")]
    theirs: String,
    /// Order of the messages that only one session has
    #[arg(long, value_enum, default_value_t = OrderArg::Time)]
    order: OrderArg,
    /// Title of the new session
    #[arg(short = 'n', long, alias = "name", value_name = "TITLE")]
    title: Option<String>,
    /// Append a message in which this agent summarises both sides
    #[arg(long, alias = "summarize", value_name = "AGENT")]
    summarise: Option<String>,
    /// Only say what would be merged
    #[arg(long)]
    dry_run: bool,
}

/// The orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// By time
    Time,
    /// Those of A, then those of B
    Ours,
    /// Those of B, then those of A
    Theirs,
}

impl From<OrderArg> for MergeOrder {
    fn from(order: OrderArg) -> MergeOrder {
        match order {
            OrderArg::Time => MergeOrder::Time,
            OrderArg::Ours => MergeOrder::Ours,
            OrderArg::Theirs => MergeOrder::Theirs,
        }
    }
}

/// Two sessions and their own entries.
struct Merging<'a> {
    workspace: &'a Workspace,
    ours: Row,
    theirs: Row,
    both: Divergence,
    ends: [Origin; 2],
}

pub fn run(args: &MergeArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let title = args.title.as_deref().map(rename::title).transpose()?;
    let workspace = open::workspace(global, ui)?;
    let ours = workspace.unlocked(workspace.find(&args.ours)?)?;
    let theirs = workspace.unlocked(workspace.find(&args.theirs)?)?;
    merge::check(&ours.meta, &theirs.meta).map_err(not_mergeable)?;
    // An unknown agent is reported before anything is written.
    let agent = args.summarise.as_deref();
    let agent = agent.map(|name| named(&workspace, name)).transpose()?;
    let merging = Merging::read(&workspace, ours, theirs, ui)?;
    if let Some((session, words)) = merging.nothing_to_do()? {
        ui.note(&format!("Nothing to merge: {words}"));
        if args.title.is_some() || args.summarise.is_some() || args.order != OrderArg::Time {
            ui.warn(&format!(
                "--order, --title and --summarise make no second merge: `tertulia rm {}` first to merge anew",
                session.meta.id.short()
            ));
        }
        if ui.json {
            let mut document = merging.document(Some(&session), 0);
            document["reason"] = json!(words);
            ui.document(&document);
        } else {
            ui.line(&session.meta.id.to_string());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let entries = merging.entries(args.order.into());
    tell_left_out(&entries, ui);
    if args.dry_run {
        merging.preview(&entries, ui);
        return Ok(ExitCode::SUCCESS);
    }
    let messages = entries.messages;
    let meta = merging.write(title, entries)?;
    let summary = agent.map(|agent| merging.summarise(&meta, &agent));
    let row = workspace.wait(workspace.sessions.row(meta.id))?;
    if ui.json {
        let mut document = merging.document(Some(&row), messages);
        document["merged"] = json!(true);
        ui.document(&document);
    } else {
        ui.line(&meta.id.to_string());
        ui.note(&format!(
            "Merged {} and {}: {} of both. Resume: {} --resume {}",
            merging.ours.meta.id.short(),
            merging.theirs.meta.id.short(),
            show::messages(messages as u64),
            workspace.settings.program,
            meta.id.short()
        ));
    }
    match summary {
        Some(Err(error)) => Err(error.hint(format!(
            "the sessions are merged, only the summary is missing: `tertulia --resume {}`",
            meta.id.short()
        ))),
        Some(Ok(())) | None => Ok(ExitCode::SUCCESS),
    }
}

fn not_mergeable(error: MergeError) -> CommandError {
    let hint = match &error {
        MergeError::OtherKind { .. } => "`tertulia list --kind KIND` lists the sessions of a kind",
        MergeError::OtherTeam { .. } => "`tertulia list --team NAME` lists the sessions of a team",
    };
    CommandError::new(ErrorKind::Usage, error.to_string()).hint(hint)
}

fn named(workspace: &Workspace, name: &str) -> CommandResult<Arc<dyn Agent>> {
    let settings = agents::with_registered_for(&workspace.settings, name)?;
    agents::named(&settings, name, None)
}

/// Names entries that belong to a conversation and are not copied.
fn tell_left_out(entries: &MergedEntries, ui: &mut Ui) {
    for (kind, count) in &entries.left_out {
        let count = *count as u64;
        match kind.as_str() {
            "compacted" => ui.note(&format!(
                "Not copied: {}. The agents get the messages instead.",
                show::count(count, "compaction summary")
            )),
            kind => ui.warn(&format!(
                "not copied: {} of type '{kind}', from a newer version",
                show::count(count, "entry")
            )),
        }
    }
}

impl<'a> Merging<'a> {
    fn read(
        workspace: &'a Workspace,
        ours: Row,
        theirs: Row,
        ui: &mut Ui,
    ) -> CommandResult<Merging<'a>> {
        let mut both = workspace.wait(workspace.sessions.diverge(&ours.meta, &theirs.meta))?;
        let shared = both.shared;
        let ends = [
            side(workspace, &ours, &mut both.ours, shared, ui)?,
            side(workspace, &theirs, &mut both.theirs, shared, ui)?,
        ];
        Ok(Merging {
            workspace,
            ours,
            theirs,
            both,
            ends,
        })
    }

    /// Returns the session that has everything already, if there is one, and why.
    fn nothing_to_do(&self) -> CommandResult<Option<(Row, String)>> {
        let (ours, theirs) = (&self.ours, &self.theirs);
        let (own_ours, own_theirs) = (&self.both.ours.entries, &self.both.theirs.entries);
        if ours.meta.id == theirs.meta.id {
            let words = "both are the same session".to_owned();
            return Ok(Some((ours.clone(), words)));
        }
        let has_all = |all: &Row, part: &Row| {
            let (all, part) = (all.meta.id.short(), part.meta.id.short());
            format!("{all} has all messages of {part}")
        };
        if merge::contains(own_ours, own_theirs) {
            return Ok(Some((ours.clone(), has_all(ours, theirs))));
        }
        if merge::contains(own_theirs, own_ours) {
            return Ok(Some((theirs.clone(), has_all(theirs, ours))));
        }
        let sessions = &self.workspace.sessions;
        let existing = sessions.existing_merge((ours.meta.id, theirs.meta.id), &self.both);
        Ok(self.workspace.wait(existing)?.map(|row| {
            let words = format!("{} is a merge of both", row.meta.id.short());
            (row, words)
        }))
    }

    fn entries(&self, order: MergeOrder) -> MergedEntries {
        let ours = Side {
            meta: &self.ours.meta,
            own: &self.both.ours.entries,
        };
        let theirs = Side {
            meta: &self.theirs.meta,
            own: &self.both.theirs.entries,
        };
        let operation = self.workspace.sessions.clock().entry_id();
        merge::merged(ours, theirs, order, operation)
    }

    fn write(&self, title: Option<String>, entries: MergedEntries) -> CommandResult<SessionMeta> {
        let id = self.workspace.sessions.clock().session_id();
        let ours = &self.ours.meta;
        let own = self.both.ours.entries.iter();
        let own: u64 = own.map(|entry| entry.line().len() as u64 + 1).sum();
        let base = match self.both.shared {
            Head::START => MergeBase::New(start(id, ours)),
            head => MergeBase::Shared {
                head,
                bytes: ours.bytes.saturating_sub(own),
            },
        };
        let [end_ours, end_theirs] = self.ends.clone();
        let new = NewMerge {
            id,
            title: title.or_else(|| merged_title(ours)),
            base,
            ours: end_ours,
            theirs: end_theirs,
        };
        let sessions = &self.workspace.sessions;
        Ok(self.workspace.wait(sessions.merge(&new, entries))?)
    }

    /// Lets an agent summarise both sides, and appends its message.
    fn summarise(&self, meta: &SessionMeta, agent: &Arc<dyn Agent>) -> CommandResult<()> {
        crate::talk::enough_files()?;
        let runtime = runtime::get().map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the agent cannot be asked").because(error)
        })?;
        let _inside = runtime.enter();
        let mut signals = Signals::listen()?;
        let cancel = signals.cancel.clone();
        let sides = [&self.both.ours.entries[..], &self.both.theirs.entries[..]];
        let marker = uuid::Uuid::new_v4().to_string();
        let asked = async {
            let answer = summarise_merge(agent, sides, &marker, &cancel).await;
            agent.leave().await;
            answer
        };
        let answer = runtime.block_on(signals.during(asked))?;
        if let Some(signal) = signals.caught() {
            let words = "stopped before the summary";
            return Err(CommandError::new(ErrorKind::Interrupted(signal), words));
        }
        let message: Message = answer?;
        let sessions = &self.workspace.sessions;
        let appended = sessions.append(meta.id, meta.head, vec![Body::Message(message)]);
        self.workspace.wait(appended)?;
        Ok(())
    }

    fn preview(&self, entries: &MergedEntries, ui: &mut Ui) {
        if ui.json {
            let mut document = self.document(None, entries.messages);
            document["dry_run"] = json!(true);
            ui.document(&document);
            return;
        }
        let count = |log: &Log| show::messages(log.messages().count() as u64);
        ui.note(&format!(
            "Would merge {} of {} and {} of {}, after {}. Nothing was written.",
            count(&self.both.ours),
            self.ours.meta.id.short(),
            count(&self.both.theirs),
            self.theirs.meta.id.short(),
            match self.both.shared.seq.0 {
                0 => "nothing in common".to_owned(),
                entries => format!("{} in common", show::count(entries, "entry")),
            }
        ));
    }

    fn document(&self, session: Option<&Row>, messages: usize) -> Value {
        let end = |row: &Row, end: &Origin| {
            let mut object = comparison::session(&row.meta);
            object["seq"] = json!(end.seq);
            object
        };
        json!({
            "session": session.map(json::session),
            "merged": false,
            "ours": end(&self.ours, &self.ends[0]),
            "theirs": end(&self.theirs, &self.ends[1]),
            "messages": messages,
        })
    }
}

/// Completes one side: without the turn that another program is running, with an interrupted answer.
/// Returns its end.
fn side(
    workspace: &Workspace,
    row: &Row,
    log: &mut Log,
    shared: Head,
    ui: &mut Ui,
) -> CommandResult<Origin> {
    if let Some(damage) = log.damage.first() {
        let words = format!("session {} is damaged: {damage}", row.meta.id.short());
        return Err(CommandError::new(ErrorKind::Invalid, words)
            .hint("`tertulia doctor --repair` salvages what is readable; then merge"));
    }
    if let Some(border) = workspace.fork_at(row, None)? {
        log.entries.retain(|entry| entry.seq <= border);
        ui.note(&format!(
            "{} is being answered elsewhere: merged up to entry {border}.",
            row.meta.id.short()
        ));
    }
    let end = log.entries.last().map_or(shared, Entry::head);
    workspace.with_unfinished(row, log)?;
    Ok(Origin {
        id: row.meta.id,
        seq: end.seq,
        hash: end.hash,
    })
}

/// Returns the beginning of a merge of sessions that share nothing.
fn start(id: SessionId, ours: &SessionMeta) -> Start {
    Start {
        id,
        kind: ours.kind,
        title: None,
        team: ours.team.clone().filter(|_| ours.kind == Kind::Team),
        project: ours.project.clone(),
        project_ids: ours.project_ids.clone(),
        cwd: ours.cwd.clone(),
        terms: None,
    }
}

/// Returns the title of a merge without a given one.
fn merged_title(ours: &SessionMeta) -> Option<String> {
    let title = ours.title.as_deref()?;
    let plain = [" (fork)", " (merge)"]
        .iter()
        .fold(title, |title, end| title.strip_suffix(end).unwrap_or(title));
    Some(format!("{plain} (merge)"))
}
