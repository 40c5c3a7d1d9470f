//! The host of a URL.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::parts::hex;

/// A host in the one form in which it is compared: percent-decoded, in small letters, without the dot at its end, numbers as IP
/// addresses. Nothing if it is not ASCII, or not a host.
pub(super) fn canonical_host(host: &str) -> Option<String> {
    if let Some(address) = host.strip_prefix('[') {
        let address: Ipv6Addr = address.strip_suffix(']')?.parse().ok()?;
        // It leads to the same machine.
        return Some(match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => format!("[{address}]"),
        });
    }
    let host = decoded(host)?.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"#%/:<>?@[\\]^|".contains(&byte);
    // Punycode of a name that needs none: browsers do not agree on it.
    let is_needless = |label: &str| label.starts_with("xn--") && label.ends_with('-');
    // Browsers take dots away, but not all of them the same ones.
    let has_stray_dot = host.starts_with('.') || host.ends_with('.') || host.contains("..");
    if !host.bytes().all(is_part) || has_stray_dot || host.split('.').any(is_needless) {
        return None;
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    match is_number || number(last).is_some() {
        true => Some(ipv4(host)?.to_string()),
        false => Some(host.to_owned()),
    }
}

fn decoded(host: &str) -> Option<String> {
    let mut bytes = host.bytes();
    let mut decoded = Vec::with_capacity(host.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex(bytes.next()?)? * 16 + hex(bytes.next()?)?,
            _ => byte,
        });
    }
    let decoded = String::from_utf8(decoded).ok()?;
    decoded.is_ascii().then_some(decoded)
}

/// An address of one to four numbers, of which the last fills what is left.
fn ipv4(host: &str) -> Option<Ipv4Addr> {
    let numbers: Option<Vec<u32>> = host.split('.').map(number).collect();
    let numbers = numbers?;
    let (last, front) = numbers.split_last()?;
    if front.len() > 3 || front.iter().any(|number| *number > 255) {
        return None;
    }
    let left = 4 - u32::try_from(front.len()).ok()?;
    if u64::from(*last) >= 1 << (8 * left) {
        return None;
    }
    let mut address = *last;
    for (number, shift) in front.iter().zip([24, 16, 8]) {
        address += number << shift;
    }
    Some(Ipv4Addr::from(address))
}

/// A number in decimal, octal (`0…`) or hexadecimal (`0x…`) digits.
fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None => match text.strip_prefix('0') {
            Some("") | None => (text, 10),
            Some(digits) => (digits, 8),
        },
    };
    let is_digit = |character: char| character.is_digit(radix);
    match digits.chars().all(is_digit) {
        true => u32::from_str_radix(digits, radix).ok(),
        false => None,
    }
}
