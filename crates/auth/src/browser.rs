//! Opens a URL in the person's browser, without a shell.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use url::Url;

use crate::AuthError;

/// What opens URLs with the person's browser.
#[cfg(target_os = "macos")]
const OPENERS: &[&str] = &["open"];
#[cfg(not(target_os = "macos"))]
const OPENERS: &[&str] = &["xdg-open", "wslview", "x-www-browser", "www-browser"];

/// An opener that still runs by then has found a browser.
const OPENER_DEADLINE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// Opens an http or https URL in the person's browser.
pub fn open_browser(url: &Url) -> Result<(), AuthError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AuthError::NoBrowser);
    }
    // Programs that understand this variable separate several browsers with colons.
    let variable = std::env::var("BROWSER").unwrap_or_default();
    let named = variable.split(':').filter(|name| !name.is_empty());
    let mut openers = named.chain(OPENERS.iter().copied());
    match openers.any(|opener| opens(opener, url)) {
        true => Ok(()),
        false => Err(AuthError::NoBrowser),
    }
}

/// Whether a program took the URL. It gets the URL as its only argument, and nothing of ours to read or write.
fn opens(program: &str, url: &Url) -> bool {
    let started = Command::new(program)
        .arg(url.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else {
        return false;
    };
    let deadline = Instant::now() + OPENER_DEADLINE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            Ok(None) | Err(_) => break,
        }
    }
    // A browser in the foreground lives on after us, and would be a zombie until then.
    std::thread::spawn(move || child.wait());
    true
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{open_browser, opens};

    #[test]
    fn only_web_pages_are_opened() {
        for url in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ssh://example.com",
        ] {
            assert!(open_browser(&Url::parse(url).unwrap()).is_err(), "{url}");
        }
    }

    #[test]
    fn the_url_is_one_argument_and_no_shell_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let opener = folder.path().join("opener");
        std::fs::write(&opener, "#!/bin/sh\nprintf '%s' \"$#$1\" > \"$0.seen\"\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&opener, mode).unwrap();
        let text = "https://example.com/?a=$(touch%20x)&b=`id`;c='";
        let url = Url::parse(text).unwrap();
        assert!(opens(opener.to_str().unwrap(), &url));
        let seen = std::fs::read_to_string(folder.path().join("opener.seen")).unwrap();
        assert_eq!(seen, format!("1{url}"));
        assert!(!opens("/does/not/exist", &url));
    }
}
