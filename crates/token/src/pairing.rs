//! Codes that a person types into a browser, which then gets a token for it, once.
//!
//! A code is short because it is typed, so it lives for five minutes, works once, and is hard to try: attempts are limited
//! for each address and for all together. Codes are kept in memory only. A code that is wrong, too old or used is refused
//! alike.

mod attempts;

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom as _, SystemRandom};

use self::attempts::Attempts;
use crate::TokenRequest;

/// How long a code can be used.
pub const PAIRING_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Digits and capitals without those that look like others. 32 of them: each stands for five random bits.
const ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/// 40 bits.
const LENGTH: usize = 8;
/// Codes that can be open at once. More of them would be easier to hit.
const MAX_OPEN: usize = 64;

/// The codes that are open.
#[derive(Default)]
pub struct PairingCodes {
    open: Vec<OpenCode>,
    attempts: Attempts,
}

struct OpenCode {
    letters: [u8; LENGTH],
    expires_at: Instant,
    /// The token that it stands for.
    request: TokenRequest,
}

/// Why no code was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// Each of them makes it easier to guess one.
    #[error("{MAX_OPEN} codes are open already; wait until some are used or expire")]
    TooManyCodes,
    /// The system has no random numbers.
    #[error("cannot get random numbers from the system")]
    NoRandomness,
}

/// Why a code was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairingRefusal {
    /// It is wrong, too old, or was used.
    Invalid,
    /// Too many were tried. The next may be tried after this time.
    TooManyAttempts(Duration),
}

impl PairingCodes {
    /// Makes a code for a token, in the form that people type: `K7QD-93XM`.
    pub fn offer(&mut self, request: TokenRequest, now: Instant) -> Result<String, PairingError> {
        self.forget_expired(now);
        if self.open.len() >= MAX_OPEN {
            return Err(PairingError::TooManyCodes);
        }
        let mut letters = [0; LENGTH];
        SystemRandom::new()
            .fill(&mut letters)
            .map_err(|_| PairingError::NoRandomness)?;
        for letter in &mut letters {
            *letter = ALPHABET[usize::from(*letter % 32)];
        }
        let text: String = letters.iter().copied().map(char::from).collect();
        let (first, second) = text.split_at(LENGTH / 2);
        let shown = format!("{first}-{second}");
        self.open.push(OpenCode {
            letters,
            expires_at: now + PAIRING_LIFETIME,
            request,
        });
        Ok(shown)
    }

    /// Takes a code as it was typed. It is gone then.
    pub fn redeem(
        &mut self,
        typed: &str,
        from: IpAddr,
        now: Instant,
    ) -> Result<TokenRequest, PairingRefusal> {
        self.attempts
            .count(from, now)
            .map_err(PairingRefusal::TooManyAttempts)?;
        self.forget_expired(now);
        let typed = letters(typed).ok_or(PairingRefusal::Invalid)?;
        // Every code is compared to its end: the time says nothing about which letters are right.
        let mut found = None;
        for (place, code) in self.open.iter().enumerate() {
            if is_same(&code.letters, &typed) {
                found = Some(place);
            }
        }
        match found {
            Some(place) => Ok(self.open.swap_remove(place).request),
            None => Err(PairingRefusal::Invalid),
        }
    }

    fn forget_expired(&mut self, now: Instant) {
        self.open.retain(|code| code.expires_at > now);
    }
}

/// Never the codes: this ends up in logs.
impl fmt::Debug for PairingCodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairingCodes")
            .field("open", &self.open.len())
            .finish_non_exhaustive()
    }
}

/// What was typed, in capitals and without dashes and spaces.
fn letters(typed: &str) -> Option<[u8; LENGTH]> {
    let mut letters = [0; LENGTH];
    let mut typed = typed
        .bytes()
        .filter(|byte| !matches!(byte, b'-' | b' '))
        .map(|byte| byte.to_ascii_uppercase());
    for letter in &mut letters {
        *letter = typed.next()?;
    }
    typed.next().is_none().then_some(letters)
}

fn is_same(one: &[u8; LENGTH], other: &[u8; LENGTH]) -> bool {
    let pairs = one.iter().zip(other);
    pairs.fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}
