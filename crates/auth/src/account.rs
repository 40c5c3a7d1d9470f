//! As whom somebody is signed in, if the authorization server says so.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION};
use serde::Deserialize;

use crate::BearerToken;
use crate::http::SafeClient;
use crate::store::AuthorizationServer;
use crate::token_endpoint::TokenAnswer;

const NAME_MAX: usize = 120;
/// Nobody waits long for a name.
const USERINFO_DEADLINE: Duration = Duration::from_secs(10);

/// What id tokens and the userinfo endpoint say.
#[derive(Deserialize)]
struct Claims {
    email: Option<String>,
    preferred_username: Option<String>,
    name: Option<String>,
    sub: Option<String>,
}

/// Reads the id token, which came from the authorization server itself and needs no other proof, or asks for the name.
pub(crate) async fn account_of(
    answer: &TokenAnswer,
    scopes: &[String],
    server: &AuthorizationServer,
    client: &SafeClient,
) -> Option<String> {
    let claimed = answer.id_token.as_ref().and_then(|token| {
        let payload = token.expose().split('.').nth(1)?;
        claims_of(&URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?)
    });
    let asked = match (&claimed, &server.userinfo_endpoint) {
        (Some(claims), _) if claims.email.is_some() || claims.preferred_username.is_some() => None,
        (_, Some(endpoint)) if scopes.iter().any(|scope| scope == "openid") => {
            userinfo(endpoint, answer, client).await
        }
        _ => None,
    };
    name_of(asked.or(claimed)?)
}

async fn userinfo(endpoint: &str, answer: &TokenAnswer, client: &SafeClient) -> Option<Claims> {
    let token = BearerToken::new(answer.access_token.clone());
    let request = Request::get(endpoint)
        .header(ACCEPT, "application/json")
        .header(AUTHORIZATION, token.authorization())
        .body(Vec::new());
    let client = client.with_deadline(USERINFO_DEADLINE);
    let answer = client.send(request.ok()?).await.ok()?;
    match answer.status().is_success() {
        true => claims_of(answer.body()),
        false => None,
    }
}

fn claims_of(json: &[u8]) -> Option<Claims> {
    serde_json::from_slice(json).ok()
}

fn name_of(claims: Claims) -> Option<String> {
    let names = [
        claims.email,
        claims.preferred_username,
        claims.name,
        claims.sub,
    ];
    let name = names.into_iter().flatten().find(|name| !name.is_empty())?;
    let name = name.chars().filter(|c| !c.is_control());
    Some(name.take(NAME_MAX).collect())
}
