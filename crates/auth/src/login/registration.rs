//! Dynamic registration (RFC 7591). rmcp registers public clients only, which some authorization servers do not take.

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use rmcp::transport::auth::{AuthError as RmcpError, OAuthClientConfig};
use serde::Deserialize;
use serde_json::json;

use crate::AuthError;
use crate::discovery::Discovery;

/// The name that authorization servers show to people.
const CLIENT_NAME: &str = "mcp-proxy";

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    /// Some give an empty one to public clients.
    #[serde(default)]
    client_secret: Option<String>,
}

/// Becomes a client of the authorization server.
pub(super) async fn register(
    discovery: &mut Discovery,
    redirect_uri: String,
    scopes: &[String],
) -> Result<OAuthClientConfig, AuthError> {
    let Some(endpoint) = discovery.metadata.registration_endpoint.clone() else {
        return Err(AuthError::NoRegistration {
            host: discovery.issuer_host(),
        });
    };
    let methods = discovery.authorization_server().auth_methods;
    let mut registration = json!({
        "client_name": CLIENT_NAME,
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method(&methods),
    });
    if !scopes.is_empty() {
        registration["scope"] = scopes.join(" ").into();
    }
    let Some(registered) = post(discovery, &endpoint, registration.to_string()).await else {
        return Err(discovery.error(RmcpError::RegistrationFailed(String::new())));
    };
    let secret = registered.client_secret.filter(|secret| !secret.is_empty());
    let config = OAuthClientConfig::new(registered.client_id, redirect_uri);
    let config = config.with_scopes(scopes.to_vec());
    let config = match secret {
        Some(secret) => config.with_client_secret(secret),
        None => config,
    };
    let configured = discovery.manager.configure_client(config.clone());
    configured.map_err(|error| discovery.error(error))?;
    Ok(config)
}

/// Sends a registration. After a failure, the client of the discovery knows the reason.
async fn post(discovery: &Discovery, endpoint: &str, body: String) -> Option<Registered> {
    let request = Request::post(endpoint)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(body.into_bytes());
    let answer = discovery.client.send(request.ok()?).await.ok()?;
    let is_success = answer.status().is_success();
    let body = is_success.then(|| answer.into_body())?;
    serde_json::from_slice(&body).ok()
}

/// A program on a person's machine keeps no secret from that person: it has one only if it must.
fn auth_method(offered: &[String]) -> &'static str {
    let known = ["none", "client_secret_basic", "client_secret_post"];
    let is_offered = |method: &&str| offered.iter().any(|offered| offered == method);
    known.into_iter().find(is_offered).unwrap_or("none")
}

#[cfg(test)]
mod tests {
    use super::auth_method;

    #[test]
    fn a_client_has_a_secret_only_if_it_must() {
        for (offered, chosen) in [
            (&[][..], "none"),
            (&["client_secret_post", "none"], "none"),
            (&["client_secret_post"], "client_secret_post"),
            (
                &[
                    "private_key_jwt",
                    "client_secret_post",
                    "client_secret_basic",
                ],
                "client_secret_basic",
            ),
            (&["private_key_jwt"], "none"),
        ] {
            let offered: Vec<String> = offered.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(auth_method(&offered), chosen);
        }
    }
}
