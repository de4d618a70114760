//! Styles by meaning, not by position.

use ratatui::style::{Color, Modifier, Style};

/// Available colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// Light on dark.
    #[default]
    Dark,
    /// Dark on light.
    Light,
    /// No colours: only bold, dim, underlined and reversed.
    Plain,
}

/// Styles of the TUI. Uses the sixteen terminal colours, which respect the user's colour scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Available colours.
    pub palette: Palette,
}

/// Theme for the terminal: no colours if unwanted, else as the environment says, dark by default.
pub fn chosen(has_colour: bool, env: impl Fn(&str) -> Option<String>) -> Theme {
    let light = match env("TERTULIA_THEME").as_deref() {
        Some("light") => true,
        Some("dark") => false,
        // Terminals report their colours as `15;0` or `15;default;0`.
        _ => env("COLORFGBG")
            .is_some_and(|colours| matches!(colours.rsplit(';').next(), Some("7" | "15"))),
    };
    Theme::new(match (has_colour, light) {
        (false, _) => Palette::Plain,
        (true, true) => Palette::Light,
        (true, false) => Palette::Dark,
    })
}

/// Kind of a token of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Comment.
    Comment,
    /// Keyword.
    Keyword,
    /// String.
    Text,
    /// Number or other constant.
    Constant,
    /// Function name.
    Function,
    /// Name of a type, tag or field.
    Type,
}

/// Colours of agents in the order of their first message, unless the team file sets them.
const SPEAKERS: [Color; 5] = [
    Color::Green,
    Color::Magenta,
    Color::Yellow,
    Color::Blue,
    Color::Red,
];

/// Stands for yellow on a light background.
const OCHRE: Color = Color::Indexed(94);

impl Theme {
    /// Creates a theme.
    pub fn new(palette: Palette) -> Theme {
        Theme { palette }
    }

    fn coloured(self, colour: Color) -> Style {
        match self.palette {
            Palette::Plain => Style::new(),
            // Yellow is hard to read on a light background.
            Palette::Light if colour == Color::Yellow => Style::new().fg(OCHRE),
            Palette::Dark | Palette::Light => Style::new().fg(colour),
        }
    }

    /// Normal text.
    pub fn text(self) -> Style {
        Style::new()
    }

    /// Less important text.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Emphasised text.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Name of a person.
    pub fn human(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Name of the agent with this index in order of appearance.
    pub fn speaker(self, place: usize) -> Style {
        self.coloured(SPEAKERS[place % SPEAKERS.len()])
            .add_modifier(Modifier::BOLD)
    }

    /// Name in a colour set by the team file; `None` if it is not a valid colour.
    pub fn named(self, colour: &str) -> Option<Style> {
        let colour: Color = colour.parse().ok()?;
        Some(self.coloured(colour).add_modifier(Modifier::BOLD))
    }

    /// Headings.
    pub fn heading(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Inline code.
    pub fn code(self) -> Style {
        self.coloured(Color::Yellow)
    }

    /// Links.
    pub fn link(self) -> Style {
        self.coloured(Color::Blue)
            .add_modifier(Modifier::UNDERLINED)
    }

    /// Added lines.
    pub fn added(self) -> Style {
        self.coloured(Color::Green)
    }

    /// Removed lines.
    pub fn removed(self) -> Style {
        self.coloured(Color::Red)
    }

    /// Token of code.
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

    /// Redaction marks.
    pub fn redacted(self) -> Style {
        self.coloured(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Warnings.
    pub fn warning(self) -> Style {
        self.coloured(Color::Yellow)
    }

    /// Errors.
    pub fn error(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Text that must not be overlooked, even without colours.
    pub fn loud(self) -> Style {
        self.error().add_modifier(Modifier::REVERSED)
    }

    /// Search hits.
    pub fn found(self) -> Style {
        self.coloured(Color::Yellow)
            .add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// Chosen row.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Lines and frames.
    pub fn frame(self) -> Style {
        self.dim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_light_terminal_gets_no_yellow_text() {
        let style = |palette| Theme::new(palette).warning();
        assert_eq!(style(Palette::Dark), Style::new().fg(Color::Yellow));
        assert_eq!(style(Palette::Light), Style::new().fg(OCHRE));
        assert_eq!(style(Palette::Plain), Style::new());
    }
}
