//! Why a TLS connection failed, in plain words: the library's own texts are in part its debug output.

use rustls::{CertificateError, Error};

/// What is wrong, and what to do about it where that is clear.
pub(crate) fn failure_text(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => certificate_text(why),
        Error::InvalidMessage(_) => {
            "the server does not answer with TLS; perhaps its URL begins with http://".to_owned()
        }
        Error::AlertReceived(alert) => {
            format!(
                "the server ended the TLS handshake: {}",
                words(&format!("{alert:?}"))
            )
        }
        Error::PeerIncompatible(why) => {
            let why = words(&format!("{why:?}"));
            format!("the server's TLS does not fit: {why}")
        }
        Error::PeerMisbehaved(why) => {
            let why = words(&format!("{why:?}"));
            format!("the server breaks the rules of TLS: {why}")
        }
        other => other.to_string(),
    }
}

fn certificate_text(error: &CertificateError) -> String {
    use CertificateError as Why;
    let what = match error {
        Why::UnknownIssuer => {
            "is signed by an authority that is not trusted here; name that authority's certificate with --ca-file"
        }
        Why::Expired | Why::ExpiredContext { .. } => "has expired",
        Why::NotValidYet | Why::NotValidYetContext { .. } => {
            "is not valid yet; is the clock of this machine right?"
        }
        Why::NotValidForName => "is for another host",
        Why::NotValidForNameContext { expected, .. } => {
            let host = expected.to_str();
            return format!("the server's certificate is for another host than {host}");
        }
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => "is not one for servers",
        Why::Revoked => "was revoked",
        Why::BadSignature => "is not signed by the authority that it names",
        Why::BadEncoding => "cannot be read",
        // webpki's errors have no text but their names.
        Why::Other(other) => match other.to_string().as_str() {
            "CaUsedAsEndEntity" => {
                "is that of an authority (CA:TRUE) and cannot be the server's own; make one with CA:FALSE for the server"
            }
            name => {
                let why = words(name);
                return format!("the server's certificate is not accepted: {why}");
            }
        },
        other => {
            let name = format!("{other:?}");
            let why = words(
                name.split(|letter: char| !letter.is_alphanumeric())
                    .next()
                    .unwrap_or_default(),
            );
            return format!("the server's certificate is not accepted: {why}");
        }
    };
    format!("the server's certificate {what}")
}

/// `UnsupportedCertVersion` as `unsupported cert version`. What is not such a name stays.
fn words(name: &str) -> String {
    if !name.chars().all(char::is_alphanumeric) {
        return name.to_owned();
    }
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && text.ends_with(|before: char| before.is_lowercase()) {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{AlertDescription, OtherError};

    use super::*;

    fn webpki(name: &str) -> Error {
        let other = OtherError(Arc::new(std::io::Error::other(name.to_owned())));
        Error::InvalidCertificate(CertificateError::Other(other))
    }

    #[test]
    fn d23_no_text_is_debug_output() {
        let errors = [
            webpki("CaUsedAsEndEntity"),
            webpki("UnsupportedCertVersion"),
            Error::InvalidCertificate(CertificateError::UnknownIssuer),
            Error::InvalidCertificate(CertificateError::UnhandledCriticalExtension),
            Error::AlertReceived(AlertDescription::HandshakeFailure),
            Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType),
            Error::PeerIncompatible(rustls::PeerIncompatible::NoCipherSuitesInCommon),
        ];
        for error in errors {
            let text = failure_text(&error);
            let is_name = |word: &str| {
                word.chars().skip(1).any(char::is_lowercase)
                    && word.chars().skip(1).any(char::is_uppercase)
            };
            assert!(!text.split_whitespace().any(is_name), "{text}");
            assert!(!text.contains("Error("), "{text}");
        }
        assert!(failure_text(&webpki("CaUsedAsEndEntity")).contains("CA:TRUE"));
        assert!(
            failure_text(&webpki("UnsupportedCertVersion")).contains("unsupported cert version")
        );
    }
}
