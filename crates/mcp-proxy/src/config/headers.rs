//! `--header`: what it says, with the variables of the environment filled in and files read.
//!
//! A secret on a command line can be read by every user of the machine, so there are two other places for it.

use std::io::Read as _;

use anyhow::{Context as _, Result, bail};
use http::{HeaderName, HeaderValue};
use mcp_proxy_hub::config::expand_variables;
use mcp_proxy_wire::headers::HeaderEdits;

/// Nobody has more in a file of headers.
const FILE_BYTES: u64 = 256 * 1024;

/// The headers of all `--header` flags, in order.
pub(super) fn headers(flags: &[String]) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let variable = |name: &str| std::env::var(name).ok();
    let mut headers = Vec::new();
    for flag in flags {
        match flag.trim().strip_prefix('@') {
            None => headers.push(header(flag, &variable).context("--header")?),
            Some(path) => {
                let of_file = || format!("--header @{path}");
                let text = read(path).with_context(of_file)?;
                for line in lines(&text) {
                    headers.push(header(line, &variable).with_context(of_file)?);
                }
            }
        }
    }
    Ok(headers)
}

/// The lines of a file that are headers.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// `Name: value`, where the value may have variables in it, or be `@` and the path of a file that holds it.
fn header(
    line: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':').context("write 'Name: value'")?;
    let name: HeaderName = name
        .trim()
        .parse()
        .with_context(|| format!("`{}` is not a valid header name", name.trim()))?;
    // The proxy writes these itself, and a wrong one would break every request.
    HeaderEdits::default().set(name.as_str(), [])?;
    let value = value.trim();
    let value = match value.strip_prefix('@') {
        Some(literal) if literal.starts_with('@') => literal.to_owned(),
        Some(path) => read(path).with_context(|| name.to_string())?,
        None => expand_variables(value, variable).with_context(|| name.to_string())?,
    };
    let mut value = HeaderValue::from_str(value.trim())
        .with_context(|| format!("the value of {name} has characters that a header cannot have"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn read(path: &str) -> Result<String> {
    let cannot = || format!("cannot read {path}");
    let file = std::fs::File::open(path).with_context(cannot)?;
    let mut text = String::new();
    file.take(FILE_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(cannot)?;
    if text.len() as u64 > FILE_BYTES {
        bail!("{path} is larger than {} KiB", FILE_BYTES / 1024);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "s3cret".to_owned())
    }

    fn value(line: &str) -> Result<String> {
        let (_, value) = header(line, &variable)?;
        Ok(value.to_str()?.to_owned())
    }

    #[test]
    fn headers_of_the_connection_are_refused() {
        for name in ["Content-Length", "transfer-encoding", "Host", "Connection"] {
            assert!(value(&format!("{name}: 5")).is_err(), "{name}");
        }
    }

    #[test]
    fn variables_are_filled_in() {
        assert_eq!(value("A: Bearer ${TOKEN}").unwrap(), "Bearer s3cret");
        assert_eq!(value("A: ${NONE:-x}").unwrap(), "x");
        assert_eq!(value("A: $${TOKEN}").unwrap(), "${TOKEN}");
        assert_eq!(value("A: $5").unwrap(), "$5");
        let error = format!("{:#}", value("A: ${NONE}").unwrap_err());
        assert!(error.contains("NONE"), "{error}");
    }

    #[test]
    fn values_and_lines_come_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let (one, many) = (folder.path().join("one"), folder.path().join("many"));
        std::fs::write(&one, "t0ken\n").unwrap();
        std::fs::write(&many, format!("# ours\nA: 1\n\nB: @{}\r\n", one.display())).unwrap();
        assert_eq!(value(&format!("A: @{}", one.display())).unwrap(), "t0ken");
        assert_eq!(value("A: @@at").unwrap(), "@at");
        let read = headers(&[format!("@{}", many.display()), "C: 3".to_owned()]).unwrap();
        let read: Vec<_> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(read, ["a", "b", "c"]);
        assert!(value("A: @/does/not/exist").is_err());
        std::fs::write(&one, vec![b'x'; 300 * 1024]).unwrap();
        assert!(value(&format!("A: @{}", one.display())).is_err());
    }
}
