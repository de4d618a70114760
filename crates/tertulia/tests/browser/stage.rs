//! Test fixture: the program with its web page, common steps, and a network that can fail.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::driver::{Browser, ENTER, Kind};
use crate::home::Home;
use crate::http::stage::WebServer;

/// A running `tertulia web`.
pub struct Site {
    server: WebServer,
    pub port: u16,
    /// Address with a one-time code.
    pub link: String,
}

impl Site {
    pub fn start(home: &Home) -> Site {
        Site::start_on(home, 0, &[])
    }

    /// Starts the program on a port, or on any with 0.
    pub fn start_on(home: &Home, port: u16, more: &[&str]) -> Site {
        let server = WebServer::start_on(home, &format!("127.0.0.1:{port}"), more);
        Site {
            port: server.port,
            link: server.url.clone(),
            server,
        }
    }

    /// Returns the address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Kills the program with SIGKILL.
    pub fn kill(self) {
        self.server.kill();
    }
}

/// Signs in with the code of the site, and waits for the list.
pub fn sign_in(site: &Site) -> Browser {
    sign_in_with(site, Kind::Chromium)
}

/// Does the same with a browser of this kind.
pub fn sign_in_with(site: &Site, kind: Kind) -> Browser {
    let browser = Browser::start_as(kind);
    browser.open(&site.link);
    browser.waits("document.querySelector('#list .rows a, #list .remark:not([hidden])')");
    browser
}

/// Opens a session, and waits until it is shown.
pub fn open_session(browser: &Browser, site: &Site, id: &str) {
    browser.open(&site.url(&format!("/s/{id}")));
    browser.waits("document.querySelector('.entries .entry')");
}

/// Writes a message and sends it.
pub fn say(browser: &Browser, words: &str) {
    browser.click(".composer textarea");
    browser.type_text(words);
    browser.type_text(ENTER);
}

/// Returns the texts of the transcript's messages, in order.
pub fn shown(browser: &Browser) -> Vec<String> {
    let texts = browser.eval(
        "[...document.querySelectorAll('.entries .entry > .text')].map((one) => one.innerText.trim())",
    );
    let texts = texts.as_array().unwrap().iter();
    texts
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

/// Waits until the session waits for a message, and nothing is left over from a turn.
#[track_caller]
pub fn is_idle(browser: &Browser) {
    browser.waits(
        "!document.querySelector('.composer.is-busy') && !document.querySelector('.stream .entry:not(.is-draft)')",
    );
}

/// Waits until so many answers are in the transcript, and the turn is over.
#[track_caller]
pub fn has_answers(browser: &Browser, count: usize) {
    browser.waits(&format!(
        "document.querySelectorAll('.entries .entry.agent').length === {count}"
    ));
    is_idle(browser);
}

/// Creates a session with an agent that prints `the beginning`, waits for the file `go`, and prints
/// `the end`. Returns its id.
pub fn patient_session(home: &Home) -> String {
    patient_agent(home);
    first_turn(home)
}

/// Makes that agent the default one.
pub fn patient_agent(home: &Home) {
    let waits = until_go(home, "sleep 0.05");
    let script = format!("printf 'the beginning '; {waits}; echo 'the end'");
    default_agent(home, &script);
}

/// Creates a session with an agent that prints paragraphs until there is the file `go`. Returns its id.
pub fn talkative_session(home: &Home) -> String {
    let each = "printf 'paragraph %s\n\n' $i; sleep 0.06";
    default_agent(home, &format!("printf 'well, '; {}", until_go(home, each)));
    first_turn(home)
}

/// Returns a shell loop that runs a command over and over until there is the file `go`.
fn until_go(home: &Home, each: &str) -> String {
    let file = home.path().join("go");
    let file = file.display();
    format!("i=0; while [ ! -e '{file}' ] && [ $i -lt 2400 ]; do {each}; i=$((i+1)); done")
}

fn default_agent(home: &Home, script: &str) {
    home.script_agent("scripted", script);
    let path = home.path().join(".config/tertulia/config.toml");
    let settings = fs::read_to_string(&path).unwrap();
    let settings = settings.replace("agent = \"demo\"", "agent = \"scripted\"");
    fs::write(path, settings).unwrap();
}

fn first_turn(home: &Home) -> String {
    go(home);
    let id = home.say("hello");
    fs::remove_file(home.path().join("go")).unwrap();
    id
}

/// Lets the patient agent finish.
pub fn go(home: &Home) {
    fs::write(home.path().join("go"), "").unwrap();
}

/// A network between browser and server that can swallow everything, as a phone's does: no end of a
/// connection is told.
pub struct Network {
    pub port: u16,
    /// For requests and for replies, whether they are swallowed.
    cuts: [Arc<AtomicBool>; 2],
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Network {
    /// Passes on what arrives to a port of this machine.
    pub fn to(server: u16) -> Network {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts: [Arc<AtomicBool>; 2] = Default::default();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let network = Network {
            port,
            cuts: cuts.clone(),
            streams: streams.clone(),
        };
        std::thread::spawn(move || {
            for here in listener.incoming().map_while(Result::ok) {
                let Ok(there) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let ways = [(&here, &there), (&there, &here)];
                for ((from, to), is_cut) in ways.into_iter().zip(cuts.clone()) {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || pass_on(from, to, &is_cut));
                }
                streams.lock().unwrap().extend([here, there]);
            }
        });
        network
    }

    /// Swallows everything from now on.
    pub fn cut(&self) {
        self.swallow(true, true);
    }

    /// Swallows what the server sends from now on.
    pub fn cut_replies(&self) {
        self.swallow(false, true);
    }

    /// Lets new connections through. Those that lost something stay dead and silent.
    pub fn mend(&self) {
        self.swallow(false, false);
    }

    fn swallow(&self, requests: bool, replies: bool) {
        let wanted = self.cuts.iter().zip([requests, replies]);
        wanted.for_each(|(cut, wanted)| cut.store(wanted, Ordering::SeqCst));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut buffer = [0; 16_384];
    let mut is_dead = false;
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        is_dead |= is_cut.load(Ordering::SeqCst);
        if !is_dead && to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    if !is_dead {
        let _ = to.shutdown(Shutdown::Both);
    }
}
