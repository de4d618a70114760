//! Applies answers of the store service to the state.

use tertulia_core::query::Row;

use super::overlay::before;
use super::reading::not_found;
use super::{change, open, switch};
use crate::dialog::failure::Failure;
use crate::effect::{Effect, IfOpen, Next, Now, TeamOverride};
use crate::error::TuiError;
use crate::host::Undone;
use crate::item::Tone;
use crate::picker::Picker;
use crate::sheet::{Line, Sheet, compared, plain};
use crate::state::{Layer, State, Wish};
use crate::stats::Stats;
use crate::store_service::{Answer, Request};
use crate::transcript::Did;
use crate::tree::Tree;

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
        Answer::Scanned(ticket, scanned) => {
            if let Err(refusal) = &scanned {
                refused(state, refusal, now);
            }
            if let Did::NotFound(words) = state.transcript.scanned(ticket, scanned.ok()) {
                not_found(state, &words, now);
            }
        }
        Answer::Words(session, seq, words) if session == state.id => match words {
            Ok(words) => {
                state.wish = Some(Wish::Rewrite(words));
                let request = Request::Fork(session, Some(before(seq)));
                return vec![Effect::Ask(Box::new(request))];
            }
            Err(refusal) => fail(state, "Not rewound", &refusal),
        },
        answer @ (Answer::Tree(..) | Answer::Stats(..) | Answer::Bill(..)) => {
            read(state, answer, now);
        }
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
        Answer::Agents(Some(name), rows) => return switch::looked_at(state, name, rows, now),
        Answer::AgentChecked(name, rows) => switch::checked_agent(state, &name, rows, now),
        Answer::Models {
            check: Some(name),
            models,
            ..
        } => return switch::checked(state, name, models, now),
        other => changed(state, other, now),
    }
    Vec::new()
}

/// Applies answers that were read from the log of this session.
fn read(state: &mut State, answer: Answer, now: Now) {
    match answer {
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
        // A session whose past cannot be counted shows no cost.
        Answer::Bill(session, Ok(earlier)) if session == state.id => {
            state.bill.add_earlier(earlier);
        }
        // They belong to a session shown earlier.
        _ => {}
    }
}

/// Applies answers to requests that change or write something.
fn changed(state: &mut State, answer: Answer, now: Now) {
    match answer {
        Answer::Renamed(row) | Answer::Tagged(row) => match row {
            Ok(row) => replace(state, &row, now),
            Err(refusal) => refused(state, &refusal, now),
        },
        Answer::Trashed(session, row) => match row {
            Ok(row) => {
                let title = row.meta.title_or_untitled();
                let words = format!("\"{title}\" moved to trash");
                match picker(state) {
                    Some(picker) => {
                        picker.trashed(session);
                        picker.say(format!("{words} · Alt+U undo"));
                    }
                    None => {
                        let words = format!("{words} · /undo");
                        state.toasts.push(Tone::Note, &words, now.at);
                    }
                }
            }
            Err(refusal) => refused(state, &refusal, now),
        },
        Answer::Undone(undone) => match undone {
            Ok(undone) => took_back(state, &undone, now),
            Err(refusal) => refused(state, &refusal, now),
        },
        Answer::Exported(exported) => match exported {
            Ok(exported) => {
                let mut words = vec![format!("written: {}", exported.path.display())];
                words.extend(exported.notes);
                state.toasts.push(Tone::Note, &words.join("; "), now.at);
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
        Answer::Teams(lines) => sheet(state, "Teams", lines.map(plain)),
        Answer::Remembered(Err(refusal)) => refused(state, &refusal, now),
        // Answers that belong to a session shown earlier.
        _ => {}
    }
}

/// The open session list.
fn picker(state: &mut State) -> Option<&mut Picker> {
    let mut layers = state.overlays.iter_mut();
    layers.find_map(|layer| match layer {
        Layer::Picker(picker) => Some(picker.as_mut()),
        _ => None,
    })
}

/// Shows what an undo took back.
fn took_back(state: &mut State, undone: &[Undone], now: Now) {
    let words: Vec<&str> = undone.iter().map(|undone| undone.words.as_str()).collect();
    let words = match words.as_slice() {
        [first, rest @ ..] if rest.len() > 1 => format!("{first} (and {} more)", rest.len()),
        words => words.join("; "),
    };
    for undone in undone {
        update_meta(state, &undone.row);
    }
    let first = undone.first().map(|undone| undone.row.meta.id);
    match picker(state) {
        Some(picker) => {
            picker.read_again(first, now.at);
            picker.say(words);
        }
        None => state.toasts.push(Tone::Note, &words, now.at),
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
    match picker(state) {
        Some(picker) => picker.say(words),
        None => state.toasts.push(Tone::Warning, &words, now.at),
    }
}

fn fail(state: &mut State, title: &str, refusal: &TuiError) {
    let hints = refusal.hints.iter();
    let hints = hints.map(|hint| state.invocation.complete(hint)).collect();
    let failure = Failure::new(title, &refusal.message, hints);
    open(state, Layer::Failure(Box::new(failure)));
}

/// Applies a changed title or changed tags of a session.
fn replace(state: &mut State, row: &Row, now: Now) {
    if let Some(picker) = picker(state) {
        picker.replace(row);
    }
    let before = state.meta.as_ref().map(|meta| meta.title.clone());
    if !update_meta(state, row) || !state.overlays.is_empty() {
        return;
    }
    let title = row.meta.title_or_untitled();
    let words = match before {
        Some(before) if before == row.meta.title && row.meta.tags.is_empty() => {
            "no tags".to_owned()
        }
        Some(before) if before == row.meta.title => format!("tags: #{}", row.meta.tags.join(" #")),
        _ => format!("renamed to \"{title}\""),
    };
    state.toasts.push(Tone::Note, &words, now.at);
}

/// Takes over a changed title and changed tags, if they are those of this session.
fn update_meta(state: &mut State, row: &Row) -> bool {
    let meta = state.meta.as_mut().filter(|_| row.meta.id == state.id);
    let Some(meta) = meta else {
        return false;
    };
    meta.title.clone_from(&row.meta.title);
    meta.titled = row.meta.titled;
    meta.tags.clone_from(&row.meta.tags);
    true
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
        team,
        if_open: IfOpen::Ask,
    };
    change(state, next, now)
}
