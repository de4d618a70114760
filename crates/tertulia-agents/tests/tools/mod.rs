//! The tools of API agents, each in a folder of its own.

mod changing;
mod confined;
mod looking;
mod shell;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tertulia_agents::approval::{Risk, ToolRequest};
use tertulia_agents::tool::{ToolLimits, ToolOutput, Toolbox};
use tertulia_core::entry::ToolCall;
use tertulia_testkit::waiting::DEADLINE;
use tokio_util::sync::CancellationToken;

/// A work folder, with files beside it that no tool may see.
struct World {
    dir: tempfile::TempDir,
    limits: ToolLimits,
    hidden: Vec<String>,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    // Ends the search for the repository of the work folder, whatever is above.
    fs::create_dir(dir.path().join(".git")).unwrap();
    fs::create_dir(dir.path().join("work")).unwrap();
    fs::create_dir(dir.path().join("out")).unwrap();
    fs::write(dir.path().join("out/secret"), "secret words\n").unwrap();
    World {
        dir,
        limits: ToolLimits {
            // No test may hang, whatever breaks.
            time: DEADLINE,
            longest: DEADLINE,
            ..ToolLimits::default()
        },
        hidden: Vec::new(),
    }
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: "1".into(),
        name: name.into(),
        arguments,
    }
}

fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("tools-{}-{next}", std::process::id())
}

impl World {
    /// Returns a path in the work folder.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the names in the work folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn tools(&self) -> Toolbox {
        Toolbox::new(self.path(""), self.limits, self.hidden.clone()).unwrap()
    }

    async fn run(&self, name: &str, arguments: Value) -> ToolOutput {
        let output = self
            .tools()
            .run(&call(name, arguments), &marker(), &CancellationToken::new())
            .await;
        assert!(
            output.text.len() <= self.limits.output,
            "{}",
            output.text.len()
        );
        output
    }

    /// Runs a call that must succeed, and returns its text.
    async fn done(&self, name: &str, arguments: Value) -> String {
        let output = self.run(name, arguments).await;
        assert!(output.ok, "{}", output.text);
        output.text
    }

    /// Runs a call that must fail with a text that contains `words`.
    async fn fails(&self, name: &str, arguments: Value, words: &[&str]) {
        let output = self.run(name, arguments).await;
        assert!(!output.ok, "{}", output.text);
        for word in words {
            assert!(output.text.contains(word), "{}", output.text);
        }
    }

    fn request(&self, name: &str, arguments: Value) -> ToolRequest {
        self.tools().request(&call(name, arguments)).unwrap()
    }

    /// Requests a call that must be refused with a text that contains `words`.
    fn refused(&self, name: &str, arguments: Value, words: &[&str]) {
        let output = self.tools().request(&call(name, arguments)).unwrap_err();
        assert!(!output.ok);
        for word in words {
            assert!(output.text.contains(word), "{}", output.text);
        }
    }
}

#[test]
fn the_tools_are_the_promised_ones() {
    let specs = world().tools().specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "file_read",
            "directory_list",
            "glob",
            "grep",
            "file_write",
            "file_edit",
            "file_delete",
            "shell",
            "shell_poll"
        ]
    );
    for spec in &specs {
        let schema = &spec.parameters;
        assert_eq!(schema["type"], "object", "{}", spec.name);
        assert_eq!(schema["additionalProperties"], false, "{}", spec.name);
        let fields = schema["properties"].as_object().unwrap();
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(fields.contains_key(required.as_str().unwrap()));
        }
        for (field, described) in fields {
            assert!(
                described["description"].is_string(),
                "{} {field}",
                spec.name
            );
        }
    }
}

#[test]
fn every_tool_has_its_risk_and_its_key() {
    let world = world();
    world.write("a.txt", "one\n");
    let check = |name: &str, arguments: Value, risk: Risk, key: &str| {
        let request = world.request(name, arguments);
        assert_eq!((request.risk, request.key.as_str()), (risk, key), "{name}");
        if risk == Risk::Low {
            assert_eq!(request.preview.lines().count(), 1, "{}", request.preview);
        }
    };
    check(
        "file_read",
        json!({"path": "a.txt"}),
        Risk::Low,
        "file_read",
    );
    check("directory_list", json!({}), Risk::Low, "directory_list");
    check("glob", json!({"pattern": "*\n*"}), Risk::Low, "glob");
    check("grep", json!({"pattern": "a\nb"}), Risk::Low, "grep");
    let arguments = json!({"path": "b", "content": ""});
    check("file_write", arguments, Risk::Medium, "file_write");
    let arguments = json!({"path": "a.txt", "old_text": "one", "new_text": "two"});
    check("file_edit", arguments, Risk::Medium, "file_edit");
    let whole = world.path("a.txt").canonicalize().unwrap();
    check(
        "file_delete",
        json!({"path": "./a.txt"}),
        Risk::High,
        &format!("file_delete {}", whole.display()),
    );
    check(
        "shell",
        json!({"command": "ls  -l", "timeout_seconds": 3, "description": "look"}),
        Risk::High,
        "shell ls  -l",
    );
}

#[tokio::test]
async fn a_wrong_call_says_what_is_wrong() {
    let world = world();
    let check = async |name: &str, arguments: Value, words: &[&str]| {
        world.refused(name, arguments.clone(), words);
        world.fails(name, arguments, words).await;
    };
    check("file_chew", json!({}), &["no tool 'file_chew'"]).await;
    check("file_read", json!({}), &["`path`", "missing"]).await;
    check("file_read", json!({"path": 1}), &["`path`", "string"]).await;
    check("file_read", json!([]), &["JSON object"]).await;
    let arguments = json!({"path": "a", "limit": 0});
    check("file_read", arguments, &["`limit`", "at least 1"]).await;
    check("grep", json!({"pattern": "("}), &["`pattern`"]).await;
    check("grep", json!({"pattern": "a", "glob": "["}), &["`glob`"]).await;
    check("file_write", json!({"path": "a"}), &["`content`"]).await;
    check("file_delete", json!({"path": "a"}), &["no file a"]).await;
    let tools = "the tools are: file_read, directory_list, glob, grep";
    check("bash", json!({}), &["no tool 'bash'", tools]).await;
    check("shell", json!({"command": " "}), &["`command`", "empty"]).await;
    check(
        "shell",
        json!({"command": "a\u{0}b"}),
        &["`command`", "NUL"],
    )
    .await;
    let arguments = json!({"command": "ls", "timeout_seconds": "9"});
    check("shell", arguments, &["`timeout_seconds`"]).await;
    assert!(world.names().is_empty());
}

#[tokio::test]
async fn no_limit_is_too_small_to_be_kept() {
    let mut world = world();
    for n in 0..50 {
        world.write(&format!("{n}"), "€ line\n".repeat(50));
    }
    for output in [0, 1, 10, 63, 64, 65, 130, 200, 300] {
        world.limits.output = output;
        // `run` checks the limit for every call.
        for (name, arguments) in [
            ("file_read", json!({"path": "1"})),
            ("file_read", json!({"path": "x".repeat(100)})),
            ("directory_list", json!({})),
            ("glob", json!({"pattern": "*"})),
            ("grep", json!({"pattern": "line"})),
            ("shell", json!({"command": "cat 1 2 3"})),
            ("shell", json!({"command": "exit 3"})),
        ] {
            world.run(name, arguments).await;
        }
    }
}

#[test]
fn a_work_folder_must_be_there() {
    let world = world();
    let missing = world.path("missing");
    let error = Toolbox::new(missing.clone(), world.limits, Vec::new()).unwrap_err();
    assert_eq!(error.path, missing);
}
