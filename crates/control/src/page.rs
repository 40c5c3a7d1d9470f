//! Results that contain recorded messages. Their bytes are put in as they are: never parsed and serialised again.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `get`: messages as `inspect --json` prints them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GetResult {
    /// The messages, in order.
    pub rows: Vec<Box<RawValue>>,
    /// Where the next request should begin, if there are more.
    #[serde(default)]
    pub next: Option<u64>,
    /// The oldest message that can be fetched at all.
    #[serde(default)]
    pub first: u64,
    /// The newest message that can be fetched.
    #[serde(default)]
    pub upto: u64,
}

/// Writes a [`GetResult`] row by row, without a second copy of the rows.
#[derive(Debug)]
pub struct PageWriter {
    json: Vec<u8>,
    rows: u64,
}

impl Default for PageWriter {
    fn default() -> PageWriter {
        PageWriter {
            json: br#"{"rows":["#.to_vec(),
            rows: 0,
        }
    }
}

impl PageWriter {
    /// Adds a row, which is JSON.
    pub fn add(&mut self, row: &[u8]) {
        if self.rows > 0 {
            self.json.push(b',');
        }
        self.rows += 1;
        self.json.extend_from_slice(row);
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.json.len()
    }

    /// The result. See [`GetResult`] for the numbers.
    pub fn finish(mut self, next: Option<u64>, first: u64, upto: u64) -> Vec<u8> {
        let next = next.map_or("null".to_owned(), |next| next.to_string());
        let tail = format!("],\"next\":{next},\"first\":{first},\"upto\":{upto}}}");
        self.json.extend(tail.into_bytes());
        self.json
    }
}

/// Adds a member that is written already, such as `"raw":{…}`, to the end of an object with at least one member.
pub fn with_member(mut object: Vec<u8>, member: &[u8]) -> Vec<u8> {
    object.pop();
    object.push(b',');
    object.extend_from_slice(member);
    object.push(b'}');
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_row_by_row_is_the_result() {
        let rows = [r#"{"sequence":1,  "raw":1.0}"#, r#"{"sequence":2}"#];
        let mut page = PageWriter::default();
        for row in rows {
            page.add(row.as_bytes());
        }
        assert_eq!(page.rows(), 2);
        let written = page.finish(Some(3), 1, 9);
        let read: GetResult = serde_json::from_slice(&written).unwrap();
        assert_eq!(
            read.rows.iter().map(|row| row.get()).collect::<Vec<_>>(),
            rows
        );
        assert_eq!((read.next, read.first, read.upto), (Some(3), 1, 9));
        assert_eq!(serde_json::to_vec(&read).unwrap(), written);
        let empty = PageWriter::default().finish(None, 1, 0);
        assert_eq!(
            serde_json::to_vec(&GetResult {
                first: 1,
                ..GetResult::default()
            })
            .unwrap(),
            empty
        );
    }

    #[test]
    fn a_member_is_added_as_it_is() {
        let object = with_member(b"{\"a\":1}".to_vec(), b"\"raw\":1.0");
        assert_eq!(object, b"{\"a\":1,\"raw\":1.0}");
    }
}
