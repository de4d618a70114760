//! Replays as text: progress, plans, and where each diverged.

use tertulia_core::replay::{
    AnswerEnd, Comparison, RecordedCall, RecordedTurn, TurnComparison, TurnMatch, usage_of,
};

use tertulia_formats::stats::dollars;

use super::plan::Plan;
use super::play::PlayEnd;
use super::{Outcome, Prices, diverged};
use crate::show;
use crate::ui::{BOLD, Ui, fit, grouped, harmless};

/// Width of a prompt or title.
const SHOWN: usize = 60;
/// Width of one side of a divergence.
const SIDE: usize = 100;

/// Announces a replay.
pub fn begin(plan: &Plan, number: usize, total: usize, ui: &mut Ui) {
    let place = match total {
        1 => String::new(),
        _ => format!("[{number}/{total}] "),
    };
    ui.note(&format!("{place}Replaying {}", introduction(plan)));
    for line in plan.original.omissions() {
        ui.note(&line);
    }
}

/// Announces a turn.
pub fn begin_turn(number: usize, plan: &Plan, prompt: &str, ui: &mut Ui) {
    let total = plan.original.recording.turns.len();
    let prompt = one_line(prompt, SHOWN);
    ui.note(&format!("turn {number} of {total}: {prompt}"));
}

/// Reports the turn that has just been played.
pub fn end_turn(compared: &Comparison, ui: &mut Ui) {
    if let Some(compared) = compared.turns.first() {
        ui.note(&format!("  → {}", result(compared)));
    }
}

/// Reports that a signal ended a replay.
pub fn stopped(completed: usize, plan: &Plan, ui: &mut Ui) {
    // The terminal has echoed the interrupt key.
    if ui.has_screen() && !ui.json {
        ui.line("");
    }
    let total = plan.original.recording.turns.len();
    ui.note(&format!(
        "stopped: {completed} of {total} turns were played, and are saved"
    ));
}

/// Lists what would be played.
pub fn planned(outcomes: &[Outcome], ui: &mut Ui) {
    for (number, outcome) in outcomes.iter().enumerate() {
        let plan = &outcome.plan;
        if number > 0 {
            ui.line("");
        }
        let heading = harmless(&format!("Would replay {}", introduction(plan)));
        ui.line(&ui.styled(BOLD, &heading));
        for line in plan.original.omissions() {
            ui.line(&format!("  ({line})"));
        }
        for (number, turn) in (1..).zip(&plan.original.recording.turns) {
            ui.line(&format!("  {number}. {}", one_line(&turn.prompt, SIDE)));
            for call in &turn.calls {
                let state = match &call.result {
                    Some(result) => result.outcome.name(),
                    None => "no result recorded",
                };
                let call = harmless(&show::call_line(&call.call));
                ui.line(&format!("     → {call} ({state})"));
            }
        }
    }
}

/// Reports where the replays diverged: turn by turn for one, a table for several.
pub fn played(outcomes: &[Outcome], prices: &Prices, ui: &mut Ui) {
    if let [outcome] = outcomes {
        return single(outcome, prices, ui);
    }
    for outcome in outcomes {
        if outcome.comparison.first_divergence().is_some() {
            let label = harmless(&outcome.plan.original.label());
            ui.line(&ui.styled(BOLD, &label));
            divergence(outcome, ui);
            ui.line("");
        }
    }
    let rows: Vec<Vec<String>> = outcomes
        .iter()
        .map(|outcome| row(outcome, prices))
        .collect();
    let headings = [
        "SESSION",
        "TURNS",
        "FIRST DIVERGENCE",
        "TOKENS BEFORE",
        "TOKENS AFTER",
        "COST",
        "REPLAY",
    ];
    ui.table(&headings, &rows);
    ui.note(&format!(
        "{} of {} replays diverged",
        diverged(outcomes),
        outcomes.len()
    ));
}

fn single(outcome: &Outcome, prices: &Prices, ui: &mut Ui) {
    let turns = outcome.comparison.turns.iter();
    let turns = (1..).zip(turns.zip(&outcome.plan.original.recording.turns));
    let rows: Vec<Vec<String>> = turns
        .map(|(number, (compared, turn)): (usize, _)| {
            let similarity = compared.similarity.map(ratio);
            vec![
                number.to_string(),
                words(compared.result).to_owned(),
                similarity.unwrap_or_else(|| "-".to_owned()),
                one_line(&turn.prompt, SHOWN),
            ]
        })
        .collect();
    if !rows.is_empty() {
        ui.table(&["TURN", "RESULT", "SIMILARITY", "PROMPT"], &rows);
    }
    divergence(outcome, ui);
    ui.line(&format!(
        "Tokens: original {}; replay {}",
        tokens(&outcome.plan.original.recording.turns),
        tokens(outcome.turns())
    ));
    ui.line(&format!(
        "Cost at today's prices: {}",
        costs(outcome, prices)
    ));
    let session = outcome.played.as_ref().and_then(|played| played.session);
    if let Some(session) = session {
        let short = session.short();
        ui.advise(&format!(
            "The replay is session {short}: `tertulia show {short}` shows it"
        ));
    }
}

/// Describes the first divergence with both sides, or that there is none.
fn divergence(outcome: &Outcome, ui: &mut Ui) {
    let turns = &outcome.comparison.turns;
    let Some(at) = outcome.comparison.first_divergence() else {
        let count = u64::try_from(turns.len()).unwrap_or(u64::MAX);
        return ui.line(&format!("No divergence in {}", show::count(count, "turn")));
    };
    ui.line(&format!(
        "First divergence: turn {}, {}",
        at + 1,
        result(&turns[at])
    ));
    let original = outcome.plan.original.recording.turns.get(at);
    let (ours, theirs) = sides(turns[at].result, original, outcome.turns().get(at));
    ui.line(&format!("  original: {}", one_line(&ours, SIDE)));
    ui.line(&format!("  replay:   {}", one_line(&theirs, SIDE)));
}

/// Returns both sides of a divergence: the first tool call or the first line that differs.
fn sides(
    result: TurnMatch,
    original: Option<&RecordedTurn>,
    replay: Option<&RecordedTurn>,
) -> (String, String) {
    if let (Some(original), Some(replay)) = (original, replay) {
        match result {
            TurnMatch::OtherTools => return differing_calls(&original.calls, &replay.calls),
            TurnMatch::OtherText => return differing_lines(&original.text, &replay.text),
            TurnMatch::Same | TurnMatch::Missing | TurnMatch::Failed => {}
        }
    }
    (ending(original), ending(replay))
}

fn differing_calls(original: &[RecordedCall], replay: &[RecordedCall]) -> (String, String) {
    let count = original.len().max(replay.len());
    let same = |at: &usize| {
        let both = original.get(*at).zip(replay.get(*at));
        both.is_some_and(|(ours, theirs)| ours.is_same(theirs))
    };
    let at = (0..count).find(|at| !same(at)).unwrap_or(count);
    let shown = |calls: &[RecordedCall]| match calls.get(at) {
        Some(call) if call.is_unrecorded() => {
            format!("{} (not in the recording)", show::call_line(&call.call))
        }
        Some(call) => show::call_line(&call.call),
        None if at == 0 => "no tool call".to_owned(),
        None => "no further tool call".to_owned(),
    };
    (shown(original), shown(replay))
}

fn differing_lines(original: &str, replay: &str) -> (String, String) {
    let (mut ours, mut theirs) = (original.lines(), replay.lines());
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return (String::new(), String::new()),
            (one, other) if one != other => {
                let shown = |line: Option<&str>| line.unwrap_or("(ends before)").to_owned();
                return (shown(one), shown(other));
            }
            _ => {}
        }
    }
}

/// Describes how an answer ended.
fn ending(turn: Option<&RecordedTurn>) -> String {
    match turn.map(|turn| (&turn.end, turn)) {
        Some((AnswerEnd::Failed(message), _)) => format!("failed: {message}"),
        Some((AnswerEnd::Complete, turn)) => turn.text.clone(),
        Some((AnswerEnd::CutOff, _)) | None => "no complete answer".to_owned(),
    }
}

fn row(outcome: &Outcome, prices: &Prices) -> Vec<String> {
    let (plan, played) = (&outcome.plan, outcome.played.as_ref());
    let total = plan.original.recording.turns.len();
    let completed = played.map_or(0, |played| played.completed);
    let turns = match completed == total {
        true => total.to_string(),
        false => format!("{completed}/{total}"),
    };
    let compared = &outcome.comparison;
    let first = match (
        played.map(|played| &played.end),
        compared.first_divergence(),
    ) {
        (None, _) => "not played".to_owned(),
        (Some(_), Some(at)) => format!("turn {}: {}", at + 1, result(&compared.turns[at])),
        (Some(PlayEnd::Stopped(_)), None) => "none before it was stopped".to_owned(),
        (Some(_), None) => "none".to_owned(),
    };
    let session = played.and_then(|played| played.session);
    vec![
        plan.original.label(),
        turns,
        first,
        tokens(&plan.original.recording.turns),
        tokens(outcome.turns()),
        costs(outcome, prices),
        session.map_or_else(|| "-".to_owned(), |session| session.short()),
    ]
}

fn introduction(plan: &Plan) -> String {
    let recording = &plan.original.recording;
    let count =
        |number: usize, what: &str| show::count(u64::try_from(number).unwrap_or(u64::MAX), what);
    format!(
        "{} \"{}\" with {}: {}, {}",
        plan.original.label(),
        fit(plan.original.meta.title_or_untitled(), SHOWN),
        plan.agent_and_model(),
        count(recording.turns.len(), "prompt"),
        count(recording.calls().count(), "recorded tool call")
    )
}

fn words(result: TurnMatch) -> &'static str {
    match result {
        TurnMatch::Same => "same",
        TurnMatch::OtherTools => "other tools",
        TurnMatch::OtherText => "other text",
        TurnMatch::Missing => "missing",
        TurnMatch::Failed => "failed",
    }
}

fn result(compared: &TurnComparison) -> String {
    let similarity = compared.similarity.map(ratio);
    match (compared.result, similarity) {
        (TurnMatch::OtherText, Some(similarity)) => {
            format!("other text (similarity {similarity})")
        }
        (result, _) => words(result).to_owned(),
    }
}

/// Formats a similarity. Rounds down, so that only equal texts have 1.00.
fn ratio(similarity: f64) -> String {
    format!("{:.2}", (similarity * 100.0).floor() / 100.0)
}

/// Formats the costs of the original and of the replay.
fn costs(outcome: &Outcome, prices: &Prices) -> String {
    let shown = |turns: &[RecordedTurn]| match prices.dollars(turns) {
        Some(amount) => dollars(amount),
        None => "no price".to_owned(),
    };
    let original = shown(&outcome.plan.original.recording.turns);
    format!("{original} → {}", shown(outcome.turns()))
}

fn tokens(turns: &[RecordedTurn]) -> String {
    match usage_of(turns) {
        None => "unknown".to_owned(),
        Some(usage) => {
            let about = if usage.estimated { "~" } else { "" };
            format!(
                "{about}{} in, {about}{} out",
                grouped(usage.input),
                grouped(usage.output)
            )
        }
    }
}

/// Makes one line of a text, cut to a width.
fn one_line(text: &str, width: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    fit(&line, width)
}
