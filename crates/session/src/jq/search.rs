//! `contains` and `indices` of jq, paid for.
//!
//! Those of `jaq` compare every part with every place, within one call that nothing can stop: with two lists or two texts out
//! of one message, hours. Here each comparison pays.

use jaq_core::{Error, Exn, ValX};
use jaq_json::Val;
use memchr::memmem;

use super::account::Account;

/// Whether `part` is in `whole` in the sense of jq. Each comparison is paid: of two lists there are as many as their lengths
/// multiplied.
pub(super) fn contains<'a>(
    account: &Account,
    whole: &Val,
    part: &Val,
) -> Result<bool, Exn<'a, Val>> {
    match (whole, part) {
        (Val::TStr(whole), Val::TStr(part)) | (Val::BStr(whole), Val::BStr(part)) => {
            account.pay_text(whole.len())?;
            Ok(memmem::find(whole, part).is_some())
        }
        (Val::Arr(whole), Val::Arr(parts)) => {
            for part in parts.iter() {
                let mut found = false;
                for whole in whole.iter() {
                    found = contains(account, whole, part)?;
                    if found {
                        break;
                    }
                }
                if !found {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Val::Obj(whole), Val::Obj(parts)) => {
            for (key, part) in parts.iter() {
                account.pay(1)?;
                match whole.get(key) {
                    Some(whole) if contains(account, whole, part)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (whole, part) => {
            account.pay(1)?;
            Ok(whole == part)
        }
    }
}

/// Where `part` begins in `whole`; in a text, counted in letters. Places that overlap count, so each is paid with its length.
pub(super) fn indices<'a>(account: &Account, whole: &Val, part: &Val) -> ValX<'a, Val> {
    let mut found = Vec::new();
    match (whole, part) {
        (Val::TStr(_), Val::TStr(part)) | (Val::BStr(_), Val::BStr(part)) if part.is_empty() => {}
        (Val::Arr(_), Val::Arr(part)) if part.is_empty() => {}
        (Val::TStr(text), Val::TStr(part)) => {
            let (mut letters, mut counted) = (0, 0);
            places(account, text, part, |place| {
                letters += String::from_utf8_lossy(&text[counted..place])
                    .chars()
                    .count();
                counted = place;
                found.push(Val::from(letters));
            })?;
        }
        (Val::BStr(bytes), Val::BStr(part)) => {
            places(account, bytes, part, |place| found.push(Val::from(place)))?;
        }
        (Val::Arr(whole), Val::Arr(part)) => {
            for (index, window) in whole.windows(part.len()).enumerate() {
                account.pay(part.len())?;
                if window == &part[..] {
                    found.push(Val::from(index));
                }
            }
        }
        (Val::Arr(whole), part) => {
            for (index, element) in whole.iter().enumerate() {
                account.pay(1)?;
                if element == part {
                    found.push(Val::from(index));
                }
            }
        }
        (whole, part) => return Err(Exn::from(Error::index(whole.clone(), part.clone()))),
    }
    Ok(found.into_iter().collect())
}

/// Every place where `part` begins in `text`.
fn places<'a>(
    account: &Account,
    text: &[u8],
    part: &[u8],
    mut tell: impl FnMut(usize),
) -> Result<(), Exn<'a, Val>> {
    account.pay_text(text.len())?;
    let finder = memmem::Finder::new(part);
    let mut at = 0;
    while let Some(next) = finder.find(&text[at..]) {
        account.pay_text(part.len())?;
        tell(at + next);
        at += next + 1;
    }
    Ok(())
}
