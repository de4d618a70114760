//! Signing in, and what other servers on the same machine get of it: the cookie, and nothing else.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::driver::{Browser, Kind, in_each_browser};
use super::stage::{Site, sign_in_with};
use crate::home::Home;
use crate::http::stage::{Frame, WebServer};

in_each_browser!(a_login_is_of_a_browser_until_it_ends,);

const HAS_LIST: &str = "document.querySelector('#list .rows a, #list .remark:not([hidden])')";

/// Another server on this machine. Returns its port, and the requests that it gets.
fn other_server() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut bytes = vec![0; 16_384];
            let count = stream.read(&mut bytes).unwrap_or(0);
            let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
            let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\
                Connection: close\r\n\r\nother";
            let _ = stream.write_all(page.as_bytes());
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    (port, requests)
}

fn new_code(home: &Home) -> String {
    let told = home.run(&["web", "code", "--json"]).ok().json();
    let url = told["url"].as_str().unwrap();
    url.split_once("#code=").unwrap().1.to_owned()
}

#[test]
fn another_server_gets_the_cookie_and_cannot_use_it() {
    let home = Home::new();
    home.say("echo a secret plan");
    let server = WebServer::start(&home, &[]);
    let browser = Browser::start();
    browser.open(&server.url);
    browser.waits(HAS_LIST);
    let (port, requests) = other_server();
    browser.open(&format!("http://127.0.0.1:{port}/"));
    browser.sees("body", "other");
    let request = requests
        .iter()
        .find(|request| request.contains("tertulia="));
    let request = request.unwrap();
    let line = request
        .lines()
        .find(|line| line.to_lowercase().starts_with("cookie:"));
    let cookie = line.unwrap().split_once(": ").unwrap().1.to_owned();
    // Its page has no secret, and the server refuses it.
    assert_eq!(browser.eval("localStorage.length"), 0);
    let state = browser.eval(&format!(
        "new Promise((resolve) => {{ const socket = new WebSocket('ws://{}/ws'); \
         socket.onopen = () => resolve('open'); socket.onerror = () => resolve('refused'); }})",
        server.host()
    ));
    assert_eq!(state, "refused");
    // A program of its owner, which may send any header, gets no further.
    let mut socket = server.socket_by_cookie(&cookie);
    socket.ask(json!({ "type": "session_list" }));
    let Frame::Text(error) = socket.frame() else {
        panic!("it hung up")
    };
    assert_eq!(error["kind"], "unauthorized");
    assert_eq!(socket.frame(), Frame::Closed(Some(1008)));
    // The user goes on.
    browser.open(&format!("{}/", server.origin()));
    browser.waits(HAS_LIST);
    server.end().ok();
}

#[test]
fn a_login_leads_to_no_other_server() {
    let home = Home::new();
    let site = Site::start(&home);
    let (port, requests) = other_server();
    let browser = Browser::start();
    let evil = format!("127.0.0.1:{port}/x");
    for next in [
        format!("/%09/{evil}"),
        format!("/%0a/{evil}"),
        format!("/%0d%5c{evil}"),
        format!("//{evil}"),
        format!("%5c%5c{evil}"),
        format!("/%5c{evil}"),
        format!("http:{evil}"),
        format!("http://{evil}"),
        "javascript:document.title='run'".to_owned(),
        format!("%09javascript:location='http://{evil}'"),
        "data:text/html,other".to_owned(),
        "http://[".to_owned(),
        "/login".to_owned(),
    ] {
        let code = new_code(&home);
        browser.open(&site.url(&format!("/login?next={next}#code={code}")));
        browser.waits("document.readyState === 'complete' && location.pathname !== '/login'");
        assert_eq!(browser.eval("location.origin"), site.url(""), "{next}");
        assert_ne!(browser.eval("document.title"), "run", "{next}");
    }
    assert!(requests.try_recv().is_err(), "the other server was asked");
    // A path of the page is followed.
    let id = home.say("echo one");
    let code = new_code(&home);
    browser.open(&site.url(&format!("/login?next=/s/{id}#code={code}")));
    browser.sees(".entries .entry", "one");
}

fn a_login_is_of_a_browser_until_it_ends(kind: Kind) {
    let home = Home::new();
    let site = Site::start(&home);
    let port = site.port;
    let browser = sign_in_with(&site, kind);
    browser.reload();
    browser.waits(HAS_LIST);
    let first = browser.window();
    let second = browser.another_window();
    browser.switch(&second);
    browser.open(&site.url("/stats"));
    browser.sees("main", "essions");
    // It outlives the server.
    site.kill();
    let site = Site::start_on(&home, port, &[]);
    browser.switch(&first);
    browser.open(&site.url("/"));
    browser.waits(HAS_LIST);

    // A login of an earlier version has no secret: the page says that it has to be repeated.
    browser.eval("localStorage.removeItem('tertulia.secret')");
    browser.open(&site.url("/new"));
    browser.sees("#problem", "no longer signed in here");
    let code = Value::from(new_code(&home));
    browser.click("#secret");
    browser.type_text(code.as_str().unwrap());
    browser.type_text(super::driver::ENTER);
    browser.waits("location.pathname === '/new' && document.querySelector('main form')");
    // So does one whose secret is not that of the cookie; the code of the address is then used.
    browser.eval("localStorage.setItem('tertulia.secret', 'wrong')");
    browser.open("about:blank");
    browser.open(&format!("{}#code={}", site.url("/"), new_code(&home)));
    browser.waits(HAS_LIST);
    assert_eq!(browser.eval("location.href"), site.url("/"));

    // The login ends for all windows.
    let left = "import('/assets/store.js').then(({ secret }) => \
        fetch('/logout', { method: 'POST', headers: { 'Tertulia-Secret': secret() } })).then(({ status }) => status)";
    assert_eq!(browser.eval(left), 204);
    browser.sees("#problem", "no longer signed in here");
    browser.switch(&second);
    browser.reload();
    browser.waits("document.querySelector('#secret')");
    assert_eq!(browser.complaints(), [""; 0]);
}
