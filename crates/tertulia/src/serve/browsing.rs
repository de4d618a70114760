//! Lists and searches for clients of the server, and what a session can be made of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tertulia_core::project;
use tertulia_core::query::{Filter, HitFilter, Page, ProjectIds, Row, SearchQuery, Trash};
use tertulia_core::search_text::SearchTerms;
use tertulia_formats::json;
use tertulia_server::host::{Catalog, Found, Listed, Search};
use tertulia_server::protocol::{AgentInfo, ProjectInfo, Selection, TeamInfo};
use tertulia_store::Progress;

use crate::agents::{self, Asked};
use crate::commands::agents as who;
use crate::commands::team::files;
use crate::error::CommandResult;
use crate::open::Workspace;
use crate::project::Folders;
use crate::settings::Settings;

/// How long a search waits for the index before it answers with what is indexed.
const SEARCH_PATIENCE: Duration = Duration::from_millis(800);
/// Sessions per read, where titles are compared.
const STRIDE: usize = 500;
/// Maximum number of sessions whose titles are compared for one request.
const COMPARED: usize = 20_000;
/// Maximum number of hits that are looked through for those of one session.
const LOOKED_THROUGH: usize = 1000;

/// Returns the filter of a selection. Titles are compared afterwards.
fn filter(settings: &Settings, selection: &Selection) -> Filter {
    let ids = |id: &String| settings.folders.ids_of(id).into_iter().collect();
    Filter {
        project: selection.project.as_ref().map(ids) as Option<ProjectIds>,
        kind: selection.kind,
        team: selection.team.clone(),
        tag: selection.tag.clone(),
        auto_tags: settings.auto_tags,
        trash: match selection.trash {
            true => Trash::Only,
            false => Trash::Without,
        },
        ..Filter::default()
    }
}

/// Lists sessions, newest first.
pub fn list(workspace: &Workspace, selection: &Selection, page: Page) -> CommandResult<Listed> {
    let filter = filter(&workspace.settings, selection);
    let store = workspace.sessions.store();
    let mut listed = Listed {
        rows: Vec::new(),
        next: None,
        hidden: 0,
    };
    let mut at = Page {
        limit: match selection.title {
            Some(_) => STRIDE,
            None => page.limit,
        },
        cursor: page.cursor,
    };
    let mut compared = 0;
    loop {
        let listing = workspace.wait(store.list(&filter, &at))?;
        compared += listing.rows.len();
        listed.hidden = listing.hidden.total();
        for row in listing.rows {
            if listed.rows.len() == page.limit {
                // The page is full, and there is another session.
                listed.next = listed.rows.last().map(|row| cursor(&filter, row));
                return Ok(listed);
            }
            if selection.has_title(row.meta.title.as_deref()) {
                listed.rows.push(workspace.as_read(row)?);
            }
        }
        listed.next = listing.next.map(|cursor| cursor.to_string());
        let is_full = listed.rows.len() >= page.limit || compared >= COMPARED;
        match listing.next {
            Some(next) if !is_full => at.cursor = Some(next),
            _ => return Ok(listed),
        }
    }
}

fn cursor(filter: &Filter, row: &Row) -> String {
    let (at, id) = (filter.sort_key(&row.meta), row.meta.id);
    tertulia_core::query::Cursor { at, id }.to_string()
}

/// Returns the projects and tags of all sessions.
pub fn facets(workspace: &Workspace) -> CommandResult<(Vec<ProjectInfo>, Vec<String>)> {
    let store = workspace.sessions.store();
    let (mut projects, mut tags) = (BTreeMap::new(), BTreeSet::new());
    let mut page = Page::first(STRIDE);
    let mut looked_at = 0;
    loop {
        let listing = workspace.wait(store.list(&Filter::default(), &page))?;
        looked_at += listing.rows.len();
        for row in listing.rows.iter().filter(|row| !row.meta.is_locked()) {
            tags.extend(row.meta.tags.iter().cloned());
            if let Some(id) = &row.meta.project {
                let current = workspace.settings.folders.current_id(id);
                let id = current.unwrap_or_else(|| id.clone());
                let name = project::name(&id, row.meta.cwd.as_deref());
                projects.entry(id).or_insert(name);
            }
        }
        match listing.next {
            Some(next) if looked_at < COMPARED => page.cursor = Some(next),
            _ => break,
        }
    }
    let projects = projects.into_iter();
    let mut projects: Vec<ProjectInfo> = projects
        .map(|(id, name)| ProjectInfo { id, name })
        .collect();
    projects.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((projects, tags.into_iter().collect()))
}

/// Searches sessions.
pub fn search(workspace: &Workspace, search: &Search) -> CommandResult<Found> {
    let query = SearchQuery {
        words: SearchTerms::parse(&search.words)?,
        filter: filter(&workspace.settings, &search.selection),
        said: HitFilter {
            session: search.session,
            ..HitFilter::default()
        },
        limit: match &search.selection.title {
            None => search.limit,
            Some(_) => LOOKED_THROUGH,
        },
    };
    let progress = Progress::unseen().within(SEARCH_PATIENCE);
    let store = workspace.sessions.store();
    let mut hits = workspace.wait(store.search(&query, &progress))?;
    if search.selection.title.is_some() {
        hits.hits
            .retain(|hit| search.selection.has_title(hit.title.as_deref()));
        hits.total = hits.hits.len() as u64;
        hits.hits.truncate(search.limit);
    }
    Ok(Found {
        hits: hits.hits.iter().map(json::hit).collect(),
        total: hits.total,
        pending: hits.pending,
    })
}

/// Returns the agents and teams that a session can be made with.
pub fn catalog(settings: &Settings) -> CommandResult<Catalog> {
    let asked = Asked {
        name: None,
        model: None,
    };
    let usual = agents::choose(settings, &asked, None).ok();
    let usual = usual.map(|chosen| chosen.agent.name().to_owned());
    let agent = |state: who::AgentState| AgentInfo {
        is_default: usual.as_ref() == Some(&state.name),
        name: state.name,
        kind: state.kind,
        ready: state.is_ready,
        reason: Some(state.remark).filter(|remark| !remark.is_empty()),
        model: state.model,
    };
    let team = |known: files::Known| TeamInfo {
        name: known.name,
        path: known.file,
        members: known.members,
        reason: known.reason,
    };
    let agents = who::states_now(settings, None)?;
    Ok(Catalog {
        agents: agents.into_iter().map(agent).collect(),
        teams: files::known(settings)?.into_iter().map(team).collect(),
        folders: folders(settings),
    })
}

/// Returns the folders in which a session can begin.
fn folders(settings: &Settings) -> Vec<String> {
    // Read again: a server runs for long.
    let used = Folders::read(&settings.projects_file()).unwrap_or_default();
    let mut others: Vec<&Path> = used.used().filter(|one| *one != settings.cwd).collect();
    others.sort_unstable();
    let all = std::iter::once(&*settings.cwd).chain(others);
    // A client names a folder as text.
    all.filter_map(|folder| folder.to_str().map(str::to_owned))
        .collect()
}
