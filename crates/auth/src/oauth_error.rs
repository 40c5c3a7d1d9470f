//! Errors of authorization servers, reduced to their codes: the rest of such an answer is somebody else's text.

use http::StatusCode;
use serde::Deserialize;
use url::Url;

use crate::AuthError;
use crate::server_key::host_of;

const CODE_MAX: usize = 64;

/// What an answer of an endpoint says if it is not a success.
pub(crate) fn refusal_of(url: &Url, status: StatusCode, body: &[u8]) -> Option<AuthError> {
    #[derive(Deserialize)]
    struct Answer {
        error: String,
    }
    if status.is_success() {
        return None;
    }
    let host = host_of(url);
    let answer: Option<Answer> = serde_json::from_slice(body).ok();
    Some(match answer {
        Some(answer) => AuthError::Refused {
            host,
            code: error_code(&answer.error),
        },
        None => AuthError::Status {
            host,
            status: status.as_u16(),
        },
    })
}

/// An error code as we repeat it: short, and without characters that codes do not have.
pub(crate) fn error_code(text: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let code: String = text.chars().filter(is_plain).take(CODE_MAX).collect();
    match code.is_empty() {
        true => "error".to_owned(),
        false => code,
    }
}

/// Whether the tokens will never be renewed again.
pub(crate) fn is_final(error: &AuthError) -> bool {
    matches!(error, AuthError::Refused { code, .. }
        if matches!(code.as_str(), "invalid_grant" | "invalid_client" | "unauthorized_client"))
}

/// Whether other scopes may be granted. A registration that names scopes fails with a code of its own.
pub(crate) fn refuses_scopes(error: &AuthError) -> bool {
    matches!(error, AuthError::Refused { code, .. }
        if matches!(code.as_str(), "invalid_scope" | "invalid_client_metadata"))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use url::Url;

    use super::{error_code, refusal_of};
    use crate::AuthError;

    #[test]
    fn only_the_code_of_an_error_is_repeated() {
        let url = Url::parse("https://auth.example.com/token").unwrap();
        let body = br#"{"error":"invalid_grant","error_description":"canary"}"#;
        let refusal = refusal_of(&url, StatusCode::BAD_REQUEST, body).unwrap();
        assert!(matches!(&refusal, AuthError::Refused { code, .. } if code == "invalid_grant"));
        assert!(!refusal.to_string().contains("canary"));
        let refusal = refusal_of(&url, StatusCode::BAD_GATEWAY, b"<html>").unwrap();
        assert!(matches!(refusal, AuthError::Status { status: 502, .. }));
        assert_eq!(refusal_of(&url, StatusCode::OK, b""), None);
    }

    #[test]
    fn a_code_is_short_and_plain() {
        assert_eq!(error_code("bad\x1b[31m code\n"), "bad31mcode");
        assert_eq!(error_code("\u{202e}"), "error");
        assert_eq!(error_code(&"a".repeat(500)).len(), 64);
    }
}
