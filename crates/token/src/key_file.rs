//! Files with keys.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rustls_pki_types::pem::{PemObject as _, SectionKind};

use crate::KeyError;

/// No key is longer. A path that leads to an endless device ends here.
const LONGEST_FILE: u64 = 64 * 1024;

/// Reads a file with a key.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, KeyError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST_FILE).read_to_end(&mut bytes))
        .map_err(|source| KeyError::Read {
            path: path.to_owned(),
            source,
        })?;
    Ok(bytes)
}

/// Whether this is meant as PEM.
pub(crate) fn is_pem(bytes: &[u8]) -> bool {
    bytes.windows(11).any(|window| window == b"-----BEGIN ")
}

/// The first section of this kind in a PEM file.
pub(crate) fn pem_section(bytes: &[u8], wanted: SectionKind) -> Option<Vec<u8>> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(bytes)
        .filter_map(Result::ok)
        .find_map(|(kind, der)| (kind == wanted).then_some(der))
}
