//! Every question of the screen: a sentence answers none of them, and is text.

use super::questions::{earlier, may_i, undone};
use super::*;
use crate::dialog::question::Question;
use crate::dialog::subject::Subject;
use crate::effect::IfOpen;
use crate::host::Models;
use crate::session_info::Follows;

fn held() -> Play {
    let mut play = Play::new(SessionInfo {
        follows: Some(Follows {
            holder: Some("tertulia (process 7)".to_owned()),
            asks: true,
            forks: false,
        }),
        ..info(Kind::Chat)
    });
    play.opened();
    play
}

fn unlisted_model() -> Play {
    let mut play = Play::talked();
    play.keys("/model nonsense<enter>");
    play.answer(Answer::Models {
        agent: "demo".to_owned(),
        check: Some("nonsense".to_owned()),
        models: Ok(Models {
            names: vec!["demo-1".to_owned()],
            complete: true,
        }),
    });
    play
}

/// Opens every question that the screen can ask, once.
fn every_question() -> Vec<Play> {
    let mut restore = earlier();
    restore.opened();
    let mut plays = vec![may_i(), restore, held(), undone(false), unlisted_model()];
    for (place, play) in plays.iter_mut().enumerate() {
        play.wait(400);
        let asked = play.state.question().expect("a question is open");
        assert_eq!(place_of(asked.subject()), place, "{asked:?}");
    }
    plays
}

/// Place of a question in [`every_question`]. A new question does not compile without a place, where
/// it is tested like the others.
fn place_of(subject: &Subject) -> usize {
    match subject {
        Subject::Permission(_) => 0,
        Subject::Restore(_) => 1,
        Subject::Held { .. } => 2,
        Subject::Unfinished { .. } => 3,
        Subject::UnlistedModel { .. } => 4,
    }
}

/// Returns true if a question was answered or left.
fn is_answered(play: &Play) -> bool {
    play.state.question().is_none() || play.state.is_leaving()
}

#[test]
fn a_sentence_answers_no_question() {
    for place in 0..every_question().len() {
        let asked = || every_question().swap_remove(place);
        let letters = asked().state.question().map(Question::choices).unwrap();
        for letter in letters.iter().map(|choice| choice.letter) {
            let sentence = format!("{letter}et another sentence, any {letter}");
            // Letter by letter.
            let mut play = asked();
            assert_eq!(play.keys(&sentence), [""; 0], "{sentence}");
            assert_eq!(play.input(), sentence);
            assert!(!is_answered(&play), "{sentence}");
            play.sees("you are writing below");
            play.sees("needs you");
            // As a paste, also after a first letter that was typed.
            let mut play = asked();
            assert_eq!(play.paste(&sentence), [""; 0], "{sentence}");
            assert_eq!(play.input(), sentence);
            assert!(!is_answered(&play), "{sentence}");
            let mut play = asked();
            play.keys(&letter.to_string());
            play.paste(&sentence[1..]);
            assert_eq!(play.input(), sentence, "the first letter is part of it");
            assert!(!is_answered(&play), "{sentence}");
            // A letter alone chooses, and is undone.
            let mut play = asked();
            assert_eq!(play.keys(&letter.to_string()), [""; 0]);
            assert!(!is_answered(&play) && play.input().is_empty());
            let chosen = play.state.question().map(|asked| asked.chosen().letter);
            assert_eq!(chosen, Some(letter));
            play.keys("<backspace>");
            let question = play.state.question().unwrap();
            assert_eq!(question.chosen_place(), question.subject().default_choice());
        }
    }
}

#[test]
fn every_question_stands_above_the_input_and_says_that_the_user_is_needed() {
    for size in [(80, 24), (120, 40), (40, 12)] {
        for mut play in every_question() {
            let screen = play.at(size);
            let lines: Vec<&str> = screen.lines().collect();
            assert!(lines.last().unwrap().contains("needs you"), "{screen}");
            assert!(view::title::of(&play.state).starts_with("needs you"));
            let input = lines.iter().position(|line| line.contains("and Enter"));
            let label = play.state.question().unwrap().choices()[0].labels[0];
            let answers = lines.iter().position(|line| line.contains(label));
            let (input, answers) = (input.unwrap(), answers.unwrap());
            assert!(answers < input && input - answers <= 2, "{screen}");
        }
    }
}

#[test]
fn a_message_to_a_session_that_is_open_elsewhere_waits_in_the_input() {
    let mut play = held();
    play.wait(400);
    assert_eq!(play.keys("the tests fail<enter>"), [""; 0]);
    assert_eq!(play.input(), "the tests fail");
    assert_eq!(play.state.overlays.len(), 1, "it is asked once");
    play.wait(400);
    seen!("held", play);
    // The message is complete, so that a letter is for the question; a sentence still is text.
    assert_eq!(play.keys("t"), [""; 0]);
    assert_eq!(play.keys("oo"), [""; 0]);
    assert_eq!(play.input(), "the tests failtoo");
    play.keys("<tab>");
    assert_eq!(play.keys("t<enter>"), ["cancel", "leave"]);
    let taken = Next::resume_if_open(play.state.id, IfOpen::TakeOver);
    assert_eq!(play.state.next, Some(taken));
}
