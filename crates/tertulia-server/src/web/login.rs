//! Exchanges a one-time code or a token for a cookie.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Response, StatusCode};
use serde::Deserialize;

use super::credentials::{Credentials, secret};
use super::{Web, reply};
use crate::host::HostResult;
use crate::protocol::ErrorBody;

/// Maximum bytes of a request.
pub const LARGEST_BODY: usize = 64 * 1024;
/// Time for a request to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// A login.
#[derive(Debug, Default, Deserialize)]
struct Login {
    code: Option<String>,
    token: Option<String>,
}

/// Logs a browser in.
pub async fn log_in(web: &Arc<Web>, body: Body) -> Response<Body> {
    let login = match read(body).await {
        Ok(login) => login,
        Err(response) => return response,
    };
    let Some(delay) = web.authenticator.begin_login() else {
        return reply::too_many();
    };
    // Counts as ended also if the browser goes away meanwhile.
    let mut attempt = Attempt { web, failed: true };
    tokio::time::sleep(delay).await;
    match exchange(web, login).await {
        Ok(Some(secret)) => {
            attempt.failed = false;
            let response = reply::empty(StatusCode::NO_CONTENT);
            reply::with_cookie(response, web.site.cookie(), &secret, web.site.is_secure)
        }
        Ok(None) => reply::error(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "this code or token is not valid, or was used before",
        ),
        Err(error) => failed(&error),
    }
}

/// Lets a request with a wrong token wait as a wrong login does. Returns the response if too many wait.
pub async fn slow_down(web: &Arc<Web>) -> Option<Response<Body>> {
    let Some(delay) = web.authenticator.begin_login() else {
        return Some(reply::too_many());
    };
    let attempt = Attempt { web, failed: true };
    tokio::time::sleep(delay).await;
    drop(attempt);
    None
}

struct Attempt<'a> {
    web: &'a Web,
    failed: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.web.authenticator.end_login(self.failed);
    }
}

async fn read(body: Body) -> Result<Login, Response<Body>> {
    let read = tokio::time::timeout(PATIENCE, to_bytes(body, LARGEST_BODY)).await;
    let wrong = |status, words| reply::last(reply::error(status, "usage", words));
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            let words = "the request is too large";
            return Err(wrong(StatusCode::PAYLOAD_TOO_LARGE, words));
        }
        Err(_) => {
            let words = "the request did not arrive in time";
            return Err(wrong(StatusCode::REQUEST_TIMEOUT, words));
        }
    };
    let words = "a login is JSON with a `code` or a `token`";
    serde_json::from_slice(&bytes)
        .map_err(|_| reply::error(StatusCode::BAD_REQUEST, "usage", words))
}

/// Returns the secret of a new grant, or `None` for a wrong code or token.
async fn exchange(web: &Arc<Web>, login: Login) -> HostResult<Option<String>> {
    let now = web.hub.host().now();
    changed(web, move |credentials, secret| {
        let by_code = |code: &String| credentials.redeem_code(code, secret, now);
        if login.code.as_ref().is_some_and(by_code) {
            return true;
        }
        let by_token = |token: &String| credentials.redeem_token(token, secret, now);
        login.token.as_ref().is_some_and(by_token)
    })
    .await
}

/// Changes the credentials on the blocking pool, with a new secret, and returns that if it was used.
async fn changed(
    web: &Arc<Web>,
    mut change: impl FnMut(&mut Credentials, &str) -> bool + Send + 'static,
) -> HostResult<Option<String>> {
    let store = web.authenticator.store().clone();
    let done = tokio::task::spawn_blocking(move || {
        let secret = secret(&store.random()?);
        let mut used = false;
        store.update(&mut |credentials| used = change(credentials, &secret))?;
        Ok(used.then_some(secret))
    });
    done.await.unwrap_or_else(|error| {
        let words = error.to_string();
        Err(ErrorBody::new(crate::protocol::ErrorKind::Failed, words))
    })
}

/// Logs a browser out.
pub async fn log_out(web: &Arc<Web>, cookie: Option<String>) -> Response<Body> {
    if let Some(cookie) = cookie {
        let done = changed(web, move |credentials, _| {
            credentials.log_out(&cookie);
            false
        });
        if let Err(error) = done.await {
            return failed(&error);
        }
    }
    let response = reply::empty(StatusCode::NO_CONTENT);
    reply::with_cookie(response, web.site.cookie(), "", web.site.is_secure)
}

fn failed(error: &ErrorBody) -> Response<Body> {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    reply::error(status, "failed", &error.message)
}
