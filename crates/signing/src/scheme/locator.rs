//! Where a value stands in a request.

use super::json_path::JsonPath;

/// Where a value stands in a request.
///
/// Values are taken as bytes, as they came: a query or form value is percent-decoded, a JSON
/// string is unescaped, a JSON number or boolean is its literal text; nothing else is changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Locator {
    /// A header by its name, lower case. One that comes twice is refused, except for signatures,
    /// where every value counts.
    Header(String),
    /// Headers of one name with a number behind it, from 1: `x-docusign-signature-` and 100. Only
    /// for signatures.
    NumberedHeader {
        /// The name without the number, lower case.
        prefix: String,
        /// The highest number looked at, at most
        /// [`MAX_NUMBERED_HEADER`](super::limits::MAX_NUMBERED_HEADER).
        last: u8,
    },
    /// The credentials of the `authorization` header behind the name of their scheme, such as
    /// `Bearer` or `Basic` (compared without case).
    Authorization(String),
    /// A parameter of the query string, by its decoded name; twice is refused.
    Query(String),
    /// A field of a form body (`application/x-www-form-urlencoded`), by its decoded name; twice is
    /// refused.
    Form(String),
    /// A scalar of a JSON body. In a scheme with [`items`](super::Scheme::items) the path starts
    /// at the item.
    Json(JsonPath),
    /// An entry of the signature header by its tag: `t` in `t=1533204620,v1=…`. Twice is refused.
    SignatureField(String),
}
