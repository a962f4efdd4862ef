//! What is known about a provider.

use super::json_path::JsonPath;
use super::locator::Locator;
use super::model::Scheme;
use super::names::named;

/// The scheme of one provider, and what else a source that receives from it should be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name in configuration, such as `github`.
    pub name: String,
    /// The name for people, such as `GitHub`.
    pub title: String,
    /// How sure the facts are.
    pub evidence: Evidence,
    /// How its requests are verified.
    pub scheme: Scheme,
    /// Where the parts of an event stand.
    pub event: EventRule,
    /// Members of the body that the sender changes from attempt to attempt; they are left out when
    /// two requests with one id are compared.
    pub hash_exclude: Vec<JsonPath>,
    /// How long an id is remembered, in seconds: at least as long as the sender tries again.
    pub dedup_window_seconds: u32,
    /// The status that the sender takes as success.
    pub accepted_status: u16,
    /// What an operator should know, in sentences.
    pub notes: Vec<String>,
}

/// How sure the facts of a preset are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// A published vector passes.
    Vector,
    /// Read in the provider's own documents or code.
    Vendor,
    /// Read in code or documents of others: try it before relying on it.
    ThirdParty,
}

named!(Evidence, "evidence", {
    Vector => "vector",
    Vendor => "vendor",
    ThirdParty => "third-party",
});

/// Where the parts of an event stand in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventRule {
    /// The values that name the event together; empty where the scheme's
    /// [`message_id`](Scheme::message_id) does.
    pub id: Vec<Locator>,
    /// The values that are its type; the first one present counts.
    pub event_type: Vec<Locator>,
    /// The version of its payload.
    pub version: Option<Locator>,
    /// When it happened.
    pub time: Option<Locator>,
    /// Where the items of a batch are; locators with JSON paths then start at the item.
    pub items: Option<JsonPath>,
    /// The form field whose value is the JSON payload, at senders that wrap it in a form.
    pub form_payload: Option<String>,
}
