//! Values out of a request that has been verified: event ids, types, times, items of a batch.

use std::borrow::Cow;

use super::json::{self, JsonFault};
use super::json_path::JsonPath;
use super::limits::MAX_VALUE_BYTES;
use super::locator::Locator;
use super::refusal::{Refusal, Role};
use super::request::{Request, View};

/// The most items of a batch that become events of their own; the largest batches known have some
/// thousand.
pub const MAX_BATCH_ITEMS: usize = 10_000;

impl<'a> Request<'a> {
    /// The value at a place; nothing for an absent one and for a JSON null. Entries of a signature
    /// header cannot be read here.
    ///
    /// # Errors
    /// When the value is there twice, is no scalar, has more than
    /// [`MAX_VALUE_BYTES`], or the body is not the JSON that the place is in.
    pub fn value(&'a self, at: &Locator) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
        View::of(self, None).find(at, Role::Event, MAX_VALUE_BYTES)
    }

    /// The same, with JSON paths that start at an item of the body.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    pub fn value_in(
        &'a self,
        item: &'a [u8],
        at: &Locator,
    ) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
        View { document: item, ..View::of(self, None) }.find(at, Role::Event, MAX_VALUE_BYTES)
    }

    /// The items of a batch, as they are written in the body, in order; nothing for each place where
    /// the path leads nowhere, so that a caller can account for all that the body has: an element
    /// without the member that the path names, or a body without the array.
    ///
    /// # Errors
    /// When the body is not JSON, a member on the way is there twice, or there are more than
    /// [`MAX_BATCH_ITEMS`].
    pub fn items(&self, path: &JsonPath) -> Result<Vec<Option<&'a [u8]>>, Refusal> {
        json::elements(self.body, path, MAX_BATCH_ITEMS).map_err(|fault| match fault {
            JsonFault::TooMany => Refusal::TooManyItems,
            JsonFault::Repeated => Refusal::Repeated(Role::Event),
            JsonFault::Malformed | JsonFault::NotScalar => Refusal::MalformedBody,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(found: Option<Cow<'_, [u8]>>) -> Option<String> {
        found.map(|bytes| String::from_utf8(bytes.into_owned()).unwrap())
    }

    #[test]
    fn values_and_items_are_found_where_they_stand() {
        let headers = [("X-Event", "push")];
        let body = br#"{"id":7,"list":[{"k":"a"},{"k":null},{"k":{"x":1}}]}"#;
        let url = "https://hooks.example/in?a=b%20c";
        let request = Request { method: "POST", url, headers: &headers, body };
        let at = |place: &str| request.value(&place.parse().unwrap()).map(text);
        assert_eq!(at("header:x-event"), Ok(Some("push".into())));
        assert_eq!(at("query:a"), Ok(Some("b c".into())));
        assert_eq!(at("json:id"), Ok(Some("7".into())));
        assert_eq!(at("json:none"), Ok(None));
        assert_eq!(at("signature:t"), Ok(None));
        let items = request.items(&JsonPath::parse("list[*]").unwrap()).unwrap();
        let place = "json:k".parse().unwrap();
        let found: Vec<_> =
            items.iter().flatten().map(|item| request.value_in(item, &place).map(text)).collect();
        let expected = [Ok(Some("a".to_owned())), Ok(None), Err(Refusal::Malformed(Role::Event))];
        assert_eq!(found, expected);
    }
}
