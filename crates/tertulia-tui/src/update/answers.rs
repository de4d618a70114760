//! Applies answers of the store service to the state.

use tertulia_core::query::Row;

use super::overlay::before;
use super::session::notice;
use super::slash::with_model;
use super::{change, open};
use crate::dialog::failure::Failure;
use crate::effect::{Effect, IfOpen, Next, Now, TeamOverride};
use crate::error::{TuiError, TuiResult};
use crate::host::Models;
use crate::item::Tone;
use crate::sheet::{Line, Sheet, compared, plain};
use crate::state::{Layer, State, Wish};
use crate::stats::Stats;
use crate::store_service::{Answer, Request};
use crate::tree::Tree;

/// Number of models named in the warning about an unknown one.
const KNOWN_MODELS: usize = 8;

/// Applies an answer.
pub fn apply(state: &mut State, answer: Answer, now: Now) -> Vec<Effect> {
    let mut answer = answer;
    for layer in &mut state.overlays {
        answer = match layer.get_mut().accept(answer) {
            Some(answer) => answer,
            None => return Vec::new(),
        };
    }
    match answer {
        Answer::Transcript {
            session,
            wanted,
            loaded,
        } => match loaded {
            Ok(loaded) if session == state.id => {
                state.transcript.put(loaded);
            }
            Ok(_) => state.transcript.not_loaded(wanted),
            Err(refusal) => {
                state.transcript.not_loaded(wanted);
                refused(state, &refusal, now);
            }
        },
        Answer::Words(session, seq, words) if session == state.id => match words {
            Ok(words) => {
                state.wish = Some(Wish::Rewrite(words));
                let request = Request::Fork(session, Some(before(seq)));
                return vec![Effect::Ask(Box::new(request))];
            }
            Err(refusal) => fail(state, "Not rewound", &refusal),
        },
        Answer::Tree(session, family) if session == state.id => match family {
            Ok(family) => {
                if !family.complete {
                    let words = "the family is large: not all of it is shown";
                    state.toasts.push(Tone::Note, words, now.at);
                }
                open(
                    state,
                    Layer::Tree(Box::new(Tree::new(session, &family.rows))),
                );
            }
            Err(refusal) => fail(state, "No tree", &refusal),
        },
        Answer::Stats(session, figures) if session == state.id => match figures {
            Ok(figures) => open(state, Layer::Stats(Box::new(Stats::new(figures)))),
            Err(refusal) => fail(state, "No figures", &refusal),
        },
        Answer::Complete(asked, candidates) => {
            // A failed lookup must not disturb typing.
            state
                .input
                .candidates(&asked, candidates.unwrap_or_default());
        }
        Answer::Forked(forked) => match forked {
            Ok(forked) => {
                let parent = forked.row.meta.parent.as_ref();
                let is_ours = parent.is_some_and(|parent| parent.id == state.id);
                let team = state.info.team_file.clone().filter(|_| is_ours);
                return open_found(state, &forked.row, team.map(TeamOverride::new), now);
            }
            Err(refusal) => {
                state.wish = None;
                fail(state, "Not forked", &refusal);
            }
        },
        Answer::Found(named, row) => match row {
            Ok(row) => {
                state.wish = Some(Wish::Resume(None));
                return open_found(state, &row, None, now);
            }
            Err(refusal) => fail(state, &format!("Not resumed: {named}"), &refusal),
        },
        Answer::Models(Some(name), models) => return use_model(state, name, models, now),
        other => changed(state, other, now),
    }
    Vec::new()
}

/// Switches to the named model if the agent lists it or cannot list its models.
fn use_model(state: &mut State, name: String, models: TuiResult<Models>, now: Now) -> Vec<Effect> {
    let models = models.unwrap_or_default();
    if !models.complete || models.names.is_empty() || models.names.contains(&name) {
        return with_model(state, name, now);
    }
    let shown = models.names.iter().take(KNOWN_MODELS);
    let mut known: Vec<&str> = shown.map(String::as_str).collect();
    if models.names.len() > KNOWN_MODELS {
        known.push("…");
    }
    let words = format!(
        "unknown model '{name}' for {}; known: {}; /model! {name} uses it anyway",
        state.info.agent,
        known.join(", ")
    );
    notice(state, Tone::Warning, words, now);
    Vec::new()
}

/// Lines of the model list.
fn model_lines(state: &State, models: &Models) -> Vec<String> {
    let current = state.info.model.as_deref();
    let mut lines: Vec<String> = models
        .names
        .iter()
        .map(|name| match Some(name.as_str()) == current {
            true => format!("{name}  (in use)"),
            false => name.clone(),
        })
        .collect();
    let others = match (models.complete, current) {
        (true, _) if !models.names.is_empty() => None,
        (_, Some(model)) => Some(format!(
            "{} uses {model} and does not list its models",
            state.info.agent
        )),
        (_, None) => Some(format!("{} does not list its models", state.info.agent)),
    };
    lines.extend(others);
    lines.extend([String::new(), "/model NAME uses one from now on".to_owned()]);
    lines
}

/// Applies answers to requests that change or write something.
fn changed(state: &mut State, answer: Answer, now: Now) {
    match answer {
        Answer::Renamed(row) | Answer::Tagged(row) => match row {
            Ok(row) => replace(state, &row, now),
            Err(refusal) => refused(state, &refusal, now),
        },
        Answer::Trashed(session, row) => match row {
            Ok(_) => {
                for overlay in &mut state.overlays {
                    if let Layer::Picker(picker) = overlay {
                        picker.trashed(session);
                    }
                }
                let words = format!(
                    "{} is in the trash; `tertulia undo` takes it out",
                    session.short()
                );
                let words = state.invocation.complete(&words);
                state.toasts.push(Tone::Note, &words, now.at);
            }
            Err(refusal) => refused(state, &refusal, now),
        },
        Answer::Exported(exported) => match exported {
            Ok(exported) => {
                let words = format!("written: {}", exported.path.display());
                state.toasts.push(Tone::Note, &words, now.at);
                for note in &exported.notes {
                    state.toasts.push(Tone::Note, note, now.at);
                }
            }
            Err(refusal) => fail(state, "Not exported", &refusal),
        },
        Answer::Compared(session, with, lines) if session == state.id => {
            sheet(
                state,
                &format!("This session and {with}"),
                lines.map(compared),
            );
        }
        Answer::Agents(lines) => sheet(state, "Agents", lines.map(plain)),
        Answer::Models(_, Ok(models)) => {
            let title = format!("Models of {}", state.info.agent);
            let lines = plain(model_lines(state, &models));
            sheet(state, &title, Ok(lines));
        }
        Answer::Models(_, Err(refusal)) => fail(state, "No models", &refusal),
        Answer::Teams(lines) => sheet(state, "Teams", lines.map(plain)),
        Answer::Remembered(Err(refusal)) => refused(state, &refusal, now),
        // Answers that belong to a session shown earlier.
        _ => {}
    }
}

fn sheet(state: &mut State, title: &str, lines: Result<Vec<Line>, TuiError>) {
    match lines {
        Ok(lines) => open(state, Layer::Sheet(Box::new(Sheet::new(title, lines)))),
        Err(refusal) => fail(state, title, &refusal),
    }
}

fn refused(state: &mut State, refusal: &TuiError, now: Now) {
    let words = state.invocation.complete(&refusal.sentence());
    for overlay in &mut state.overlays {
        if let Layer::Picker(picker) = overlay {
            return picker.say(words);
        }
    }
    state.toasts.push(Tone::Warning, &words, now.at);
}

fn fail(state: &mut State, title: &str, refusal: &TuiError) {
    let hints = refusal.hints.iter();
    let hints = hints.map(|hint| state.invocation.complete(hint)).collect();
    let failure = Failure::new(title, &refusal.message, hints);
    open(state, Layer::Failure(Box::new(failure)));
}

/// Applies a changed title or changed tags of a session.
fn replace(state: &mut State, row: &Row, now: Now) {
    for overlay in &mut state.overlays {
        if let Layer::Picker(picker) = overlay {
            picker.replace(row);
        }
    }
    if row.meta.id != state.id {
        return;
    }
    if let Some(meta) = &mut state.meta {
        meta.title.clone_from(&row.meta.title);
        meta.titled = row.meta.titled;
        meta.tags.clone_from(&row.meta.tags);
    }
    if state.overlays.is_empty() {
        let tags = row.meta.tags.join(" #");
        let mut words = format!("\"{}\"", row.meta.title_or_untitled());
        if !tags.is_empty() {
            words.push_str(&format!(" #{tags}"));
        }
        state.toasts.push(Tone::Note, &words, now.at);
    }
}

/// Opens a session that was found or created, as `State::wish` says.
fn open_found(state: &mut State, row: &Row, team: Option<TeamOverride>, now: Now) -> Vec<Effect> {
    let id = row.meta.id;
    let (at, draft) = match state.wish.take() {
        Some(Wish::Rewrite(words)) => (None, Some(words)),
        Some(Wish::Resume(at)) => (at, None),
        None => return Vec::new(),
    };
    if id == state.id {
        state
            .toasts
            .push(Tone::Note, "that is this session", now.at);
        return Vec::new();
    }
    let next = Next::Resume {
        id,
        at,
        draft,
        model: None,
        team,
        if_open: IfOpen::Ask,
    };
    change(state, next, now)
}
