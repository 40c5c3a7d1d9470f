//! Texts in the form that other programs want: for CSV, TSV, HTML, URLs and shells.

use bytes::Bytes;
use jaq_core::box_iter::box_once;
use jaq_core::native::{Fun, run, v};
use jaq_core::{Cv, ValX};
use jaq_json::Val;

use super::JqEngine;
use super::natives::{failed, text};

const HTML: [(&str, &str); 5] = [
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ("'", "&#39;"),
    ("\"", "&quot;"),
];

pub(super) fn functions() -> Vec<Fun<JqEngine>> {
    vec![
        run(("escape_csv", v(0), |cv| {
            box_once(changed(&cv, |text| text.replace('"', "\"\"")))
        })),
        run(("escape_tsv", v(0), |cv| box_once(changed(&cv, escape_tsv)))),
        run(("escape_sh", v(0), |cv| {
            box_once(changed(&cv, |text| text.replace('\'', r"'\''")))
        })),
        run(("escape_html", v(0), |cv| {
            box_once(changed(&cv, |text| {
                let mut text = text.to_owned();
                for (plain, escaped) in HTML {
                    text = text.replace(plain, escaped);
                }
                text
            }))
        })),
        run(("unescape_html", v(0), |cv| {
            box_once(changed(&cv, |text| {
                let mut text = text.to_owned();
                for (plain, escaped) in HTML.iter().rev() {
                    text = text.replace(escaped, plain);
                }
                text
            }))
        })),
        run(("encode_uri", v(0), |cv| box_once(changed(&cv, encode_uri)))),
        run(("decode_uri", v(0), |cv| box_once(decode_uri(&cv)))),
    ]
}

/// The input with its text changed, paid for by its length.
fn changed<'a>(cv: &Cv<'a, JqEngine>, change: impl Fn(&str) -> String) -> ValX<'a, Val> {
    let text = paid_text(cv)?;
    Ok(Val::utf8_str(change(&String::from_utf8_lossy(&text))))
}

fn paid_text<'a>(cv: &Cv<'a, JqEngine>) -> ValX<'a, Bytes, Val> {
    let text = text(&cv.1)?;
    cv.0.data().account.pay_text(text.len())?;
    Ok(text.clone())
}

fn escape_tsv(text: &str) -> String {
    let text = text.replace('\\', r"\\").replace('\t', r"\t");
    text.replace('\n', r"\n").replace('\r', r"\r")
}

fn encode_uri(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn decode_uri<'a>(cv: &Cv<'a, JqEngine>) -> ValX<'a, Val> {
    let text = paid_text(cv)?;
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = &text[..];
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded
            .push(byte.ok_or_else(|| failed("the text has a % without two hexadecimal digits"))?);
        rest = &after[2..];
    }
    Ok(Val::utf8_str(decoded))
}
