use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use tertulia_core::entry::Role;
use tertulia_core::query::{Filter, Hit, HitFilter, Hits, Page, SearchQuery};
use tertulia_core::search_text::{SearchTerms, highlighted};
use tertulia_formats::json;

use super::list::damaged;
use crate::args::{FilterArgs, GlobalArgs, unshielded};
use crate::error::CommandResult;
use crate::moment::ago;
use crate::open;
use crate::show::count;
use crate::ui::{BOLD, DIM, FOUND, Ui, fit, grouped, harmless};

/// How long a search waits for the index before it searches only what is indexed.
const PATIENCE: Duration = Duration::from_millis(800);

/// Search everything that was ever said: messages, tool calls and their output, titles
#[derive(Debug, Args)]
#[command(mut_arg("since", |arg| arg.help("Only hits said after WHEN: 7d, yesterday, \"last week\", 2026-11-01")))]
#[command(mut_arg("until", |arg| arg.help("Only hits said before WHEN")))]
#[command(after_help = "Examples:\n  \
    tertulia search parser bug          both words\n  \
    tertulia search '\"off by one\"'      the phrase\n  \
    tertulia search 'index* -draft'     words that start with \"index\", without \"draft\"\n  \
    tertulia search 会话                Chinese and Japanese from one character on\n  \
    tertulia search retry --speaker demo --since \"last week\" --all")]
pub struct SearchArgs {
    /// Words, "a phrase", -without, begin*
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only hits said by this speaker
    #[arg(long, value_name = "NAME")]
    speaker: Option<String>,
    /// Only hits said in this role
    #[arg(long, value_enum)]
    role: Option<RoleArg>,
    /// Maximum number of hits
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    limit: usize,
}

/// In which role something was said.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleArg {
    User,
    Assistant,
    System,
    Tool,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Role {
        match role {
            RoleArg::User => Role::User,
            RoleArg::Assistant => Role::Assistant,
            RoleArg::System => Role::System,
            RoleArg::Tool => Role::Tool,
        }
    }
}

pub fn run(args: &SearchArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let words = SearchTerms::parse(
        &args
            .words
            .iter()
            .map(|word| unshielded(word))
            .collect::<Vec<_>>()
            .join(" "),
    )?;
    let workspace = open::reader(global, ui)?;
    let Filter { since, until, .. } = workspace.filter(&args.filter)?;
    let query = SearchQuery {
        words,
        // A session that goes on has old messages: its own time says nothing about them.
        filter: Filter {
            since: None,
            until: None,
            ..workspace.filter(&args.filter)?
        },
        said: HitFilter {
            session: None,
            speaker: args.speaker.clone(),
            role: args.role.map(Role::from),
            since,
            until,
        },
        limit: args.limit,
    };
    let progress = ui.index_progress().within(PATIENCE);
    let hits = workspace.wait(workspace.sessions.store().search(&query, &progress))?;
    if hits.pending > 0 {
        ui.warn(&format!(
            "{} messages are not indexed yet and were not searched; search again to continue",
            grouped(hits.pending)
        ));
    }
    if ui.json {
        let found: Vec<_> = hits.hits.iter().map(json::hit).collect();
        ui.document(&json!({
            "hits": found, "total": hits.total, "sessions": hits.sessions.len(),
            "elsewhere": hits.elsewhere, "pending": hits.pending, "sealed": hits.sealed,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let now = workspace.sessions.clock().now();
    for hit in &hits.hits {
        let text = lines(ui, &workspace.settings.program, hit, now);
        ui.data(&text);
    }
    ui.note(&total(&hits));
    if hits.sealed > 0 {
        ui.note(&format!(
            "Not searched, because their keys are not at hand: {}.",
            count(hits.sealed, "sealed session")
        ));
    }
    if hits.unindexed {
        ui.note("The search index cannot be written here: every search reads all sessions.");
    }
    let listing = workspace.wait(
        workspace
            .sessions
            .store()
            .list(&query.filter, &Page::first(1)),
    )?;
    if let Some(words) = damaged(&listing.damaged) {
        ui.note(&words);
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(ui: &Ui, program: &str, hit: &Hit, now: jiff::Timestamp) -> String {
    let short = hit.session.short();
    let title = ui.styled(BOLD, &fit(hit.title.as_deref().unwrap_or("(untitled)"), 60));
    let who = hit.speaker.as_ref().map_or_else(
        || "title".to_owned(),
        |speaker| speaker.display_name.clone(),
    );
    let place = ui.styled(
        DIM,
        &format!(
            "{short}:{} · {} · {}",
            hit.seq,
            harmless(&who),
            ago(hit.at, now)
        ),
    );
    let (before, after) = match ui.styled(FOUND, "\u{0}").split_once('\u{0}') {
        Some((before, after)) => (before.to_owned(), after.to_owned()),
        None => (String::new(), String::new()),
    };
    let snippet = highlighted(&hit.snippet, &before, &after);
    let commands = ui.styled(
        DIM,
        &format!(
            "{program} --resume {short}   or   {program} fork {short}:{}",
            hit.seq
        ),
    );
    format!("{title}  {place}\n  {snippet}\n  {commands}\n")
}

fn total(hits: &Hits) -> String {
    let elsewhere = match hits.elsewhere {
        0 => String::new(),
        count => format!("; {} in other projects (--all)", grouped(count)),
    };
    let found = format!(
        "{} in {}",
        count(hits.total, "hit"),
        count(hits.sessions.len() as u64, "session")
    );
    match hits.hits.len() as u64 {
        _ if hits.total == 0 => format!("Nothing found{elsewhere}."),
        shown if shown < hits.total => {
            let shown = grouped(shown);
            format!("{shown} of {found}, the newest of each session first{elsewhere}.")
        }
        _ => format!("{found}{elsewhere}."),
    }
}
