//! `token show`: what a token says, whether it is good, and for how long.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use mcp_proxy_session::duration_text;
use mcp_proxy_token::{DecodedToken, TokenError, TokenVerifier, VerifiedToken};
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_json};
use serde_json::{Value, json};

use super::formatting;
use super::{open_revoked, read_argument, revoked_file, secret_file};
use crate::cli::token::TokenShowArgs;
use crate::printer;

/// What is known about a token.
enum Verdict {
    Good(VerifiedToken),
    Refused(TokenError),
    /// No key was given, and this one does not exist.
    Unverified(PathBuf),
}

/// Shows a token.
pub fn run(args: &TokenShowArgs) -> Result<ExitCode> {
    let token = read_argument(&args.token)?;
    let decoded = DecodedToken::decode(&token)?;
    let verdict = judge(args, &token, SystemTime::now())?;
    let mut out = printer::stdout_writer();
    if args.json {
        writeln!(out, "{}", as_json(&decoded, &verdict))?;
    } else {
        let line = sentence(&decoded, &verdict, SystemTime::now());
        writeln!(out, "{}", sanitize(&line))?;
        for (name, fields) in [("header", decoded.header), ("claims", decoded.claims)] {
            let fields = serde_json::to_string_pretty(&fields)?;
            writeln!(out, "{name} {}", sanitize_json(&fields))?;
        }
    }
    out.flush()?;
    let is_good = matches!(verdict, Verdict::Good(_));
    Ok(ExitCode::from(u8::from(!is_good)))
}

fn judge(args: &TokenShowArgs, token: &str, now: SystemTime) -> Result<Verdict> {
    let verifier = match (&args.public_key, &args.jwks) {
        (Some(path), _) => TokenVerifier::from_public_key_file(path)?,
        (_, Some(path)) => {
            let json =
                std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            TokenVerifier::from_jwks(&json).with_context(|| path.display().to_string())?
        }
        (None, None) => {
            let path = secret_file(args.secret_file.as_deref())?;
            if args.secret_file.is_none() && !path.exists() {
                return Ok(Verdict::Unverified(path));
            }
            TokenVerifier::from_secret_file(&path)?
        }
    };
    let revoked = open_revoked(&revoked_file(&args.revoked)?)?;
    let outcome = verifier.verify(token, now);
    let outcome = outcome.and_then(|token| revoked.check(&token).map(|()| token));
    Ok(outcome.map_or_else(Verdict::Refused, Verdict::Good))
}

fn sentence(decoded: &DecodedToken, verdict: &Verdict, now: SystemTime) -> String {
    match verdict {
        Verdict::Good(token) => {
            let left = token.expires_at.duration_since(now).unwrap_or_default();
            format!(
                "Good: a token of {}, valid until {} UTC, for another {}.",
                token.user,
                formatting::day_and_time(token.expires_at),
                duration_text(left)
            )
        }
        Verdict::Refused(TokenError::Expired) => match expiry(decoded) {
            Some(end) => format!(
                "Not good: the token expired on {} UTC, {} ago.",
                formatting::day_and_time(end),
                duration_text(now.duration_since(end).unwrap_or_default())
            ),
            None => "Not good: the token has expired.".to_owned(),
        },
        Verdict::Refused(error) => format!("Not good: {error}."),
        Verdict::Unverified(path) => format!(
            "Not verified: {} does not exist; use --secret-file, --public-key or --jwks.",
            path.display()
        ),
    }
}

fn expiry(decoded: &DecodedToken) -> Option<SystemTime> {
    let seconds = decoded.claims.get("exp")?.as_f64()?;
    UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}

fn as_json(decoded: &DecodedToken, verdict: &Verdict) -> Value {
    let (is_good, reason) = match verdict {
        Verdict::Good(_) => (Value::Bool(true), Value::Null),
        Verdict::Refused(error) => (Value::Bool(false), json!(error.to_string())),
        Verdict::Unverified(_) => (Value::Null, json!("no key to verify it with")),
    };
    json!({
        "good": is_good,
        "reason": reason,
        "expires_at": expiry(decoded).map(formatting::stamp),
        "header": decoded.header,
        "claims": decoded.claims,
    })
}
