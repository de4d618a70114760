//! One key of a sealed session: encrypts and decrypts texts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::{KeyBytes, SealError};

/// Bytes of a nonce.
const NONCE: usize = 24;
/// Bytes of what a seal shows for finding, half as many as hexadecimal digits.
const FINDER: usize = 16;

/// A key with what is derived from it.
#[derive(Clone)]
pub(super) struct Key {
    bytes: KeyBytes,
    entries: KeyBytes,
    nonces: KeyBytes,
}

impl Key {
    pub(super) fn new(bytes: &KeyBytes) -> Key {
        let derived = |purpose| Zeroizing::new(blake3::derive_key(purpose, bytes.as_slice()));
        Key {
            bytes: bytes.clone(),
            entries: derived("tertulia 2026 sealed session entries"),
            nonces: derived("tertulia 2026 sealed session nonces"),
        }
    }

    pub(super) fn bytes(&self) -> &KeyBytes {
        &self.bytes
    }

    /// Returns a hash of the key, by which it is recognised.
    pub(super) fn name(&self) -> String {
        self.shown("tertulia 2026 sealed session key name", 32)
    }

    /// Returns the key of the hashes by which the session is found. The key itself cannot be told from it.
    pub(super) fn finder(&self) -> String {
        self.shown("tertulia 2026 sealed session finder", FINDER)
    }

    fn shown(&self, purpose: &str, length: usize) -> String {
        let derived = blake3::derive_key(purpose, self.bytes.as_slice());
        let hex = blake3::Hash::from_bytes(derived).to_hex();
        hex[..2 * length].to_owned()
    }

    /// Encrypts a text. `shown` is authenticated with it.
    pub(super) fn encrypt(&self, shown: &[u8], text: &[u8]) -> Result<String, SealError> {
        let mut hasher = blake3::Hasher::new_keyed(&self.nonces);
        hasher.update(&(shown.len() as u64).to_le_bytes());
        hasher.update(shown);
        hasher.update(text);
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&hasher.finalize().as_bytes()[..NONCE]);
        let payload = Payload {
            msg: text,
            aad: shown,
        };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed.map_err(|_| SealError::Failed)?);
        Ok(STANDARD.encode(bytes))
    }

    /// Decrypts a text, unless it or `shown` was altered.
    pub(super) fn decrypt(
        &self,
        shown: &[u8],
        data: &str,
    ) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let bytes = STANDARD.decode(data).map_err(|_| SealError::Altered)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE).ok_or(SealError::Altered)?;
        let nonce: [u8; NONCE] = nonce.try_into().map_err(|_| SealError::Altered)?;
        let payload = Payload {
            msg: sealed,
            aad: shown,
        };
        let opened = self.cipher().decrypt(&XNonce::from(nonce), payload);
        opened.map(Zeroizing::new).map_err(|_| SealError::Altered)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&(*self.entries).into())
    }
}
