//! What is kept of a message that is given up, because it is too large or there is no room for it: its two ends.
//!
//! They usually tell which request it was, or which it answers, so that somebody can be told. They are read forward over the
//! outermost members until one that does not end in front, then backward over scalar members from the end.
//! (TypeScript servers write `{"result":…,"jsonrpc":"2.0","id":1}`: the id is only at the end.) What lies between the
//! ends is not seen, so nothing here says that the message is valid.

use crate::message::{BOM, HeadMembers, whole_number};
use crate::scan::{self, MemberKey, RootKind, ScanEnd};
use crate::{Id, Kind, text};

/// How much is kept of the two ends. The front is enough for what clients and servers write in front of the contents.
const FRONT: usize = 64 * 1024;
const BACK: usize = 4 * 1024;

/// The first and the last bytes of a message that is given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageEnds {
    front: Vec<u8>,
    back: Vec<u8>,
}

impl MessageEnds {
    /// Those of a message whose bytes are all here.
    pub fn of(message: &[u8]) -> MessageEnds {
        let mut ends = MessageEnds::default();
        ends.add(message);
        ends
    }

    /// More of it has come.
    pub fn add(&mut self, bytes: &[u8]) {
        let in_front = bytes.len().min(FRONT - self.front.len());
        self.front.extend_from_slice(&bytes[..in_front]);
        self.back
            .extend_from_slice(&bytes[bytes.len().saturating_sub(BACK)..]);
        let longer = self.back.len().saturating_sub(BACK);
        self.back.drain(..longer);
    }

    /// What its front tells while its end has not come.
    pub fn front_head(&self) -> PartialHead {
        read_partial_head(&self.front, b"")
    }

    /// What both ends tell when it has come.
    pub fn head(&self) -> PartialHead {
        read_partial_head(&self.front, &self.back)
    }
}

/// What the two ends of a message tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialHead {
    /// What it is, as far as can be seen.
    pub kind: Kind,
    /// Its id.
    pub id: Option<Id>,
    /// Its method, escapes resolved.
    pub method: Option<String>,
    /// `params.name`, if it stands in front.
    pub name: Option<String>,
    /// `error.code`, if it stands in front.
    pub error_code: Option<i64>,
}

/// Reads the head from the first bytes (64 KiB are enough for what clients and servers write) and the last bytes
/// (4 KiB). The two may overlap. An empty `back` means that the end is not known.
pub fn read_partial_head(front: &[u8], back: &[u8]) -> PartialHead {
    let front = front.strip_prefix(BOM).unwrap_or(front);
    let mut members = HeadMembers::<&[u8]>::default();
    let scan = scan::scan(front, |key, span| {
        if let Some(slot) = members.slot(key) {
            *slot = front.get(span.range());
        }
    });
    // The member that does not end in front is looked into, as far as it goes, but it is not an id or method yet.
    let mut unfinished = HeadMembers::<&[u8]>::default();
    if let Some((key, start)) = scan.open
        && let Some(slot) = unfinished.slot(key)
    {
        *slot = front.get(start..);
        if let Some(slot) = members.slot(key) {
            *slot = None;
        }
    }
    let params = unfinished.params.or(members.params);
    let error = unfinished.error.or(members.error);

    let mut from_back = HeadMembers::<&[u8]>::default();
    let mut ends_well = back.is_empty() || scan.end == ScanEnd::Complete;
    if scan.root == RootKind::Object {
        ends_well |= each_from_back(back, |key, token| {
            // This runs from the last member, and with duplicate keys the last counts.
            if let Some(slot) = from_back.slot(key)
                && slot.is_none()
            {
                *slot = Some(token);
            }
        });
    }
    let known = from_back.or(members);
    let kind = match (scan.root, scan.end) {
        (_, ScanEnd::Bad | ScanEnd::TooDeep) | (RootKind::Nothing, _) => Kind::Malformed,
        (RootKind::Array, _) => Kind::Batch,
        (RootKind::Scalar, _) => Kind::Other,
        (RootKind::Object, _) if !ends_well => Kind::Malformed,
        (RootKind::Object, _) => known.or(unfinished).kind(),
    };
    PartialHead {
        kind,
        id: known.id.map(Id::from_token),
        method: known.method.and_then(string),
        name: params
            .and_then(|params| member(params, "name"))
            .and_then(string),
        error_code: error
            .and_then(|error| member(error, "code"))
            .and_then(whole_number),
    }
}

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    object.get(scan::find(object, name)?.range())
}

fn string(token: &[u8]) -> Option<String> {
    text::quoted(token).map(|raw| text::text(raw).into_owned())
}

/// Reports the scalar members at the end of an object, last first, up to one that is not a scalar or not whole. False if
/// the text does not end an object.
fn each_from_back<'a>(back: &'a [u8], mut report: impl FnMut(MemberKey<'a>, &'a [u8])) -> bool {
    let Some(mut rest) = trim(back).strip_suffix(b"}") else {
        return false;
    };
    while let Some((key, token, before)) = last_member(rest) {
        match before.split_last() {
            Some((b',', before)) => rest = before,
            Some((b'{', _)) => rest = &[],
            _ => break,
        }
        report(key, token);
    }
    true
}

/// The scalar member at the end of `text`, and what stands before it.
fn last_member(text: &[u8]) -> Option<(MemberKey<'_>, &[u8], &[u8])> {
    let (before, token) = last_scalar(trim(text))?;
    let (before, key) = last_string(trim(trim(before).strip_suffix(b":")?))?;
    let raw = text::quoted(key)?;
    let sound = |text| scan::scan(text, |_, _| {}).end == ScanEnd::Complete;
    if !sound(token) || !sound(key) {
        return None;
    }
    let escaped = memchr::memchr(b'\\', raw).is_some();
    Some((MemberKey { raw, escaped }, token, trim(before)))
}

fn last_scalar(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.ends_with(b"\"") {
        return last_string(text);
    }
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let start = text.iter().rposition(|byte| !plain(byte))? + 1;
    Some(text.split_at(start))
}

/// Splits off the string that `text` ends with. Its first quote is the last one that no backslash stands before: those
/// inside are escaped.
fn last_string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut content = text.strip_suffix(b"\"")?;
    loop {
        let quote = memchr::memrchr(b'"', content)?;
        // The very first byte may be an escaped quote whose backslash was cut off.
        if *content.get(quote.checked_sub(1)?)? != b'\\' {
            return Some(text.split_at(quote));
        }
        content = &content[..quote];
    }
}

/// Cuts white space off the end.
fn trim(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    end.map_or(&[], |end| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    fn head(front: &str, back: &str) -> PartialHead {
        read_partial_head(front.as_bytes(), back.as_bytes())
    }

    fn token(head: &PartialHead) -> Option<String> {
        head.id.as_ref().map(Id::to_string)
    }

    #[test]
    fn an_id_in_front_or_at_the_end_is_found() {
        let one = head(
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#,
            r#"xt":"\"}"}]}}"#,
        );
        assert_eq!(
            (one.kind, token(&one).as_deref()),
            (Kind::Response, Some("7"))
        );
        let two = head(
            r#"{"result":{"content":[{"te"#,
            r#"xt":"x"}]},"jsonrpc":"2.0" , "id" : "a\"b" } "#,
        );
        assert_eq!(
            (two.kind, token(&two).as_deref()),
            (Kind::Response, Some(r#""a\"b""#))
        );
        let three = head(
            r#"{"params":{"name":"t\u0065st","arguments":{"x":"#,
            r#""},"method":"tools/call","id":1.0}"#,
        );
        assert_eq!(
            (three.kind, three.method.as_deref(), three.name.as_deref()),
            (Kind::Request, Some("tools/call"), Some("test"))
        );
        assert_eq!(token(&three).as_deref(), Some("1.0"));
    }

    #[test]
    fn what_is_cut_is_not_taken_for_whole() {
        let cut = head(r#"{"method":"a","id":12"#, r#"34,"params":{}}"#);
        assert_eq!((cut.kind, token(&cut)), (Kind::Request, None));
        let cut = head(r#"{"x":"..."#, r#""id":1}"#);
        assert_eq!(token(&cut), None, "the first quote may be an escaped one");
        let cut = head(r#"{"x":"..."#, r#" \",\"id":1}"#);
        assert_eq!(token(&cut), None);
    }

    #[test]
    fn the_last_duplicate_counts() {
        let both = head(r#"{"id":1,"result":{"#, r#"},"id":2,"id":3}"#);
        assert_eq!(token(&both).as_deref(), Some("3"));
    }

    #[test]
    fn kinds_are_seen_from_either_end() {
        assert_eq!(head("[{\"id\":1,", "}]").kind, Kind::Batch);
        assert_eq!(head("\"long", "text\"").kind, Kind::Other);
        assert_eq!(
            head("{\"id\":1,\"error\":{\"code\":-32601,\"data\":\"", "\"}}").error_code,
            Some(-32601)
        );
        assert_eq!(
            head("{\"id\":1,\"error\":{\"code\":-32601,\"data\":\"", "\"}}").kind,
            Kind::Error
        );
        assert_eq!(
            head("{\"id\":1,\"x\":[1,", "],\"result\":null}").kind,
            Kind::Response
        );
        assert_eq!(head("{\"id\":1,\"result\":[1,", "]").kind, Kind::Malformed);
        assert_eq!(head("{\"id\":1,\"result\":[1,", "").kind, Kind::Response);
        let broken = head("{\"id\":1,\"result\":[}", "],\"method\":\"x\"}");
        assert_eq!(
            (broken.kind, token(&broken).as_deref()),
            (Kind::Malformed, Some("1"))
        );
        assert_eq!(head("", "").kind, Kind::Malformed);
    }

    #[test]
    fn a_whole_message_reads_as_the_parser_reads_it() {
        let text = "\u{feff} {\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\\n\",\"params\":{\"name\":\"n\"}}\n";
        let head = head(text, &text[10..]);
        let message = Message::parse(text);
        assert_eq!(
            (head.kind, head.id, head.method.as_deref()),
            (message.kind(), message.id(), message.method().as_deref())
        );
        assert_eq!(head.name.as_deref(), Some("n"));
    }
}
