//! Builds the roster of a team from its file: the members, and the system prompt of each agent.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use tertulia_agents::{AgentError, FailureKind};
use tertulia_core::entry::human;
use tertulia_core::team::markers;
use tertulia_core::team::{Member, MemberKind, TeamFile};
use tertulia_engine::spec::TeamSpec;
use tertulia_engine::team::events::SenderError;
use tertulia_engine::team::names::{self, Nature};
use tertulia_engine::team::policy::{TeamAgent, TeamRoster};
use tertulia_engine::team::prompt::Layout;
use tertulia_engine::team::routing::Router;

use crate::agents;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::Settings;
use crate::ui::Ui;

/// Largest part of an instruction file that is read, since it is sent with every turn.
const INSTRUCTIONS: u64 = 256 * 1024;

/// Resolves the members of a team to agents and people. Shows warnings about them. An agent whose
/// system prompt has the project's instructions does not get the files in `loaded` again.
pub fn roster(
    settings: &Settings,
    file: &Path,
    team: &TeamFile,
    loaded: &[PathBuf],
    ui: &mut Ui,
) -> CommandResult<TeamRoster> {
    let registry = settings.registry.read()?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let found = agents::for_team(settings, &registry, team, folder)?;
    for warning in &found.warnings {
        ui.warn(warning);
    }
    let mut reader = Reader {
        settings,
        roots: [settings.cwd.as_path(), folder]
            .map(|root| root.canonicalize().unwrap_or_else(|_| root.to_owned())),
        ui,
    };
    let shared = team.instruction_file.as_deref().map(|name| {
        let places = [settings.cwd.join(name), folder.join(name)];
        reader.read(&places, Wanted::Asked)
    });
    let shared = shared.flatten();
    let mut agents = BTreeMap::new();
    for agent in found.members {
        let Some(member) = team
            .members
            .iter()
            .find(|member| member.name == agent.member)
        else {
            continue;
        };
        let built = agent.agent.as_ref().ok();
        let has_loaded = built.is_some_and(|agent| agent.system_texts().is_some());
        let is_new = |found: &Found| !has_loaded || !loaded.contains(&found.path);
        let own = reader.own_instructions(member).filter(is_new);
        let texts = [
            Some(member.system_instruction.text()),
            own.map(|found| found.text),
            shared.clone().filter(is_new).map(|found| found.text),
            Some(about(team, member)),
        ];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        let texts: Vec<&str> = texts.iter().map(|text| text.trim()).collect();
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let agent_type = member.agent_type.as_deref().unwrap_or_default();
        let agent = TeamAgent {
            layout: Layout::of(agent_type, &agent.kind),
            system: texts.join("\n\n"),
            agent: agent
                .agent
                .map_err(|reason| AgentError::new(FailureKind::Unavailable, reason)),
        };
        agents.insert(member.name.clone(), agent);
    }
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Ok(TeamRoster {
        team: team.id().to_owned(),
        file: Some(file.display().to_string()),
        members: members(team),
        agents,
        max_rounds: team.max_rounds.unwrap_or(0),
        window: team.conversation.context_window_size as usize,
        max_bytes: team.conversation.max_bytes as usize,
        summarise: settings.team_summary,
    })
}

fn members(team: &TeamFile) -> Vec<names::Member> {
    team.members.iter().map(seated).collect()
}

fn seated(member: &Member) -> names::Member {
    let is_human = member.kind == MemberKind::Human;
    names::Member {
        id: member.id().to_owned(),
        name: member.name.clone(),
        display_name: member.display_name.clone(),
        nature: if is_human { Nature::Human } else { Nature::Ai },
        order: member.order,
        // The instructions of a person may name default addressees for messages without markers.
        usual: if is_human {
            markers::parse(&member.system_instruction.text()).next
        } else {
            Vec::new()
        },
    }
}

/// Describes the team to a member. Markers are written as code, where they have no effect.
fn about(team: &TeamFile, member: &Member) -> String {
    let others = team
        .members
        .iter()
        .filter(|other| other.name != member.name);
    let others: Vec<String> = others
        .map(|other| {
            let (name, kind) = match other.kind {
                MemberKind::Ai => (other.display_name.as_str(), ""),
                // "You" is the member that reads this.
                MemberKind::Human if other.display_name == human().display_name => {
                    ("the user", ", a person")
                }
                MemberKind::Human => (other.display_name.as_str(), ", a person"),
            };
            format!("- {name} (`{}`, {}{kind})", other.name, other.shown_role())
        })
        .collect();
    format!(
        "You are {} (`{}`, {}) in the team {}. With you are:\n{}\n\
         To give somebody the floor, write `[NEXT: name]` in your answer; several names are set apart by commas. \
         Without it the floor goes back to a person.",
        member.display_name,
        member.name,
        member.shown_role(),
        team.shown_name(),
        others.join("\n")
    )
}

/// Whether an instruction file was named, or is the default one and may be missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Asked,
    Usual,
}

/// Instructions, and the resolved path of their file.
#[derive(Clone)]
struct Found {
    path: PathBuf,
    text: String,
}

struct Reader<'a> {
    settings: &'a Settings,
    /// Only instruction files below these folders are sent to agents, since the team file that
    /// names them may come from another author.
    roots: [PathBuf; 2],
    ui: &'a mut Ui,
}

impl Reader<'_> {
    fn own_instructions(&mut self, member: &Member) -> Option<Found> {
        let folder = self.settings.cwd.join(&member.base_dir);
        let wanted = match member.instruction_file {
            Some(_) => Wanted::Asked,
            None => Wanted::Usual,
        };
        self.read(&[folder.join(member.instruction_file_or_default())], wanted)
    }

    /// Reads the first of these files that exists. Warns about a named file that is missing.
    fn read(&mut self, places: &[PathBuf], wanted: Wanted) -> Option<Found> {
        let Some(file) = places.iter().find(|place| place.is_file()) else {
            if let Some(file) = places.first().filter(|_| wanted == Wanted::Asked) {
                let words = format!("the instructions in {} are not there", named(file));
                self.ui.warn(&words);
            }
            return None;
        };
        let resolved = file.canonicalize().unwrap_or_else(|_| file.clone());
        if !self.roots.iter().any(|root| resolved.starts_with(root)) {
            self.ui.warn(&format!(
                "the instructions in {} are left out: the file is neither below this folder nor below the team file's",
                named(file)
            ));
            return None;
        }
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&resolved)
            .and_then(|open| open.take(INSTRUCTIONS + 1).read_to_end(&mut bytes));
        if let Err(error) = read {
            self.ui.warn(&format!(
                "the instructions in {} cannot be read: {error}",
                named(file)
            ));
            return None;
        }
        let mut text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if error.utf8_error().error_len().is_none() => {
                // The limit cut a character in two.
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
            Err(_) => {
                self.ui.warn(&format!(
                    "the instructions in {} are not UTF-8, and are left out",
                    named(file)
                ));
                return None;
            }
        };
        let limit = usize::try_from(INSTRUCTIONS).unwrap_or(usize::MAX);
        if text.len() > limit {
            self.ui.warn(&format!(
                "{} is too long: only its first {} KiB are used as instructions",
                named(file),
                INSTRUCTIONS / 1024
            ));
            text.truncate(text.floor_char_boundary(limit));
        }
        Some(Found {
            path: resolved,
            text,
        })
    }
}

/// Formats a file name without control characters.
fn named(file: &Path) -> String {
    agents::shown(&file.to_string_lossy())
}

/// Checks before anything is written that the speaker is known, and that flag and message name the
/// same person. Piped text often comes from another author, so only `typed` must agree with the
/// flag.
pub fn check_speaker(
    spec: &TeamSpec,
    team: &TeamFile,
    words: &str,
    typed: &str,
) -> CommandResult<()> {
    let members = members(team);
    if !members.iter().any(names::Member::is_human) {
        // `Router::new` rejects a team without people later.
        return Ok(());
    }
    let seat = spec.seat.as_deref();
    let router = Router::new(members.clone(), 0)
        .map_err(|error| CommandError::new(ErrorKind::Invalid, error.to_string()))?;
    match router.sender(seat, words) {
        // A resumed session waits for a person, who need not be named.
        Ok(_) | Err(SenderError::Ambiguous { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let (Some(seat), Some(from)) = (seat, markers::parse(typed).from) else {
        return Ok(());
    };
    let named = |name: &str| names::find(&members, name).map(|member| &member.id);
    if named(seat) == named(&from) {
        return Ok(());
    }
    let words = format!("--as names the speaker '{seat}', [FROM: {from}] names '{from}'");
    Err(CommandError::new(ErrorKind::Usage, words).hint("omit one of the two"))
}
