//! Test fixture: a team whose agents are scripts. Each saves its prompts and answers as the test
//! wants.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::home::{Home, Output, Prepared, messages};
use crate::pty::Terminal;
use crate::running::Running;

/// Path of the team file in the project.
pub const FILE: &str = "team.json";

/// Saves the prompt, then runs the script for this call, or the default one.
const SCRIPT: &str = "cd \"$0\" || exit; n=0; if [ -e count ]; then read -r n < count; fi; n=$((n+1)); \
    echo $n > count.new; mv count.new count; cat > prompt.$n; if [ -e does.$n ]; then . ./does.$n; else . ./does; fi";

/// The team and its home.
pub struct Cast {
    pub home: Home,
    document: Value,
}

impl Cast {
    /// Creates a team of these agents, then these people. The display name of `ada` is `Ada`.
    pub fn of(agents: &[&str], people: &[&str]) -> Cast {
        Cast::in_home(Home::new(), agents, people)
    }

    pub fn in_home(home: Home, agents: &[&str], people: &[&str]) -> Cast {
        let members = agents.iter().map(|name| agent(name));
        let members = members.chain(people.iter().map(|name| person(name)));
        let members: Vec<Value> = members.collect();
        let cast = Cast {
            home,
            document: json!({
                "schemaVersion": "1.2",
                "team": {
                    "name": "cast",
                    "displayName": "The cast",
                    "description": "Small programs and people.",
                    "members": members,
                },
            }),
        };
        cast.write();
        for name in agents {
            cast.hires(name);
        }
        cast
    }

    /// Adds a script for the agent of this name.
    pub fn hires(&self, name: &str) {
        fs::create_dir_all(self.folder(name)).unwrap();
        self.says(name, format!("{} speaks.", shown(name)));
        let settings = self.home.path().join(".config/tertulia/config.toml");
        let mut text = fs::read_to_string(&settings).unwrap();
        let args = json!(["-c", SCRIPT, self.folder(name)]);
        text.push_str(&format!(
            "[agents.{name}]\ntype = \"command\"\ncommand = \"sh\"\nargs = {args}\nconfine = false\n"
        ));
        fs::write(settings, text).unwrap();
    }

    /// Turns summaries off in the user's settings.
    pub fn makes_no_summaries(&self) {
        let settings = self.home.path().join(".config/tertulia/config.toml");
        let text = fs::read_to_string(&settings).unwrap();
        fs::write(settings, format!("team_summary = false\n{text}")).unwrap();
    }

    /// Changes the team file.
    pub fn change(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.document);
        self.write();
    }

    /// Changes a member in the team file.
    pub fn change_member(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let members = self.document["team"]["members"].as_array_mut().unwrap();
        change(
            members
                .iter_mut()
                .find(|member| member["name"] == name)
                .unwrap(),
        );
        self.write();
    }

    pub fn file(&self) -> PathBuf {
        self.home.project().join(FILE)
    }

    fn write(&self) {
        fs::write(self.file(), self.document.to_string()).unwrap();
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.home.path().join("cast").join(name)
    }

    /// Sets the answer of an agent for every call.
    pub fn says(&self, name: &str, words: impl AsRef<[u8]>) {
        fs::write(self.folder(name).join("answer"), words).unwrap();
        self.does(name, "cat answer");
    }

    /// Sets the answers of an agent for its next calls.
    pub fn says_in_turn(&self, name: &str, words: &[&str]) {
        for (place, words) in words.iter().enumerate() {
            let turn = self.asked(name) + place + 1;
            fs::write(self.folder(name).join(format!("answer.{turn}")), words).unwrap();
            let script = format!("cat answer.{turn}");
            fs::write(self.folder(name).join(format!("does.{turn}")), script).unwrap();
        }
    }

    /// Sets the shell script that an agent runs at every call, in a folder of its own.
    pub fn does(&self, name: &str, script: &str) {
        fs::write(self.folder(name).join("does"), script).unwrap();
    }

    /// Returns how often an agent was prompted.
    pub fn asked(&self, name: &str) -> usize {
        let count = fs::read_to_string(self.folder(name).join("count"));
        count.map_or(0, |count| count.trim().parse().unwrap())
    }

    /// Returns all prompts of an agent.
    pub fn prompts(&self, name: &str) -> Vec<String> {
        let file = |turn| self.folder(name).join(format!("prompt.{turn}"));
        let turns = 1..=self.asked(name);
        turns
            .map(|turn| fs::read_to_string(file(turn)).unwrap())
            .collect()
    }

    /// Returns the last prompt of an agent.
    #[track_caller]
    pub fn prompt(&self, name: &str) -> String {
        match self.prompts(name).pop() {
            Some(prompt) => prompt,
            None => panic!("{name} was not asked"),
        }
    }

    /// Prepares a command line of this team.
    pub fn prepare(&self, args: &[&str]) -> Prepared<'_> {
        self.home.prepare(&[&["team", FILE], args].concat())
    }

    /// Runs a command line of this team.
    pub fn run(&self, args: &[&str]) -> Output {
        self.prepare(args).run()
    }

    /// Runs one turn that must succeed, and returns its JSON document.
    #[track_caller]
    pub fn turn(&self, args: &[&str]) -> Value {
        let args = [&["--output-format", "json"], args].concat();
        self.run(&args).ok().json()
    }

    /// Starts one turn whose events are read as they come.
    pub fn start(&self, args: &[&str]) -> Running {
        Running::of(&self.prepare(&[&["--output-format", "stream-json"], args].concat()))
    }

    /// Opens the team on a pseudo-terminal.
    pub fn open(&self, args: &[&str]) -> Terminal {
        Terminal::open(
            &self.home,
            &[&["team", FILE, "--no-color"], args].concat(),
            &[],
        )
    }

    /// Returns the messages of a session.
    pub fn messages(&self, reference: &str) -> Vec<Value> {
        messages(&self.home.show(reference))
    }
}

pub fn agent(name: &str) -> Value {
    json!({
        "name": name,
        "displayName": shown(name),
        "role": "writer",
        "type": "ai",
        "agentType": name,
        "baseDir": ".",
        "systemInstruction": format!("You are {}.", shown(name)),
    })
}

/// Returns a human member.
pub fn person(name: &str) -> Value {
    json!({
        "name": name,
        "displayName": shown(name),
        "role": "lead",
        "type": "human",
        "baseDir": ".",
        "systemInstruction": "",
    })
}

/// Returns the display name.
pub fn shown(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// Returns the speakers of messages, in order.
pub fn speakers(messages: &[Value]) -> Vec<&str> {
    let speakers = messages.iter();
    speakers
        .map(|message| message["speaker"]["name"].as_str().unwrap())
        .collect()
}

/// Returns the messages of a run's document.
pub fn said_in(document: &Value) -> &[Value] {
    document["messages"].as_array().unwrap()
}
