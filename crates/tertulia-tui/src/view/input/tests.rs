use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::completion::Asked;
use crate::history::History;

fn input() -> Input {
    let mut input = Input::new(History::new(
        ["cargo test", "explain the Build script to me\nin two lines"].map(str::to_owned),
    ));
    input.set_placeholder("Say something, or /help");
    input.set_members(["alice", "bob"].map(Candidate::new).to_vec());
    input
}

fn write(input: &mut Input, words: &str) {
    for letter in words.chars() {
        let key = match letter {
            '\n' => KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT),
            letter => KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE),
        };
        input.key(key);
    }
}

fn press(input: &mut Input, code: KeyCode, modifiers: KeyModifiers) {
    input.key(KeyEvent::new(code, modifiers));
}

/// A screen with the input at the bottom, the completion popup above it, and dots in place of the
/// transcript.
fn screen(input: &mut Input, columns: u16, rows: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    input.resize(columns, rows);
    terminal
        .draw(|frame| {
            let whole = frame.area();
            let height = input.height().min(whole.height);
            let above = Rect {
                height: whole.height - height,
                ..whole
            };
            let foot = Rect {
                y: above.bottom(),
                height,
                ..whole
            };
            let buffer = frame.buffer_mut();
            for position in above.positions() {
                buffer[position].set_symbol("·");
            }
            draw_popup(input, above, buffer, Theme::default());
            if let Some(cursor) = draw(input, foot, buffer, Theme::default()) {
                frame.set_cursor_position(cursor);
            }
        })
        .unwrap();
    terminal
}

/// The screen as text without the rows of the transcript, with the cursor position.
fn shown(input: &mut Input, columns: u16, rows: u16) -> String {
    let mut terminal = screen(input, columns, rows);
    let cursor = terminal.get_cursor_position().unwrap();
    let text = terminal.backend().to_string();
    let lines = text.lines().map(|line| {
        let line = line.split("\" Hidden by").next().unwrap();
        line.trim_matches('"').trim_end()
    });
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with('·')).collect();
    format!("{}\ncursor {},{}", lines.join("\n"), cursor.x, cursor.y)
}

#[test]
fn an_empty_input() {
    insta::assert_snapshot!(shown(&mut input(), 80, 24), @r#"
    You> Say something, or /help
    cursor 5,23
    "#);
}

#[test]
fn several_lines_with_wide_characters() {
    let mut input = input();
    write(
        &mut input,
        "Tell me: 漢字 e\u{301} 👩\u{200d}👧\nand a long line that does not fit into eighty columns, so that it is broken after a blank\n\tend\u{1b}[31m",
    );
    insta::assert_snapshot!(shown(&mut input, 80, 24), @r#"
    You> Tell me: 漢字 é 👩‍👧
         and a long line that does not fit into eighty columns, so that it is
         broken after a blank
             end�[31m
    cursor 17,23
    "#);
    insta::assert_snapshot!(shown(&mut input, 120, 40), @r#"
    You> Tell me: 漢字 é 👩‍👧
         and a long line that does not fit into eighty columns, so that it is broken after a blank
             end�[31m
    cursor 17,39
    "#);
}

#[test]
fn a_folded_paste() {
    let mut input = input();
    write(&mut input, "look at ");
    input.paste(&"line\n".repeat(1234));
    write(&mut input, " and say what is wrong");
    insta::assert_snapshot!(shown(&mut input, 80, 24), @r#"
    You> look at [pasted 1 234 lines] and say what is wrong
    cursor 55,23
    "#);
}

#[test]
fn more_than_a_third_of_the_screen() {
    let mut input = input();
    for line in 1..=20 {
        write(&mut input, &format!("line {line}\n"));
    }
    insta::assert_snapshot!(shown(&mut input, 80, 24), @r#"
    ↑13  line 14
         line 15
         line 16
         line 17
         line 18
         line 19
         line 20

    cursor 5,23
    "#);
    insta::assert_snapshot!(shown(&mut input, 120, 40), @r#"
    ↑8   line 9
         line 10
         line 11
         line 12
         line 13
         line 14
         line 15
         line 16
         line 17
         line 18
         line 19
         line 20

    cursor 5,39
    "#);
}

#[test]
fn offered_commands() {
    let mut input = input();
    write(&mut input, "/");
    press(&mut input, KeyCode::Down, KeyModifiers::NONE);
    insta::assert_snapshot!(shown(&mut input, 80, 24), @r#"
    ┌──────────────────────────────────────────────────────────────────────────────┐
    │  /help           keys and commands                                           │
    │▸ /sessions       the list of sessions                                        │
    │  /resume [REF]   resume another session                                      │
    │  /new            begin a new session                                         │
    │  /rename TITLE   give this session a title                                   │
    │  /tag +TAG -TAG  add and remove tags                                         │
    └──────────────────────────────────────────────────────────────────────── 2/30 ┘
    You> /
    cursor 6,23
    "#);
    insta::assert_snapshot!(shown(&mut input, 120, 40), @r#"
    ┌──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┐
    │  /help           keys and commands                                                                                   │
    │▸ /sessions       the list of sessions                                                                                │
    │  /resume [REF]   resume another session                                                                              │
    │  /new            begin a new session                                                                                 │
    │  /rename TITLE   give this session a title                                                                           │
    │  /tag +TAG -TAG  add and remove tags                                                                                 │
    │  /fork [N]       fork from entry N or the end, and continue there                                                    │
    │  /rewind [N]     go back to before entry N, or choose                                                                │
    │  /compact        summarise older messages for the agent                                                              │
    │  /retry          ask again for an answer that failed                                                                 │
    │  /undo           undo the last rename, tag or trash                                                                  │
    └──────────────────────────────────────────────────────────────────────────────────────────────────────────────── 2/30 ┘
    You> /
    cursor 6,39
    "#);
    insta::assert_snapshot!(shown(&mut input, 30, 4), @r#"
      /help          keys and com…
    ▸ /sessions      the list of …
      /resume [REF]  resume a 2/30
    You> /
    cursor 6,3
    "#);
}

#[test]
fn offered_sessions_cannot_steer_the_terminal() {
    let mut input = input();
    write(&mut input, "/resume b");
    let found = vec![
        Candidate::new("5f3a9c1e")
            .labelled("The build \u{1b}[31m漢字 is broken again and again and again")
            .noted("3 hours ago\u{7}"),
        Candidate::new("11aa22bb")
            .labelled("About")
            .noted("yesterday"),
    ];
    input.candidates(&Asked::Sessions("b".to_owned()), found);
    insta::assert_snapshot!(shown(&mut input, 80, 24), @r#"
    ┌──────────────────────────────────────────────────────────────────────────────┐
    │▸ The build �[31m漢字 is broken again and again and again  3 hours ago        │
    │  About                                                    yesterday          │
    └──────────────────────────────────────────────────────────────────────────────┘
    You> /resume b
    cursor 14,23
    "#);
}

#[test]
fn a_search_through_the_history() {
    let mut input = input();
    write(&mut input, "mine");
    press(&mut input, KeyCode::Char('r'), KeyModifiers::CONTROL);
    write(&mut input, "build");
    insta::assert_snapshot!(shown(&mut input, 80, 24), @r#"
    history 'build'> explain the Build script to me
                     in two lines
    cursor 29,22
    "#);
    let terminal = screen(&mut input, 80, 24);
    let buffer = terminal.backend().buffer();
    let found = theme_of(buffer, "B");
    assert!(
        found
            .add_modifier
            .contains(ratatui::style::Modifier::UNDERLINED)
    );
    write(&mut input, "x");
    insta::assert_snapshot!(shown(&mut input, 80, 24), @r#"
    history: no match for 'buildx'
    cursor 31,23
    "#);
}

fn theme_of(buffer: &Buffer, symbol: &str) -> Style {
    let cells = buffer.content.iter();
    let cell = cells.rev().find(|cell| cell.symbol() == symbol);
    cell.unwrap().style()
}

#[test]
fn no_size_is_too_small() {
    let mut input = input();
    write(&mut input, "漢字 words\nand /more");
    input.paste(&"line\n".repeat(100));
    let mut offering = self::input();
    write(&mut offering, "/");
    let mut searching = self::input();
    press(&mut searching, KeyCode::Char('r'), KeyModifiers::CONTROL);
    write(&mut searching, "ca");
    for input in [
        &mut input,
        &mut offering,
        &mut searching,
        &mut self::input(),
    ] {
        for columns in 0..30 {
            for rows in 0..8 {
                screen(input, columns, rows);
            }
        }
    }
}

#[test]
fn an_area_that_is_smaller_than_was_said_is_kept_to() {
    let mut input = input();
    write(&mut input, "a\nb\nc\nd\ne 漢字漢字漢字");
    input.resize(80, 24);
    let whole = Rect::new(0, 0, 14, 6);
    let mut buffer = Buffer::empty(whole);
    for position in whole.positions() {
        buffer[position].set_symbol("#");
    }
    let area = Rect::new(2, 2, 9, 2);
    let cursor = draw(&input, area, &mut buffer, Theme::default()).unwrap();
    assert!(area.contains(cursor));
    assert_eq!(buffer[(7, 3)].symbol(), "e", "the cursor's row is shown");
    let outside = whole.positions().filter(|place| !area.contains(*place));
    for place in outside {
        assert_eq!(buffer[place].symbol(), "#", "{place}");
    }
    let beyond = Rect::new(8, 5, 50, 50);
    draw(&input, beyond, &mut buffer, Theme::default());
    draw_popup(&input, beyond, &mut buffer, Theme::default());
}

#[test]
fn paths_use_the_width_and_lose_their_middle() {
    let paths = [
        "crates/tertulia-tui/src/picker/snapshots/session_list_80.snap",
        "crates/tertulia-tui/src/picker/snapshots/session_list_120.snap",
    ];
    let drawn = |columns: u16| {
        let candidates = paths.map(Candidate::new);
        let shown = candidates.each_ref().map(|candidate| Offer {
            candidate,
            fitting: Vec::new(),
            chosen: false,
        });
        let widest = name_columns(&shown, usize::from(columns));
        paths.map(|path| {
            let part = shown_part(path, widest);
            part.into_iter()
                .map(|(_, symbol)| symbol)
                .collect::<String>()
        })
    };
    assert_eq!(drawn(120), paths, "there is room for all of them");
    let [first, second] = drawn(50);
    assert_eq!(text::width(&first), 48);
    assert!(first.starts_with("crates/tertulia") && first.ends_with("session_list_80.snap"));
    assert_ne!(first, second);
    for columns in 0..20 {
        assert!(
            text::width(
                &shown_part("漢字/漢字/漢字", columns)
                    .iter()
                    .map(|(_, s)| *s)
                    .collect::<String>()
            ) <= columns
        );
    }
}
