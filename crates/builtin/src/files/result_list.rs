//! A list of results that stops growing when the answer is large enough.

use serde_json::Value;

use crate::tool::TEXT_LIMIT;

/// Room for what an answer says besides its list.
const RESERVED: usize = 8 << 10;

/// Results, limited in number and length.
pub(super) struct ResultList {
    items: Vec<Value>,
    most: usize,
    bytes: usize,
}

/// There is no room for another result.
pub(super) struct ListFull;

impl ResultList {
    pub(super) fn new(most: usize) -> ResultList {
        ResultList {
            items: Vec::new(),
            most,
            bytes: 0,
        }
    }

    pub(super) fn push(&mut self, item: Value) -> Result<(), ListFull> {
        let bytes = self.bytes + item.to_string().len() + 1;
        if self.items.len() >= self.most || bytes > TEXT_LIMIT - RESERVED {
            return Err(ListFull);
        }
        self.bytes = bytes;
        self.items.push(item);
        Ok(())
    }

    pub(super) fn into_json(self) -> Value {
        Value::Array(self.items)
    }
}
