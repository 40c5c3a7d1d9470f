//! `relay init`: the secret, and what to do next.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use mcp_proxy_token::{TokenVerifier, create_secret};

use crate::cli::relay::{RELAY_PORT, RelayInitArgs};
use crate::config::RelayFile;
use crate::printer;

/// Creates the secret and says what to paste where.
pub fn run(args: &RelayInitArgs) -> Result<ExitCode> {
    let path = RelayFile::Secret.path(args.secret_file.as_deref())?;
    let done = match path.exists() {
        // Tokens that it signed would become invalid.
        true => {
            TokenVerifier::from_secret_file(&path)?;
            "The secret exists, and was kept:"
        }
        false => {
            create_secret(&path)?;
            "Created"
        }
    };
    let flag = match args.secret_file {
        Some(_) => format!(" --jwt-secret-file {}", path.display()),
        None => String::new(),
    };
    let sign = match args.secret_file {
        Some(_) => format!(" --secret-file {}", path.display()),
        None => String::new(),
    };
    let mut out = printer::stdout_writer();
    write!(
        out,
        "{done} {}\n\n\
         1. Run the relay:\n\
         \u{20}    mcp-proxy relay{flag}\n\
         2. Make a token for a user (here: ada):\n\
         \u{20}    mcp-proxy token issue --user ada --connection-url ws://127.0.0.1:{RELAY_PORT}{sign}\n\
         3. Paste the token into the browser extension, and into the config of each MCP client of the same user.\n\
         \u{20}  If the extension can exchange a code, this prints one for it:\n\
         \u{20}    mcp-proxy relay pair --user ada\n\n\
         Anyone who has the token acts as that user: treat it like a password.\n",
        path.display()
    )?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
