//! Keys that verify signatures. Each has one algorithm, which follows from what kind of key it is.

use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use spki::der::asn1::UintRef;
use spki::der::{Decode as _, Reader as _, SliceReader};
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const ED25519_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureAlgorithm {
    Hs256,
    Rs256,
    Es256,
    EdDsa,
}

impl SignatureAlgorithm {
    /// The `alg` of a token's header.
    pub fn name(self) -> &'static str {
        match self {
            SignatureAlgorithm::Hs256 => "HS256",
            SignatureAlgorithm::Rs256 => "RS256",
            SignatureAlgorithm::Es256 => "ES256",
            SignatureAlgorithm::EdDsa => "EdDSA",
        }
    }
}

#[derive(Debug)]
pub(crate) enum VerificationKey {
    Secret(hmac::Key),
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl VerificationKey {
    pub fn secret(secret: &[u8]) -> VerificationKey {
        VerificationKey::Secret(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// An RSA key of 2048 to 8192 bits.
    pub fn rsa(modulus: &[u8], exponent: &[u8]) -> Option<VerificationKey> {
        let modulus = without_leading_zeros(modulus);
        let bits = modulus.len() * 8 - modulus.first()?.leading_zeros() as usize;
        (2048..=8192).contains(&bits).then(|| VerificationKey::Rsa {
            modulus: modulus.to_vec(),
            exponent: without_leading_zeros(exponent).to_vec(),
        })
    }

    /// A point on P-256 in its uncompressed form.
    pub fn p256(point: &[u8]) -> Option<VerificationKey> {
        (point.len() == 65 && point[0] == 4).then(|| VerificationKey::P256(point.to_vec()))
    }

    pub fn ed25519(key: &[u8]) -> Option<VerificationKey> {
        (key.len() == 32).then(|| VerificationKey::Ed25519(key.to_vec()))
    }

    /// A `SubjectPublicKeyInfo`, which is what a PEM file with a public key holds.
    pub fn from_der(der: &[u8]) -> Option<VerificationKey> {
        let info = SubjectPublicKeyInfoRef::from_der(der).ok()?;
        let key = info.subject_public_key.as_bytes()?;
        let parameter = || info.algorithm.parameters_oid().ok();
        match info.algorithm.oid {
            RSA => {
                let (modulus, exponent) = rsa_components(key)?;
                VerificationKey::rsa(modulus, exponent)
            }
            EC if parameter() == Some(P256) => VerificationKey::p256(key),
            ED25519_KEY => VerificationKey::ed25519(key),
            _ => None,
        }
    }

    pub fn algorithm(&self) -> SignatureAlgorithm {
        match self {
            VerificationKey::Secret(_) => SignatureAlgorithm::Hs256,
            VerificationKey::Rsa { .. } => SignatureAlgorithm::Rs256,
            VerificationKey::P256(_) => SignatureAlgorithm::Es256,
            VerificationKey::Ed25519(_) => SignatureAlgorithm::EdDsa,
        }
    }

    /// Whether this key made the signature.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            VerificationKey::Secret(key) => hmac::verify(key, message, signature),
            VerificationKey::Rsa { modulus, exponent } => {
                let (n, e) = (modulus, exponent);
                RsaPublicKeyComponents { n, e }.verify(
                    &RSA_PKCS1_2048_8192_SHA256,
                    message,
                    signature,
                )
            }
            VerificationKey::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            VerificationKey::Ed25519(key) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
        }
        .is_ok()
    }
}

/// The modulus and the exponent of an `RSAPublicKey` (RFC 8017, appendix A.1.1).
fn rsa_components(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = SliceReader::new(der).ok()?;
    let components = reader.sequence(|fields| {
        let modulus = UintRef::decode(fields)?;
        let exponent = UintRef::decode(fields)?;
        Ok::<_, spki::der::Error>((modulus.as_bytes(), exponent.as_bytes()))
    });
    let components = components.ok()?;
    reader.finish().ok().map(|()| components)
}

fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}
