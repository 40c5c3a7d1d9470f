//! Codes that are typed into a browser.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use mcp_proxy_token::{PAIRING_LIFETIME, PairingCodes, PairingError, PairingRefusal, TokenRequest};

fn request(user: &str) -> TokenRequest {
    TokenRequest {
        user: user.to_owned(),
        lifetime: Duration::from_secs(60),
        connection_url: None,
    }
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

#[test]
fn a_code_is_typed_in_any_form_and_works_once() {
    let now = Instant::now();
    let mut codes = PairingCodes::default();
    let code = codes.offer(request("ada"), now).unwrap();
    assert_eq!((code.len(), code.find('-')), (9, Some(4)));
    let typed = code.to_lowercase().replace('-', " ");
    let redeemed = codes.redeem(&typed, address(1), now).unwrap();
    assert_eq!(redeemed.user, "ada");
    let again = codes.redeem(&code, address(1), now);
    assert_eq!(again.unwrap_err(), PairingRefusal::Invalid);
}

#[test]
fn wrong_old_and_used_codes_are_refused_alike() {
    let now = Instant::now();
    let mut codes = PairingCodes::default();
    let code = codes.offer(request("ada"), now).unwrap();
    let later = now + PAIRING_LIFETIME;
    let just_before = later - Duration::from_millis(1);
    for (place, typed) in [
        "",
        "AAAA-AAAA",
        "K7QD",
        "ä",
        &code.repeat(2),
        &"-".repeat(99),
    ]
    .into_iter()
    .enumerate()
    {
        let from = address(u8::try_from(place).unwrap());
        let refused = codes.redeem(typed, from, now).unwrap_err();
        assert_eq!(refused, PairingRefusal::Invalid, "{typed}");
    }
    let late = codes.redeem(&code, address(9), later).unwrap_err();
    assert_eq!(late, PairingRefusal::Invalid);
    let code = codes.offer(request("ada"), now).unwrap();
    assert!(codes.redeem(&code, address(9), just_before).is_ok());
}

#[test]
fn codes_are_random_and_only_so_many_are_open() {
    let now = Instant::now();
    let mut codes = PairingCodes::default();
    let made: HashSet<String> = (0..64)
        .map(|_| codes.offer(request("ada"), now).unwrap())
        .collect();
    assert_eq!(made.len(), 64);
    let more = codes.offer(request("ada"), now);
    assert_eq!(more.unwrap_err(), PairingError::TooManyCodes);
    assert!(codes.offer(request("ada"), now + PAIRING_LIFETIME).is_ok());
    let shown = format!("{codes:?}");
    assert!(made.iter().all(|code| !shown.contains(code)), "{shown}");
}

#[test]
fn one_address_can_try_a_few_codes_and_then_one_every_two_seconds() {
    let mut now = Instant::now();
    let mut codes = PairingCodes::default();
    let mut try_one = |from, now| codes.redeem("AAAA-AAAA", from, now).unwrap_err();
    for _ in 0..5 {
        assert_eq!(try_one(address(1), now), PairingRefusal::Invalid);
    }
    let PairingRefusal::TooManyAttempts(wait) = try_one(address(1), now) else {
        panic!("a sixth attempt");
    };
    assert_eq!(wait, Duration::from_secs(2));
    // Others are not held back, unless they share a network.
    assert_eq!(try_one(address(2), now), PairingRefusal::Invalid);
    now += wait;
    assert_eq!(try_one(address(1), now), PairingRefusal::Invalid);
    assert_ne!(try_one(address(1), now), PairingRefusal::Invalid);
    let host = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
    for last in 0..5 {
        assert_eq!(try_one(host(last), now), PairingRefusal::Invalid);
    }
    assert_ne!(try_one(host(5), now), PairingRefusal::Invalid);
}

#[test]
fn all_addresses_together_have_a_limit_too() {
    let now = Instant::now();
    let mut codes = PairingCodes::default();
    let code = codes.offer(request("ada"), now).unwrap();
    for last in 0..20 {
        let refused = codes.redeem("AAAA-AAAA", address(last), now);
        assert_eq!(refused.unwrap_err(), PairingRefusal::Invalid);
    }
    let PairingRefusal::TooManyAttempts(wait) = codes.redeem(&code, address(100), now).unwrap_err()
    else {
        panic!("a further attempt");
    };
    // The code was not even looked at, so it is still good.
    assert!(codes.redeem(&code, address(100), now + wait).is_ok());
}
