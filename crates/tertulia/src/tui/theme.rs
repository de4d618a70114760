//! How the screen is coloured: by what a thing is, never by where it stands.

use ratatui::style::{Color, Modifier, Style};

/// Which colours there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// Light on dark.
    #[default]
    Dark,
    /// Dark on light.
    Light,
    /// None: only bold, dim, underlined and reversed.
    Plain,
}

/// The colours of the screen. The sixteen of the terminal, so that they fit what people have chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Which colours there are.
    pub palette: Palette,
}

/// The colours that fit the terminal: none if none are wanted, else as it says, or as most are.
pub fn chosen(has_colour: bool, env: impl Fn(&str) -> Option<String>) -> Theme {
    let light = match env("TERTULIA_THEME").as_deref() {
        Some("light") => true,
        Some("dark") => false,
        // Terminals that tell which colours they have say it as `15;0`, or `15;default;0`.
        _ => env("COLORFGBG")
            .is_some_and(|colours| matches!(colours.rsplit(';').next(), Some("7" | "15"))),
    };
    Theme::new(match (has_colour, light) {
        (false, _) => Palette::Plain,
        (true, true) => Palette::Light,
        (true, false) => Palette::Dark,
    })
}

/// What a part of code is in its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// For people.
    Comment,
    /// A word of the language.
    Keyword,
    /// Text in quotes.
    Text,
    /// A number or another value.
    Constant,
    /// The name of something that does something.
    Function,
    /// The name of a type, a tag, a field.
    Type,
}

/// Speakers get these in the order in which they first speak, unless their team says otherwise.
const SPEAKERS: [Color; 5] = [
    Color::Green,
    Color::Magenta,
    Color::Yellow,
    Color::Blue,
    Color::Red,
];

impl Theme {
    /// A theme.
    pub fn new(palette: Palette) -> Theme {
        Theme { palette }
    }

    fn coloured(self, colour: Color) -> Style {
        match self.palette {
            Palette::Plain => Style::new(),
            Palette::Dark | Palette::Light => Style::new().fg(colour),
        }
    }

    /// Ordinary words.
    pub fn text(self) -> Style {
        Style::new()
    }

    /// What matters less.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What matters more.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// A person's name.
    pub fn human(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The name of the speaker who spoke so many others after the first.
    pub fn speaker(self, place: usize) -> Style {
        self.coloured(SPEAKERS[place % SPEAKERS.len()])
            .add_modifier(Modifier::BOLD)
    }

    /// A name in the colour that a team's file gives it, if that is one.
    pub fn named(self, colour: &str) -> Option<Style> {
        let colour: Color = colour.parse().ok()?;
        Some(self.coloured(colour).add_modifier(Modifier::BOLD))
    }

    /// Headings.
    pub fn heading(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Code between words.
    pub fn code(self) -> Style {
        self.coloured(Color::Yellow)
    }

    /// Links.
    pub fn link(self) -> Style {
        self.coloured(Color::Blue)
            .add_modifier(Modifier::UNDERLINED)
    }

    /// What a change adds.
    pub fn added(self) -> Style {
        self.coloured(Color::Green)
    }

    /// What a change takes away.
    pub fn removed(self) -> Style {
        self.coloured(Color::Red)
    }

    /// A part of code, by what it is in its language.
    pub fn token(self, token: Token) -> Style {
        match token {
            Token::Comment => self.dim(),
            Token::Keyword => self.coloured(Color::Magenta),
            Token::Text => self.coloured(Color::Green),
            Token::Constant => self.coloured(Color::Cyan),
            Token::Function => self.coloured(Color::Blue),
            Token::Type => self.coloured(Color::Yellow),
        }
    }

    /// Where a secret stood.
    pub fn redacted(self) -> Style {
        self.coloured(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// What a person should look at.
    pub fn warning(self) -> Style {
        self.coloured(Color::Yellow)
    }

    /// What went wrong.
    pub fn error(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What must not be overlooked, without colours either.
    pub fn loud(self) -> Style {
        self.error().add_modifier(Modifier::REVERSED)
    }

    /// What was found.
    pub fn found(self) -> Style {
        self.coloured(Color::Yellow)
            .add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// What is chosen.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Lines and frames.
    pub fn frame(self) -> Style {
        self.dim()
    }
}
