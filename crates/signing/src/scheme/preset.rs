//! What is known about a provider.

use std::sync::LazyLock;

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
    /// Whether the sender wants that answer without a body.
    pub accepted_without_body: bool,
    /// Whether events without an id are taken each time: where one body may honestly come twice.
    /// Otherwise equal bodies within some minutes count as one.
    pub repeats_without_id: bool,
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
    /// The type of events that have none at those places, at senders that send one kind alone.
    pub type_default: Option<String>,
    /// Other values that name the event together, tried in turn when those before are not all
    /// there.
    pub id_otherwise: Vec<Vec<Locator>>,
    /// The version of its payload.
    pub version: Option<Locator>,
    /// When it happened.
    pub time: Option<Locator>,
    /// Where the items of a batch are; locators with JSON paths then start at the item.
    pub items: Option<JsonPath>,
    /// The form field whose value is the JSON payload, at senders that wrap it in a form.
    pub form_payload: Option<String>,
}

/// The files, one for each preset, in the order of their names.
macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../presets/", $name, ".yaml")))),+];
    };
}

files![
    "adyen",
    "adyen-platform",
    "asana",
    "aws-sns",
    "aws-sns-v1",
    "bird",
    "bitbucket",
    "box",
    "braintree",
    "calcom",
    "calendly",
    "circleci",
    "coinbase-commerce",
    "discord",
    "docusign",
    "dropbox",
    "github",
    "gitlab",
    "gitlab-token",
    "gocardless",
    "google-pubsub",
    "hub",
    "hubspot-v1",
    "hubspot-v2",
    "hubspot-v3",
    "intercom",
    "lemon-squeezy",
    "line",
    "linear",
    "livekit",
    "mailgun",
    "messenger",
    "meta",
    "microsoft-graph",
    "midtrans",
    "midtrans-iris",
    "netlify",
    "notion",
    "nylas",
    "okta",
    "onfido",
    "openai",
    "paddle",
    "pagerduty",
    "paypal",
    "plivo",
    "postmark",
    "pusher",
    "quickbooks",
    "razorpay",
    "retell",
    "sendgrid",
    "sentry",
    "shopify",
    "slack",
    "square",
    "standard-webhooks",
    "stream-chat",
    "stripe",
    "svix",
    "telnyx",
    "trello",
    "turnbuckle",
    "twilio-form",
    "twilio-json",
    "twitch",
    "typeform",
    "vercel",
    "vonage",
    "workos",
    "x",
    "xendit",
    "xero",
    "zendesk",
    "zoom",
];

/// A test holds that every file is read; so none is missing here.
static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| FILES.iter().filter_map(|(_, text)| Preset::from_yaml(text).ok()).collect());

/// All presets by name. They are read once, at the first call.
#[must_use]
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The preset of that name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    let found = PRESETS.binary_search_by(|preset| preset.name.as_str().cmp(name));
    found.ok().and_then(|index| PRESETS.get(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_named_after_its_preset() {
        for (name, text) in FILES {
            let preset = Preset::from_yaml(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(preset.name, *name);
        }
        assert_eq!(presets().len(), FILES.len());
    }

    #[test]
    fn presets_are_found_by_name() {
        assert!(presets().is_sorted_by_key(|preset| &preset.name));
        for known in presets() {
            assert_eq!(preset(&known.name), Some(known));
        }
        assert_eq!(preset("nobody"), None);
    }

    #[test]
    fn windows_cover_a_replay_and_statuses_are_success() {
        for preset in presets() {
            let tolerance = preset
                .scheme
                .timestamp
                .as_ref()
                .map_or(0, |rule| rule.max_age_seconds + rule.max_future_seconds);
            // Otherwise a request could be replayed after its id is forgotten.
            assert!(preset.dedup_window_seconds >= tolerance, "{}", preset.name);
            assert!((200..=299).contains(&preset.accepted_status), "{}", preset.name);
            assert!(!preset.title.is_empty(), "{}", preset.name);
        }
    }
}
