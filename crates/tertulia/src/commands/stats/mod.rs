mod bars;
mod line;
mod plain;
mod view;

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tertulia_core::id::SessionId;
use tertulia_core::price::PriceTable;
use tertulia_core::query::{Filter, Lookup, Page, Trash};
use tertulia_core::seal::with_hidden_ids;
use tertulia_core::stats::{By, Figures, Report, ReportScope, TopicUse, topics};
use tertulia_formats::stats as formats;
use tertulia_store::{CaughtUp, Extent, Ledger, Progress, StoreResult};

use crate::args::{GlobalArgs, KindArg};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::{dated, moment};
use crate::open::{self, Workspace};
use crate::ui::{Ui, grouped};

use super::export;

/// How long to wait for another process that brings the ledger up to date.
const PATIENCE: Duration = Duration::from_secs(3);
/// Number of newest sessions whose titles and tags are read for common topics.
const TOPIC_SESSIONS: usize = 10_000;
/// Sessions per page of a list.
const TOPICS_AT_ONCE: usize = 1_000;

/// Show messages, tokens and cost
///
/// Counts every usage event once, also if forks, imports and merges share it. Times are local, weeks
/// begin on Monday. Costs are the providers' list prices at the time of each answer, or those of
/// `[prices."MODEL"]` in the settings (input, output, cache_read, cache_written in US dollars per
/// million tokens, since a date); models without a price are named. Sessions in the trash count, too.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:\n  \
    tertulia stats                        this project at a glance\n  \
    tertulia stats --all --since 30d      the last 30 days everywhere\n  \
    tertulia stats --by model --json      for scripts\n  \
    tertulia stats --by month --csv       for a spreadsheet\n  \
    tertulia stats --all --html -o usage.html\n  \
    tertulia stats --all --line           today and this week, for a shell prompt")]
pub struct StatsArgs {
    /// Sessions of all projects, not only of this one
    #[arg(short, long)]
    all: bool,
    /// Only sessions of this kind
    #[arg(long, value_enum)]
    kind: Option<KindArg>,
    /// Only sessions of this team
    #[arg(long, value_name = "NAME")]
    team: Option<String>,
    /// Only sessions with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only sessions in the trash
    #[arg(long)]
    trash: bool,
    /// Count from then on: 24h, 30d, 4w, or a date
    #[arg(long, value_name = "WHEN", conflicts_with = "line")]
    since: Option<String>,
    /// Count what was before then: 24h, 30d, 4w, or a date
    #[arg(long, value_name = "WHEN", conflicts_with = "line")]
    until: Option<String>,
    /// Group by this [default: day]
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "line")]
    by: Option<ByArg>,
    /// Write one table as CSV
    #[arg(long, conflicts_with_all = ["html", "line"])]
    csv: bool,
    /// Write a page with plots
    #[arg(long, conflicts_with = "line")]
    html: bool,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "line")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// One short line, fast enough for a shell prompt; it ends in … if not all sessions are counted yet
    #[arg(long)]
    line: bool,
}

/// What to group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    Day,
    Week,
    Month,
    Hour,
    Model,
    Agent,
    Project,
    Team,
    Session,
    Tool,
    File,
}

impl From<ByArg> for By {
    fn from(by: ByArg) -> By {
        match by {
            ByArg::Day => By::Day,
            ByArg::Week => By::Week,
            ByArg::Month => By::Month,
            ByArg::Hour => By::Hour,
            ByArg::Model => By::Model,
            ByArg::Agent => By::Agent,
            ByArg::Project => By::Project,
            ByArg::Team => By::Team,
            ByArg::Session => By::Session,
            ByArg::Tool => By::Tool,
            ByArg::File => By::File,
        }
    }
}

pub fn run(args: &StatsArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let has_format = args.csv || args.html || ui.json;
    if ui.json && (args.csv || args.html) {
        let words = "choose one of --json, --csv and --html";
        return Err(CommandError::new(ErrorKind::Usage, words));
    }
    if args.output.is_some() && !has_format {
        let words = "--output needs --json, --csv or --html";
        return Err(CommandError::new(ErrorKind::Usage, words));
    }
    let workspace = open::reader(global, ui)?;
    let filter = filter(args, &workspace)?;
    if args.line {
        return line::run(&workspace, &filter, ui);
    }
    let ledger = caught_up(&workspace, ui)?;
    let report = report(args, &workspace, &ledger, filter, ui)?;
    let content = match () {
        () if args.csv => formats::csv(&report),
        () if args.html => formats::html(&report),
        () if ui.json => {
            let text = serde_json::to_string_pretty(&formats::json(&report));
            format!("{}\n", text.unwrap_or_default())
        }
        () if ui.has_screen() => {
            let look = view::Look::of(ui);
            let root = workspace.settings.project.root.display().to_string();
            view::screen(&report, args.by.is_some(), &look, &root)
        }
        () => plain::text(&report),
    };
    match &args.output {
        None => ui.data(&content),
        Some(file) => {
            export::write(file, content.as_bytes(), args.force)?;
            if ui.json {
                let file = file.display().to_string();
                ui.document(&json!({ "file": file, "bytes": content.len() }));
            } else {
                ui.note(&format!(
                    "Wrote {} ({} bytes)",
                    file.display(),
                    content.len()
                ));
            }
        }
    }
    if !has_format {
        notes(args, &workspace, &ledger, &report, ui)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the statistics of all projects as a document, as `stats --all --json` writes it.
pub fn document(
    workspace: &Workspace,
    since: Option<String>,
    by: Option<&str>,
) -> CommandResult<Value> {
    let by = by.map(|by| {
        ByArg::from_str(by, false).map_err(|_| {
            let words = format!("statistics cannot be grouped by '{by}'");
            CommandError::new(ErrorKind::Usage, words)
        })
    });
    let args = StatsArgs {
        all: true,
        since,
        by: by.transpose()?,
        ..StatsArgs::default()
    };
    let mut ui = Ui::holding();
    let filter = filter(&args, workspace)?;
    let ledger = caught_up(workspace, &mut ui)?;
    let report = report(&args, workspace, &ledger, filter, &ui)?;
    Ok(formats::json(&report))
}

/// Returns the filter that the flags describe. Its times are those of messages.
fn filter(args: &StatsArgs, workspace: &Workspace) -> CommandResult<Filter> {
    let now = workspace.sessions.clock().now();
    let time = |text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| moment(text, now)).transpose()
    };
    let (since, until) = (time(&args.since)?, time(&args.until)?);
    if since
        .zip(until)
        .is_some_and(|(since, until)| since >= until)
    {
        let words = "--since must be before --until";
        return Err(CommandError::new(ErrorKind::Usage, words));
    }
    Ok(Filter {
        // Sealed sessions show only a hash of their project.
        project: (!args.all).then(|| with_hidden_ids(&workspace.settings.project.ids)),
        kind: args.kind.map(Into::into),
        team: args.team.clone(),
        tag: args.tag.clone(),
        since,
        until,
        trash: match args.trash {
            true => Trash::Only,
            // What was spent stays spent.
            false => Trash::With,
        },
        ..Filter::default()
    })
}

/// Opens the ledger and brings it up to date; in memory if its file cannot be used.
fn caught_up(workspace: &Workspace, ui: &mut Ui) -> CommandResult<Ledger> {
    let store = workspace.sessions.stored();
    let progress = ui.progress();
    let on_disk =
        Ledger::of(store, PATIENCE).and_then(|ledger| follow(workspace, ledger, &progress));
    let (ledger, done) = match on_disk {
        Ok(done) => done,
        Err(error) => {
            ui.detail(&format!("{error}; counting in memory"));
            follow(workspace, Ledger::in_memory()?, &progress)?
        }
    };
    for (id, reason) in &done.failed {
        ui.warn(&format!(
            "not counted: session {} cannot be read: {reason}; run `tertulia doctor`",
            id.short()
        ));
    }
    Ok(ledger)
}

fn follow(
    workspace: &Workspace,
    mut ledger: Ledger,
    progress: &Progress,
) -> StoreResult<(Ledger, CaughtUp)> {
    let store = workspace.sessions.stored();
    let done = workspace.wait(ledger.catch_up(store, Extent::All, progress))?;
    Ok((ledger, done))
}

/// Brings the ledger up to date from nothing, for `store rebuild`.
pub fn rebuild_ledger(workspace: &Workspace, progress: &Progress) -> StoreResult<()> {
    let mut ledger = Ledger::of(workspace.sessions.stored(), PATIENCE)?;
    ledger.clear()?;
    follow(workspace, ledger, progress).map(drop)
}

fn report(
    args: &StatsArgs,
    workspace: &Workspace,
    ledger: &Ledger,
    filter: Filter,
    ui: &Ui,
) -> CommandResult<Report> {
    let zone = TimeZone::system();
    let prices = PriceTable::with(workspace.settings.prices.clone());
    let (cells, sessions) = (ledger.cells(&filter)?, ledger.sessions(&filter)?);
    let mut figures = Figures::new(cells, sessions, &prices, &zone);
    let folders = &workspace.settings.folders;
    figures.rename_projects(|id| folders.current_id(id));
    let scope = ReportScope {
        project: (!args.all).then(|| workspace.settings.project.to_string()),
        kind: filter.kind.map(tertulia_core::entry::Kind::name),
        team: filter.team.clone(),
        tag: filter.tag.clone(),
        trash: args.trash,
    };
    let by = args.by.map_or(By::Day, By::from);
    let mut report = Report::new(&figures, scope, by);
    report.tools = ledger.tools(&filter)?;
    report.files = ledger.files(&filter)?;
    report.topics = common_topics(args, workspace, ledger, &filter)?;
    report.since = filter.since;
    report.until = filter.until;
    report.span = span(filter.since, filter.until);
    report.zone = zone.iana_name().unwrap_or("the local zone").to_owned();
    add_titles(&mut report, workspace, ui)?;
    Ok(report)
}

/// Returns the topics of the newest sessions, from their titles and tags: the ledger has none.
fn common_topics(
    args: &StatsArgs,
    workspace: &Workspace,
    ledger: &Ledger,
    filter: &Filter,
) -> CommandResult<Vec<TopicUse>> {
    let counted = ledger.sessions(filter)?;
    let counted: HashSet<SessionId> = counted.iter().map(|facts| facts.id).collect();
    let filter = Filter {
        project: (!args.all).then(|| workspace.settings.project.ids.clone()),
        // The ledger knows what was said in the time.
        since: None,
        until: None,
        ..filter.clone()
    };
    let mut metas = Vec::new();
    let mut page = Page::first(TOPICS_AT_ONCE);
    while metas.len() < TOPIC_SESSIONS {
        let listing = workspace.wait(workspace.sessions.store().list(&filter, &page))?;
        let rows = listing.rows.into_iter().map(|row| row.meta);
        metas.extend(rows.filter(|meta| counted.contains(&meta.id)));
        match listing.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    let metas = metas.iter();
    Ok(topics(
        metas.map(|meta| (meta.title.as_deref(), meta.tags.as_slice())),
    ))
}

fn span(since: Option<Timestamp>, until: Option<Timestamp>) -> String {
    match (since, until) {
        (None, None) => "all time".to_owned(),
        (Some(since), None) => format!("since {}", dated(since)),
        (None, Some(until)) => format!("before {}", dated(until)),
        (Some(since), Some(until)) => format!("{} to {}", dated(since), dated(until)),
    }
}

/// Adds the titles of the sessions that are shown. The ledger has none, so that a title lives in one
/// place only.
fn add_titles(report: &mut Report, workspace: &Workspace, ui: &Ui) -> CommandResult<()> {
    let title = |id| {
        let rows = workspace.wait(workspace.sessions.stored().find(&Lookup::Id(id), 1));
        rows.map(|rows| rows.into_iter().next().and_then(|row| row.meta.title))
    };
    for session in &mut report.longest {
        session.title = title(session.id)?;
    }
    let is_listed = report.by == By::Session;
    let shown = match ui.has_screen() && !ui.json {
        true => view::MOST_ROWS,
        false => usize::MAX,
    };
    for group in report.rows.iter_mut().filter(|_| is_listed).take(shown) {
        if let Some(Ok(id)) = group.key.as_deref().map(str::parse) {
            group.title = title(id)?;
        }
    }
    Ok(())
}

/// Says what the figures leave out, and what can be done about it.
fn notes(
    args: &StatsArgs,
    workspace: &Workspace,
    ledger: &Ledger,
    report: &Report,
    ui: &mut Ui,
) -> CommandResult<()> {
    let everywhere = Filter {
        trash: Trash::With,
        ..Filter::default()
    };
    if !args.all {
        let here = Filter {
            project: Some(workspace.settings.project.ids.clone()),
            ..everywhere.clone()
        };
        let all = ledger.sessions(&everywhere)?.len();
        let elsewhere = all.saturating_sub(ledger.sessions(&here)?.len());
        if elsewhere > 0 {
            ui.note(&format!(
                "Not counted: {elsewhere} in other projects (--all)"
            ));
        }
    }
    if let Some(unpriced) = report
        .unpriced
        .iter()
        .find_map(|unpriced| unpriced.model.as_ref())
    {
        ui.note(&format!(
            "To set a price: [prices.\"{unpriced}\"] in your settings"
        ));
    }
    let unread = ledger.unread(&everywhere)?;
    if unread > 0 {
        ui.warn(&format!(
            "{} entries cannot be read and are not counted; run `tertulia doctor`",
            grouped(unread)
        ));
    }
    Ok(())
}
