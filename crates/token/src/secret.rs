//! The shared secret of HS256, in a file.
//!
//! The key is the text of the file without the line break at its end, not what the text may encode. So other programs
//! that sign tokens can use the same file as it is.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::{KeyError, key_file};

/// As many bytes as the hash has (RFC 7518, section 3.2).
const SHORTEST_SECRET: usize = 32;

/// Creates a file with a new secret, 32 random bytes as base64url text, for the user alone. A file that exists is left as
/// it is: tokens that its secret signed would become invalid.
pub fn create_secret(path: &Path) -> Result<(), KeyError> {
    let mut random = [0; SHORTEST_SECRET];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| KeyError::NoRandomness)?;
    let text = format!("{}\n", URL_SAFE_NO_PAD.encode(random));
    write_new(path, text.as_bytes()).map_err(|source| KeyError::Create {
        path: path.to_owned(),
        source,
    })
}

/// The secret in the contents of a file.
pub(crate) fn parse_secret(path: &Path, mut bytes: Vec<u8>) -> Result<Vec<u8>, KeyError> {
    if key_file::is_pem(&bytes) {
        return Err(KeyError::PemAsSecret {
            path: path.to_owned(),
        });
    }
    for line_break in [b'\n', b'\r'] {
        if bytes.last() == Some(&line_break) {
            bytes.pop();
        }
    }
    match bytes.len() {
        SHORTEST_SECRET.. => Ok(bytes),
        length => Err(KeyError::ShortSecret {
            path: path.to_owned(),
            length,
        }),
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
