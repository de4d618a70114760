//! Exchanges a one-time code or a token for the secrets of a login: a cookie, and what the page keeps in
//! the storage of its origin.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Response, StatusCode};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::authenticator::CredentialStore;
use super::credentials::{Credentials, LoginSecrets, secret};
use super::listen::Visit;
use super::places::State;
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
pub async fn log_in(web: &Arc<Web>, visit: &Visit, body: Body) -> Response<Body> {
    let login = match read(body).await {
        Ok(login) => login,
        Err(response) => return response,
    };
    match exchange(web, login).await {
        Ok(Some(secrets)) => {
            visit.set(State::Known);
            let response = reply::json(StatusCode::OK, &json!({ "secret": secrets.storage }));
            reply::with_cookie(
                response,
                web.site.cookie(),
                &secrets.cookie,
                web.site.is_secure,
            )
        }
        Ok(None) => match slow_down(web, visit).await {
            Some(busy) => busy,
            None => reply::error(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "this code or token is not valid, or was used before",
            ),
        },
        Err(error) => failed(&error),
    }
}

/// Lets a wrong login wait for its answer. Returns another answer if its place is needed meanwhile.
pub async fn slow_down(web: &Web, visit: &Visit) -> Option<Response<Body>> {
    let delay = web.authenticator.fail(visit.network());
    match visit.wait(delay).await {
        true => None,
        false => Some(reply::last(reply::too_many())),
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

impl Login {
    /// Exchanges the code or the token for a grant with these secrets. Returns false if neither is valid.
    fn redeem(
        &self,
        credentials: &mut Credentials,
        secrets: &LoginSecrets,
        now: Timestamp,
    ) -> bool {
        let by_code = |code: &String| credentials.redeem_code(code, secrets, now);
        if self.code.as_ref().is_some_and(by_code) {
            return true;
        }
        let by_token = |token: &String| credentials.redeem_token(token, secrets, now);
        self.token.as_ref().is_some_and(by_token)
    }
}

/// Returns the secrets of a new grant, or `None` for a wrong code or token.
async fn exchange(web: &Arc<Web>, login: Login) -> HostResult<Option<LoginSecrets>> {
    let now = web.hub.host().now();
    blocking(web, move |store| {
        let secrets = LoginSecrets {
            cookie: secret(&store.random()?),
            storage: secret(&store.random()?),
        };
        // A wrong login does not wait for the lock of the file.
        if !login.redeem(&mut store.read()?, &secrets, now) {
            return Ok(None);
        }
        let mut is_redeemed = false;
        store.update(&mut |credentials| {
            is_redeemed = login.redeem(credentials, &secrets, now);
        })?;
        Ok(is_redeemed.then_some(secrets))
    })
    .await
}

/// Uses the kept credentials on the blocking pool.
async fn blocking<T: Send + 'static>(
    web: &Web,
    work: impl FnOnce(&dyn CredentialStore) -> HostResult<T> + Send + 'static,
) -> HostResult<T> {
    let store = web.authenticator.store().clone();
    let done = tokio::task::spawn_blocking(move || work(&*store));
    done.await.unwrap_or_else(|error| {
        let words = error.to_string();
        Err(ErrorBody::new(crate::protocol::ErrorKind::Failed, words))
    })
}

/// Logs a browser out.
pub async fn log_out(web: &Arc<Web>, cookie: Option<String>) -> Response<Body> {
    if let Some(cookie) = cookie {
        let done = blocking(web, move |store| {
            store.update(&mut |credentials| credentials.log_out(&cookie))
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
