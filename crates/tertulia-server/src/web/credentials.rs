//! Codes, tokens and grants. A code is printed by the server and works once; a token is made by the
//! user for a device or a script; a grant is what a browser has after it has logged in with either.
//! Only hashes are kept.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::client::Access;

/// How long a code works.
const CODE: SignedDuration = SignedDuration::from_mins(15);
/// How long a browser stays logged in.
const GRANT: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Maximum number of grants; the oldest goes first.
const GRANTS: usize = 200;
/// Maximum number of codes; the oldest goes first.
const CODES: usize = 20;
/// Letters and digits of codes, without those that look alike.
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Letters of a code: 100 bits, too many to guess in 15 minutes, few enough to type.
const CODE_LENGTH: usize = 20;

/// The content of the file of credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// One-time codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<Code>,
    /// Tokens, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Token>,
    /// Logged-in browsers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Address of the page that was served last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A one-time code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    hash: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Whether it gives access for reading only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its name.
    pub name: String,
    hash: String,
    /// Whether it gives access for reading only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A browser that has logged in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Hash of the cookie.
    hash: String,
    /// Hash of the secret in the storage of the page. Logins of earlier versions have none, and have
    /// to be repeated.
    #[serde(default)]
    secret: String,
    /// The token with which it logged in; none if that was a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Whether it may only read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// When it logged in.
    pub created_at: Timestamp,
    /// When it has to log in again.
    pub expires_at: Timestamp,
}

impl Grant {
    /// Returns a name for lists and for revoking it.
    pub fn name(&self) -> String {
        format!("login-{}", self.hash.get(..8).unwrap_or_default())
    }
}

/// Who a request comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Hash of the grant or token.
    pub hash: String,
    /// What it may do.
    pub access: Access,
    /// When that ends.
    pub expires_at: Option<Timestamp>,
    /// Hash of the secret in the storage of the page; a token has none.
    secret: Option<String>,
}

impl Holder {
    /// Returns true if a client has to show the secret of the login before it gets any data.
    pub fn needs_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Returns true for the secret of the login. The comparison takes the same time for every hash.
    pub fn has_secret(&self, secret: &str) -> bool {
        let known = self.secret.as_deref().map(blake3::Hash::from_hex);
        matches!(known, Some(Ok(known)) if known == digest(Purpose::Storage, secret))
    }
}

/// The secrets of a login. A browser sends the cookie to every port of a host, other servers included;
/// what is in the storage of the page stays with its origin. Only both together give data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginSecrets {
    /// Value of the cookie.
    pub cookie: String,
    /// What the page keeps in its storage.
    pub storage: String,
}

/// What a secret is for, so that one kind never passes for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Code,
    Token,
    Grant,
    Storage,
}

/// Hashes a secret. It is random and long, so that a fast hash is enough.
fn hash(purpose: Purpose, secret: &str) -> String {
    digest(purpose, secret).to_hex().to_string()
}

fn digest(purpose: Purpose, secret: &str) -> blake3::Hash {
    let context = match purpose {
        Purpose::Code => "tertulia web 2026 one-time code",
        Purpose::Token => "tertulia web 2026 token",
        Purpose::Grant => "tertulia web 2026 grant",
        Purpose::Storage => "tertulia web 2026 secret of the page",
    };
    let mut hasher = blake3::Hasher::new_derive_key(context);
    hasher.update(secret.as_bytes());
    hasher.finalize()
}

/// Formats a random value as a token. It begins with a word by which it is recognised where it should
/// not be, such as in a conversation.
pub fn token(random: &[u8; 32]) -> String {
    format!("tertulia_{}", secret(random))
}

/// Formats a random value as a secret of letters and digits.
pub fn secret(random: &[u8; 32]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random)
}

/// Formats a random value as a code that a person can type.
pub fn code(random: &[u8; 32]) -> String {
    let letter = |byte: &u8| char::from(LETTERS[usize::from(byte % 32)]);
    random.iter().take(CODE_LENGTH).map(letter).collect()
}

/// Returns a code as it is made, however a person types it.
fn normal(code: &str) -> String {
    let letters = code.chars().filter(|c| !c.is_whitespace() && *c != '-');
    let letter = |c: char| match c.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        c => c,
    };
    letters.map(letter).collect()
}

fn access(read_only: bool) -> Access {
    match read_only {
        true => Access::ReadOnly,
        false => Access::Full,
    }
}

impl Credentials {
    /// Adds a code.
    pub fn add_code(&mut self, code: &str, read_only: bool, now: Timestamp) {
        self.clean(now);
        self.codes.push(Code {
            hash: hash(Purpose::Code, code),
            expires_at: now.saturating_add(CODE).unwrap_or(Timestamp::MAX),
            read_only,
        });
        let surplus = self.codes.len().saturating_sub(CODES);
        self.codes.drain(..surplus);
    }

    /// Adds a token. Returns false if there is one of this name.
    pub fn add_token(
        &mut self,
        name: &str,
        secret: &str,
        read_only: bool,
        (now, expires_at): (Timestamp, Option<Timestamp>),
    ) -> bool {
        self.clean(now);
        if self.tokens.iter().any(|token| token.name == name) {
            return false;
        }
        self.tokens.push(Token {
            name: name.to_owned(),
            hash: hash(Purpose::Token, secret),
            read_only,
            created_at: now,
            expires_at,
        });
        true
    }

    /// Removes a token and the logins with it, or a login. Returns false if there is none.
    pub fn revoke(&mut self, name: &str) -> bool {
        let before = self.tokens.len() + self.grants.len();
        self.tokens.retain(|token| token.name != name);
        self.grants
            .retain(|grant| grant.token.as_deref() != Some(name) && grant.name() != name);
        self.tokens.len() + self.grants.len() < before
    }

    /// Exchanges a code for a grant with these secrets. The code is used up.
    pub fn redeem_code(&mut self, code: &str, secrets: &LoginSecrets, now: Timestamp) -> bool {
        self.clean(now);
        let wanted = hash(Purpose::Code, &normal(code));
        let Some(place) = self.codes.iter().position(|code| code.hash == wanted) else {
            return false;
        };
        let code = self.codes.remove(place);
        self.grant(secrets, None, code.read_only, now, None);
        true
    }

    /// Exchanges a token for a grant with these secrets.
    pub fn redeem_token(&mut self, token: &str, secrets: &LoginSecrets, now: Timestamp) -> bool {
        self.clean(now);
        let wanted = hash(Purpose::Token, token.trim());
        let lives = |token: &&Token| token.expires_at.is_none_or(|end| now < end);
        let mut found = self.tokens.iter().filter(|token| token.hash == wanted);
        let Some(token) = found.find(lives).cloned() else {
            return false;
        };
        let (name, end) = (Some(token.name), token.expires_at);
        self.grant(secrets, name, token.read_only, now, end);
        true
    }

    fn grant(
        &mut self,
        secrets: &LoginSecrets,
        token: Option<String>,
        read_only: bool,
        now: Timestamp,
        end: Option<Timestamp>,
    ) {
        let usual = now.saturating_add(GRANT).unwrap_or(Timestamp::MAX);
        self.grants.push(Grant {
            hash: hash(Purpose::Grant, &secrets.cookie),
            secret: hash(Purpose::Storage, &secrets.storage),
            token,
            read_only,
            created_at: now,
            expires_at: end.map_or(usual, |end| end.min(usual)),
        });
        let surplus = self.grants.len().saturating_sub(GRANTS);
        self.grants.drain(..surplus);
    }

    /// Returns who has the grant with this cookie.
    pub fn by_cookie(&self, secret: &str, now: Timestamp) -> Option<Holder> {
        self.by_hash(&hash(Purpose::Grant, secret), now)
    }

    /// Returns who has the token with this secret.
    pub fn by_token(&self, secret: &str, now: Timestamp) -> Option<Holder> {
        self.by_hash(&hash(Purpose::Token, secret), now)
    }

    /// Returns the holder of a grant or token, if it still counts.
    pub fn by_hash(&self, hash: &str, now: Timestamp) -> Option<Holder> {
        let lives = |end: Option<Timestamp>| end.is_none_or(|end| now < end);
        let grants = self.grants.iter().filter(|grant| grant.hash == hash);
        let mut grants = grants.filter(|grant| lives(Some(grant.expires_at)));
        if let Some(grant) = grants.next() {
            return Some(Holder {
                hash: hash.to_owned(),
                access: access(grant.read_only),
                expires_at: Some(grant.expires_at),
                secret: Some(grant.secret.clone()),
            });
        }
        let tokens = self.tokens.iter().filter(|token| token.hash == hash);
        let mut tokens = tokens.filter(|token| lives(token.expires_at));
        tokens.next().map(|token| Holder {
            hash: hash.to_owned(),
            access: access(token.read_only),
            expires_at: token.expires_at,
            secret: None,
        })
    }

    /// Removes the grant with this cookie.
    pub fn log_out(&mut self, secret: &str) {
        let wanted = hash(Purpose::Grant, secret);
        self.grants.retain(|grant| grant.hash != wanted);
    }

    /// Removes what has ended. Tokens stay, so that lists show them.
    fn clean(&mut self, now: Timestamp) {
        self.codes.retain(|code| now < code.expires_at);
        self.grants.retain(|grant| now < grant.expires_at);
        let tokens = &self.tokens;
        let lives = |name: &String| {
            let mut tokens = tokens.iter().filter(|token| token.name == *name);
            tokens.any(|token| token.expires_at.is_none_or(|end| now < end))
        };
        self.grants
            .retain(|grant| grant.token.as_ref().is_none_or(lives));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    fn secrets(cookie: &str) -> LoginSecrets {
        LoginSecrets {
            cookie: cookie.to_owned(),
            storage: format!("storage of {cookie}"),
        }
    }

    #[test]
    fn a_code_works_once_and_for_a_while() {
        let mut credentials = Credentials::default();
        let made = code(&[7; 32]);
        credentials.add_code(&made, false, at(0));
        assert!(!credentials.redeem_code("WRONG", &secrets("a"), at(1)));
        let typed = format!(" {}-{} ", made[..5].to_lowercase(), &made[5..]);
        assert!(credentials.redeem_code(&typed, &secrets("a"), at(1)));
        assert!(!credentials.redeem_code(&made, &secrets("b"), at(1)));
        let holder = credentials.by_cookie("a", at(2)).unwrap();
        assert_eq!(holder.access, Access::Full);
        assert_eq!(credentials.by_cookie("b", at(2)), None);
        credentials.add_code("LATE", true, at(0));
        assert!(!credentials.redeem_code("LATE", &secrets("c"), at(15)));
        assert_eq!(credentials.by_cookie("a", at(91 * 24 * 60)), None);
    }

    #[test]
    fn a_revoked_or_ended_token_ends_its_logins() {
        let mut credentials = Credentials::default();
        assert!(credentials.add_token("phone", "s", true, (at(0), None)));
        assert!(!credentials.add_token("phone", "t", false, (at(0), None)));
        assert!(credentials.add_token("short", "u", false, (at(0), Some(at(10)))));
        assert!(credentials.redeem_token("s", &secrets("one"), at(1)));
        assert!(credentials.redeem_token("u", &secrets("two"), at(1)));
        let reader = credentials.by_cookie("one", at(2)).unwrap();
        assert_eq!(reader.access, Access::ReadOnly);
        let ends = credentials.by_cookie("two", at(2)).unwrap().expires_at;
        assert_eq!(ends, Some(at(10)));
        assert_eq!(credentials.by_token("u", at(10)), None);
        assert!(!credentials.redeem_token("u", &secrets("three"), at(10)));
        assert!(credentials.revoke("phone") && !credentials.revoke("phone"));
        assert_eq!(credentials.by_cookie("one", at(2)), None);
        assert_eq!(credentials.by_token("s", at(2)), None);
    }

    #[test]
    fn a_login_can_be_revoked_or_left() {
        let mut credentials = Credentials::default();
        for secret in ["a", "b"] {
            credentials.add_code("C", false, at(0));
            assert!(credentials.redeem_code("C", &secrets(secret), at(0)));
        }
        let name = credentials.grants[0].name();
        assert!(credentials.revoke(&name));
        assert_eq!(credentials.by_cookie("a", at(0)), None);
        credentials.log_out("b");
        assert!(credentials.grants.is_empty());
    }

    #[test]
    fn a_login_is_its_cookie_and_the_secret_in_the_storage_of_the_page() {
        let mut credentials = Credentials::default();
        for cookie in ["a", "b"] {
            credentials.add_code("C", false, at(0));
            assert!(credentials.redeem_code("C", &secrets(cookie), at(0)));
        }
        credentials.add_token("t", "token", false, (at(0), None));
        let holder = credentials.by_cookie("a", at(0)).unwrap();
        assert!(holder.needs_secret() && holder.has_secret("storage of a"));
        for wrong in ["", "a", "storage of b", "storage of A", "token"] {
            assert!(!holder.has_secret(wrong), "{wrong}");
        }
        let script = credentials.by_token("token", at(0)).unwrap();
        assert!(!script.needs_secret() && !script.has_secret("token") && !script.has_secret(""));
        // As an earlier version has written it.
        credentials.grants[0].secret.clear();
        let old = credentials.by_cookie("a", at(0)).unwrap();
        assert!(old.needs_secret() && !old.has_secret("storage of a") && !old.has_secret(""));
    }

    #[test]
    fn secrets_of_one_kind_are_none_of_another_and_are_not_kept() {
        let mut credentials = Credentials::default();
        credentials.add_code("SECRET", false, at(0));
        credentials.add_token("t", "SECRET", false, (at(0), None));
        assert_eq!(credentials.by_cookie("SECRET", at(0)), None);
        let text = serde_json::to_string(&credentials).unwrap();
        assert!(!text.contains("SECRET"), "{text}");
        let read: Credentials = serde_json::from_str(&text).unwrap();
        assert_eq!(read, credentials);
        assert_eq!(code(&[255; 32]), "Z".repeat(20));
        assert_eq!(secret(&[0; 32]).len(), 43);
    }
}
