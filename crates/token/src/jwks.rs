//! JSON Web Key Sets: several public keys in one document (RFC 7517, section 5).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::KeyError;
use crate::compact::parse_object;
use crate::verification_key::VerificationKey;

/// A key of a set, with its name if it has one.
#[derive(Debug)]
pub(crate) struct NamedKey {
    pub kid: Option<String>,
    pub key: VerificationKey,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct JsonWebKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The keys of a set that can verify tokens. Others are passed over, as the RFC says: a set may have keys for encryption,
/// and kinds that nobody knew when this was written.
pub(crate) fn parse(json: &[u8]) -> Result<Vec<NamedKey>, KeyError> {
    let set: KeySet = parse_object(json).ok_or(KeyError::NotKeySet)?;
    let keys = set.keys.into_iter().filter_map(|value| {
        let key: JsonWebKey = parse_object(value.get().as_bytes())?;
        let verification_key = key.verification_key()?;
        Some(NamedKey {
            kid: key.kid,
            key: verification_key,
        })
    });
    let keys: Vec<_> = keys.collect();
    match keys.is_empty() {
        true => Err(KeyError::NoUsableKey),
        false => Ok(keys),
    }
}

impl JsonWebKey {
    /// The key, if it is meant to verify signatures of an algorithm that we know. A secret (`oct`) never is:
    /// key sets are published.
    fn verification_key(&self) -> Option<VerificationKey> {
        let is_for_signatures = self.purpose.as_ref().is_none_or(|word| word == "sig");
        let operations = self.key_ops.as_ref();
        if !is_for_signatures
            || operations.is_some_and(|all| !all.iter().any(|one| one == "verify"))
        {
            return None;
        }
        let key = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => VerificationKey::rsa(&bytes(&self.n)?, &bytes(&self.e)?)?,
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(&self.x)?, bytes(&self.y)?);
                let is_whole = x.len() == 32 && y.len() == 32;
                let point = [&[4], x.as_slice(), y.as_slice()].concat();
                is_whole.then(|| VerificationKey::p256(&point)).flatten()?
            }
            ("OKP", Some("Ed25519")) => VerificationKey::ed25519(&bytes(&self.x)?)?,
            _ => return None,
        };
        let algorithm = key.algorithm().name();
        let is_same = self.alg.as_ref().is_none_or(|alg| alg == algorithm);
        is_same.then_some(key)
    }
}

fn bytes(text: &Option<String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.as_ref()?).ok()
}
