//! Sessions as saved by agent-chatter: one document per save, below a folder per team.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::home::Home;

/// A save of a session.
#[derive(Clone)]
pub struct Save {
    pub team: String,
    pub session: String,
    /// Minutes after ten o'clock.
    pub saved: u32,
    pub task: Value,
    pub messages: Vec<Value>,
}

/// Creates a save of an empty session of the team `review`.
pub fn talk(session: &str) -> Save {
    Save {
        team: "review".into(),
        session: session.into(),
        saved: 0,
        task: Value::Null,
        messages: Vec::new(),
    }
}

impl Save {
    pub fn team(mut self, team: &str) -> Save {
        self.team = team.into();
        self
    }

    pub fn task(mut self, task: &str) -> Save {
        self.task = json!(task);
        self
    }

    /// Sets the time of the save, in minutes after ten.
    pub fn at(mut self, minutes: u32) -> Save {
        self.saved = minutes;
        self
    }

    /// Adds a message, ten seconds after the previous one.
    pub fn says(mut self, name: &str, kind: &str, content: &str) -> Save {
        let place = self.messages.len();
        self.messages.push(json!({
            "id": format!("msg-{}", place + 1),
            "timestamp": format!("2025-11-25T10:{:02}:{:02}.000Z", place / 6, place % 6 * 10),
            "speaker": {"id": name, "name": name, "displayName": name.to_uppercase(), "type": kind},
            "content": content,
        }));
        self
    }

    pub fn document(&self) -> Value {
        json!({
            "schemaVersion": "1.0",
            "teamId": self.team,
            "sessionId": self.session,
            "createdAt": "2025-11-25T10:00:00.000Z",
            "updatedAt": format!("2025-11-25T{}:{:02}:00.000Z", 10 + self.saved / 60, self.saved % 60),
            "context": {
                "messages": self.messages,
                "teamTask": self.task,
                "timestamp": 1_764_064_800_000_u64 + u64::from(self.saved) * 60_000,
                "version": 1,
            },
            "metadata": {"messageCount": self.messages.len()},
        })
    }

    /// Writes the save where agent-chatter would.
    pub fn write(&self, home: &Home) -> PathBuf {
        let ms = 1_764_064_800_000_u64 + u64::from(self.saved) * 60_000;
        let folder: String = self
            .team
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '-' {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let folder = home.folder(&format!(".agent-chatter/sessions/{folder}"));
        let file = folder.join(format!("{ms}-{}.json", self.session));
        let text = serde_json::to_string_pretty(&self.document()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }
}

/// Returns the folder of all saves.
pub fn folder(home: &Home) -> PathBuf {
    home.folder(".agent-chatter/sessions")
}

/// Imports all saves and returns the report of each.
pub fn import(home: &Home) -> Vec<Value> {
    let folder = folder(home);
    let output = home.run(&["import".as_ref(), "--json".as_ref(), folder.as_os_str()]);
    output.ok().json()["imported"].as_array().unwrap().clone()
}
