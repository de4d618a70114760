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
    /// Bright colours without dim text, for those who see little contrast.
    Contrast,
    /// No colours: only bold, dim, underlined and reversed.
    Plain,
}

/// Styles of the TUI. Uses the sixteen terminal colours, which respect the user's colour scheme;
/// only shades need more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Available colours.
    pub palette: Palette,
    /// Whether the terminal has shades between its sixteen colours.
    has_shades: bool,
    /// The user's own colours, by role.
    own: [Option<Color>; Role::ALL.len()],
}

/// Part of the screen that has a colour of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Names of people.
    You,
    /// Headings.
    Heading,
    /// Inline code.
    Code,
    /// Links.
    Link,
    /// Added lines.
    Added,
    /// Removed lines.
    Removed,
    /// Warnings.
    Warning,
    /// Errors.
    Error,
    /// Search hits.
    Found,
}

impl Role {
    /// All roles with their names in the settings and their colours.
    pub const ALL: [(Role, &'static str, Color); 9] = [
        (Role::You, "you", Color::Cyan),
        (Role::Heading, "heading", Color::Cyan),
        (Role::Code, "code", Color::Yellow),
        (Role::Link, "link", Color::Blue),
        (Role::Added, "added", Color::Green),
        (Role::Removed, "removed", Color::Red),
        (Role::Warning, "warning", Color::Yellow),
        (Role::Error, "error", Color::Red),
        (Role::Found, "found", Color::Yellow),
    ];
}

/// Choice of a theme in the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThemeChoice {
    /// Name of the theme, one of [`NAMES`].
    pub name: Option<String>,
    /// The user's own colours, by the name of a [`Role`].
    pub colours: Vec<(String, Color)>,
}

/// Names of the themes.
pub const NAMES: [&str; 3] = ["dark", "light", "contrast"];

fn named(name: &str) -> Option<Palette> {
    match name {
        "dark" => Some(Palette::Dark),
        "light" => Some(Palette::Light),
        "contrast" => Some(Palette::Contrast),
        _ => None,
    }
}

/// Returns the colour of a name such as `cyan`, a number up to 255, or `#rrggbb`.
pub fn colour(name: &str) -> Option<Color> {
    name.parse().ok()
}

/// Theme for the terminal: no colours if unwanted, else as the environment or the settings say, dark
/// by default.
pub fn chosen(
    has_colour: bool,
    choice: &ThemeChoice,
    env: impl Fn(&str) -> Option<String>,
) -> Theme {
    let wanted = env("TERTULIA_THEME").as_deref().and_then(named);
    let wanted = wanted.or_else(|| choice.name.as_deref().and_then(named));
    // Terminals report their colours as `15;0` or `15;default;0`.
    let is_light = env("COLORFGBG")
        .is_some_and(|colours| matches!(colours.rsplit(';').next(), Some("7" | "15")));
    let mut theme = Theme::new(match (has_colour, wanted) {
        (false, _) => Palette::Plain,
        (true, Some(palette)) => palette,
        (true, None) if is_light => Palette::Light,
        (true, None) => Palette::Dark,
    });
    for (name, colour) in choice.colours.iter().filter(|_| has_colour) {
        let place = Role::ALL.iter().position(|(_, role, _)| role == name);
        if let Some(own) = place.and_then(|place| theme.own.get_mut(place)) {
            *own = Some(*colour);
        }
    }
    Theme {
        has_shades: has_shades(env),
        ..theme
    }
}

/// Returns true if the terminal says that it has more than sixteen colours.
fn has_shades(env: impl Fn(&str) -> Option<String>) -> bool {
    let says = |name: &str, words: &[&str]| {
        env(name).is_some_and(|value| words.iter().any(|word| value.contains(word)))
    };
    says("COLORTERM", &["truecolor", "24bit"])
        || says("TERM", &["256", "direct", "kitty", "ghostty"])
}

/// Variables of terminals that draw flags.
const WITH_FLAGS: [&str; 4] = [
    "KITTY_WINDOW_ID",
    "VTE_VERSION",
    "KONSOLE_VERSION",
    "WT_SESSION",
];
/// Terminals that draw flags, as `TERM_PROGRAM` names them.
const PROGRAMS_WITH_FLAGS: [&str; 7] = [
    "iTerm.app",
    "Apple_Terminal",
    "WezTerm",
    "ghostty",
    "vscode",
    "rio",
    "WarpTerminal",
];

/// Returns true in a terminal that is known to put the two parts of a flag together. A multiplexer
/// does not, and its variables may be hidden (`docker exec`, `sudo`): an unknown terminal has none.
pub fn has_flags(env: impl Fn(&str) -> Option<String>) -> bool {
    let term = env("TERM").unwrap_or_default();
    let is_set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    let is_multiplexer =
        is_set("TMUX") || is_set("STY") || term.starts_with("tmux") || term.starts_with("screen");
    let program = env("TERM_PROGRAM").unwrap_or_default();
    let is_known = WITH_FLAGS.iter().any(|name| is_set(name))
        || PROGRAMS_WITH_FLAGS.contains(&program.as_str())
        || ["kitty", "ghostty"].iter().any(|name| term.contains(name));
    is_known && !is_multiplexer
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
    /// Creates a theme for a terminal with shades.
    pub const fn new(palette: Palette) -> Theme {
        Theme {
            palette,
            has_shades: true,
            own: [None; Role::ALL.len()],
        }
    }

    /// Style of a role: the user's own colour, or that of the palette.
    fn role(self, role: Role) -> Style {
        let place = role as usize;
        match self.own.get(place).copied().flatten() {
            Some(colour) => Style::new().fg(colour),
            None => self.coloured(Role::ALL[place].2),
        }
    }

    fn coloured(self, colour: Color) -> Style {
        match self.palette {
            Palette::Plain => Style::new(),
            Palette::Contrast => Style::new().fg(bright(colour)).add_modifier(Modifier::BOLD),
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
        match self.palette {
            Palette::Contrast => Style::new(),
            _ => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// Emphasised text.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Name of a person.
    pub fn human(self) -> Style {
        self.role(Role::You).add_modifier(Modifier::BOLD)
    }

    /// Background of messages of people. Sets the text colour too, because a guess of the terminal's
    /// colours may be wrong.
    pub fn own(self) -> Style {
        let shade = |text, background| {
            let (text, background) = (Color::Indexed(text), Color::Indexed(background));
            Style::new().fg(text).bg(background)
        };
        match self.palette {
            Palette::Dark if self.has_shades => shade(253, 236),
            Palette::Light if self.has_shades => shade(235, 254),
            _ => Style::new(),
        }
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

    /// Headings of overlays.
    pub fn heading(self) -> Style {
        self.role(Role::Heading).add_modifier(Modifier::BOLD)
    }

    /// Headings in a text, from level 1: the higher, the more they stand out.
    pub fn level(self, level: usize) -> Style {
        match level {
            0 | 1 => self.heading().add_modifier(Modifier::UNDERLINED),
            2 => self.heading(),
            3 => self.strong(),
            _ => self.strong().add_modifier(Modifier::ITALIC),
        }
    }

    /// Inline code.
    pub fn code(self) -> Style {
        self.role(Role::Code)
    }

    /// Links.
    pub fn link(self) -> Style {
        self.role(Role::Link).add_modifier(Modifier::UNDERLINED)
    }

    /// Added lines.
    pub fn added(self) -> Style {
        self.role(Role::Added)
    }

    /// Removed lines.
    pub fn removed(self) -> Style {
        self.role(Role::Removed)
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
        self.role(Role::Warning)
    }

    /// Errors.
    pub fn error(self) -> Style {
        self.role(Role::Error).add_modifier(Modifier::BOLD)
    }

    /// Text that must not be overlooked, even without colours.
    pub fn loud(self) -> Style {
        self.error().add_modifier(Modifier::REVERSED)
    }

    /// Search hits.
    pub fn found(self) -> Style {
        self.role(Role::Found)
            .add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// Hits of a search in the transcript: on a background, since code and names have colours too.
    pub fn hit(self) -> Style {
        self.on_background(Color::Yellow)
            .unwrap_or_else(|| self.found())
    }

    /// The hit that was gone to.
    pub fn current_hit(self) -> Style {
        self.on_background(Color::Magenta)
            .unwrap_or(Style::new().add_modifier(Modifier::REVERSED))
            .add_modifier(Modifier::BOLD)
    }

    fn on_background(self, colour: Color) -> Option<Style> {
        let ink = match self.palette {
            Palette::Plain => return None,
            Palette::Dark | Palette::Contrast => Color::Black,
            Palette::Light if colour == Color::Yellow => Color::Black,
            Palette::Light => Color::White,
        };
        Some(Style::new().fg(ink).bg(colour))
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

/// The bright one of two shades of a colour.
fn bright(colour: Color) -> Color {
    match colour {
        Color::Red => Color::LightRed,
        Color::Green => Color::LightGreen,
        Color::Yellow => Color::LightYellow,
        // Blue is dark on most terminals even when it is bright.
        Color::Blue | Color::Cyan => Color::LightCyan,
        Color::Magenta => Color::LightMagenta,
        colour => colour,
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

    #[test]
    fn only_a_known_terminal_draws_flags() {
        let draws = |variables: &[(&str, &str)]| {
            has_flags(|name| {
                let mut variables = variables.iter();
                let found = variables.find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(draws(&[
            ("TERM_PROGRAM", "iTerm.app"),
            ("TERM", "xterm-256color")
        ]));
        assert!(draws(&[("TERM", "xterm-kitty")]) && draws(&[("VTE_VERSION", "7600")]));
        // A multiplexer may lie between, whether it tells or not.
        assert!(!draws(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/s,1,0")]));
        assert!(!draws(&[
            ("VTE_VERSION", "7600"),
            ("TERM", "tmux-256color")
        ]));
        assert!(!draws(&[("TERM", "xterm-256color")]) && !draws(&[]));
    }

    #[test]
    fn shades_need_more_than_sixteen_colours() {
        let check = |variable: &str, value: &str, expected: bool| {
            let env = |name: &str| (name == variable).then(|| value.to_owned());
            let choice = ThemeChoice::default();
            let has_shade = chosen(true, &choice, env).own() != Style::new();
            assert_eq!(has_shade, expected, "{variable}={value}");
            assert_eq!(chosen(false, &choice, env).own(), Style::new());
        };
        check("TERM", "xterm-256color", true);
        check("COLORTERM", "truecolor", true);
        check("TERM", "xterm", false);
        check("TERM", "linux", false);
    }

    #[test]
    fn roles_are_in_the_order_of_their_places() {
        for (place, (role, ..)) in Role::ALL.into_iter().enumerate() {
            assert_eq!(role as usize, place, "{role:?}");
        }
    }

    #[test]
    fn the_settings_choose_a_theme_and_colours_and_the_environment_counts_more() {
        let choice = ThemeChoice {
            name: Some("contrast".to_owned()),
            colours: vec![("link".to_owned(), Color::Rgb(1, 2, 3))],
        };
        let theme = chosen(true, &choice, |_| None);
        assert_eq!(theme.palette, Palette::Contrast);
        assert_eq!(theme.dim(), Style::new());
        assert_eq!(theme.warning().fg, Some(Color::LightYellow));
        assert_eq!(theme.link().fg, Some(Color::Rgb(1, 2, 3)));
        let light = |name: &str| (name == "TERTULIA_THEME").then(|| "light".to_owned());
        assert_eq!(chosen(true, &choice, light).palette, Palette::Light);
        let plain = chosen(false, &choice, light);
        assert_eq!((plain.palette, plain.link().fg), (Palette::Plain, None));
    }
}
