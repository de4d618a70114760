//! Test fixture: a headless Chromium or Firefox, driven through chromedriver or geckodriver, which take
//! JSON over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::home::until;

/// Keys that are no characters, as WebDriver names them.
pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";
pub const ALT: &str = "\u{e00a}";

/// Which browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Chromium,
    Firefox,
}

/// A browser with a profile of its own. It ends with the test.
pub struct Browser {
    kind: Kind,
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

impl Kind {
    /// Starts the driver. Returns it with its port, or nothing if it has ended.
    fn start_driver(self, profile: &Path) -> Option<(Child, u16)> {
        let (program, port, says) = match self {
            Kind::Chromium => (
                "chromedriver",
                ["--port=0"].as_slice(),
                "successfully on port ",
            ),
            Kind::Firefox => (
                "geckodriver",
                ["--port", "0"].as_slice(),
                "Listening on 127.0.0.1:",
            ),
        };
        let mut driver = Command::new(program)
            .args(port)
            .env("TMPDIR", profile)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{program}: {error}: run ./test, or install it with its browser")
            });
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once(says)?;
            port.trim_end_matches('.').parse().ok()
        });
        let Some(port) = port else {
            driver.wait().unwrap();
            return None;
        };
        std::thread::spawn(move || lines.for_each(drop));
        Some((driver, port))
    }

    /// Returns what a session of a window of 1440×900 needs.
    fn capabilities(self, profile: &Path) -> Value {
        let folder = format!("--user-data-dir={}", profile.display());
        match self {
            Kind::Chromium => json!({
                "browserName": "chrome",
                "goog:chromeOptions": { "args": [
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-quic",
                    "--disable-dev-shm-usage",
                    "--no-first-run",
                    "--disable-background-networking",
                    "--disable-component-update",
                    "--disable-sync",
                    "--window-size=1440,900",
                    folder,
                ] },
                "goog:loggingPrefs": { "browser": "ALL" },
            }),
            Kind::Firefox => json!({
                "browserName": "firefox",
                "moz:firefoxOptions": { "args": ["-headless", "--width=1440", "--height=900"] },
            }),
        }
    }
}

/// Makes tests of functions that take a browser's kind: one for each browser.
macro_rules! in_each_browser {
    ($($name:ident),* $(,)?) => {
        mod chromium {
            $(#[test]
            fn $name() {
                super::$name(crate::browser::driver::Kind::Chromium);
            })*
        }
        mod firefox {
            $(#[test]
            fn $name() {
                super::$name(crate::browser::driver::Kind::Firefox);
            })*
        }
    };
}
pub(super) use in_each_browser;

impl Browser {
    /// Starts a Chromium.
    pub fn start() -> Browser {
        Browser::start_as(Kind::Chromium)
    }

    /// Starts a browser with a window of 1440×900.
    pub fn start_as(kind: Kind) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        // chromedriver chooses a port of one address, and ends if the other address has it taken.
        let (driver, port) = until("the driver names its port", || {
            kind.start_driver(profile.path())
        });
        let wanted = kind.capabilities(profile.path());
        let mut browser = Browser {
            kind,
            driver,
            port,
            session: String::new(),
            _profile: profile,
        };
        let wanted = json!({ "capabilities": { "alwaysMatch": wanted } });
        let made = browser.send("POST", "/session", &wanted);
        browser.session = made["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    /// Loads an address.
    pub fn open(&self, url: &str) {
        self.ask("/url", json!({ "url": url }));
    }

    pub fn reload(&self) {
        self.ask("/refresh", json!({}));
    }

    /// Returns the value of an expression in the page.
    pub fn eval(&self, expression: &str) -> Value {
        let script = format!("return ({expression});");
        self.ask("/execute/sync", json!({ "script": script, "args": [] }))
    }

    /// Returns the visible text of the first element that fits a selector, or nothing.
    pub fn text(&self, selector: &str) -> String {
        let selector = Value::from(selector);
        let found = self.eval(&format!(
            "document.querySelector({selector})?.innerText ?? ''"
        ));
        found.as_str().unwrap().to_owned()
    }

    /// Returns the number of elements that fit a selector.
    pub fn count(&self, selector: &str) -> u64 {
        let selector = Value::from(selector);
        let found = self.eval(&format!("document.querySelectorAll({selector}).length"));
        found.as_u64().unwrap()
    }

    /// Waits until an expression is true in the page.
    #[track_caller]
    pub fn waits(&self, expression: &str) {
        let begun = std::time::Instant::now();
        until(&format!("{expression} in the page"), || {
            let is_late = begun.elapsed() > crate::home::DEADLINE / 2;
            assert!(!is_late, "not so: {expression}\n{}", self.text("body"));
            (self.eval(&format!("Boolean({expression})")) == true).then_some(())
        });
    }

    /// Waits until an element has a text.
    #[track_caller]
    pub fn sees(&self, selector: &str, words: &str) {
        let (selector, words) = (Value::from(selector), Value::from(words));
        self.waits(&format!(
            "[...document.querySelectorAll({selector})].some((one) => one.innerText.includes({words}))"
        ));
    }

    /// Clicks an element as a user does: it must be visible, and nothing may cover it.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let found = self.ask(
            "/element",
            json!({ "using": "css selector", "value": selector }),
        );
        let id = found.as_object().unwrap().values().next().unwrap();
        let id = id.as_str().unwrap().to_owned();
        self.ask(&format!("/element/{id}/click"), json!({}));
    }

    /// Types a text where the focus is, key by key.
    pub fn type_text(&self, text: &str) {
        let keys = text.chars().flat_map(|key| {
            let key = key.to_string();
            [
                json!({ "type": "keyDown", "value": key }),
                json!({ "type": "keyUp", "value": key }),
            ]
        });
        self.keys(keys.collect());
    }

    /// Presses a key while another is held.
    pub fn press_with(&self, held: &str, key: &str) {
        let keys = [
            ("keyDown", held),
            ("keyDown", key),
            ("keyUp", key),
            ("keyUp", held),
        ];
        let keys = keys.map(|(kind, value)| json!({ "type": kind, "value": value }));
        self.keys(keys.to_vec());
    }

    fn keys(&self, actions: Vec<Value>) {
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.ask("/actions", json!({ "actions": [keyboard] }));
    }

    /// Turns the mouse wheel over the middle of an element, by so many pixels; up with a negative number.
    pub fn wheel(&self, selector: &str, by: i64) {
        let (x, y) = self.middle(selector);
        let turn = json!({ "type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": by, "duration": 0, "origin": "viewport" });
        let wheel = json!({ "type": "wheel", "id": "wheel", "actions": [turn] });
        self.ask("/actions", json!({ "actions": [wheel] }));
    }

    /// Puts a finger on the middle of an element and draws it down by so many pixels. It stays there
    /// until `lift`.
    pub fn draw_finger(&self, selector: &str, by: i64) {
        let (x, y) = self.middle(selector);
        self.touch("touchStart", &[(x, y)]);
        for step in 1..=20 {
            self.touch("touchMove", &[(x, y + by * step / 20)]);
        }
    }

    /// Lifts the finger.
    pub fn lift(&self) {
        self.touch("touchEnd", &[]);
    }

    fn touch(&self, kind: &str, fingers: &[(i64, i64)]) {
        let points = fingers.iter().map(|(x, y)| json!({ "x": x, "y": y }));
        let points: Vec<Value> = points.collect();
        let touch = json!({ "type": kind, "touchPoints": points });
        self.devtools("Input.dispatchTouchEvent", touch);
    }

    fn middle(&self, selector: &str) -> (i64, i64) {
        let selector = Value::from(selector);
        let found = self.eval(&format!(
            "(({{ left, top, width, height }}) => [Math.round(left + width / 2), Math.round(top + height / 2)])\
             (document.querySelector({selector}).getBoundingClientRect())"
        ));
        (found[0].as_i64().unwrap(), found[1].as_i64().unwrap())
    }

    /// Sends a command of the DevTools protocol.
    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.ask(
            "/goog/cdp/execute",
            json!({ "cmd": command, "params": parameters }),
        )
    }

    /// Gives the page another size, as a phone or as a desktop.
    pub fn resize(&self, width: u32, height: u32, is_phone: bool) {
        let scale = if is_phone { 2 } else { 1 };
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": is_phone }),
        );
        self.devtools(
            "Emulation.setTouchEmulationEnabled",
            json!({ "enabled": is_phone }),
        );
    }

    /// Chooses the system's colours: `dark` or `light`.
    pub fn colours(&self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({ "features": [feature] }),
        );
    }

    /// Opens another window and returns its handle. `switch` goes there.
    pub fn another_window(&self) -> String {
        let made = self.ask("/window/new", json!({ "type": "window" }));
        made["handle"].as_str().unwrap().to_owned()
    }

    pub fn switch(&self, window: &str) {
        self.ask("/window", json!({ "handle": window }));
    }

    pub fn window(&self) -> String {
        let path = format!("/session/{}/window", self.session);
        self.send("GET", &path, &Value::Null)
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Returns what the console of the page complains of, since the last call. The browser's own
    /// remarks on a server that is away are left out. Firefox tells no driver.
    pub fn complaints(&self) -> Vec<String> {
        if self.kind == Kind::Firefox {
            return Vec::new();
        }
        let entries = self.ask("/se/log", json!({ "type": "browser" }));
        let entries = entries.as_array().unwrap().iter();
        let bad = entries.filter(|entry| {
            entry["source"] != "network"
                && ["SEVERE", "WARNING"].contains(&entry["level"].as_str().unwrap())
        });
        bad.map(ToString::to_string).collect()
    }

    fn ask(&self, path: &str, body: Value) -> Value {
        self.send("POST", &format!("/session/{}{path}", self.session), &body)
    }

    /// Sends a request to the driver and returns its value.
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text).unwrap();
        let mut reply: Value = serde_json::from_slice(&text).unwrap();
        let value = reply["value"].take();
        assert!(
            value["error"].is_null(),
            "{method} {path} {body}: {value:#}"
        );
        value
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser with the session.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let request = format!(
                "DELETE /session/{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
                self.session, self.port
            );
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read(&mut [0; 512]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
