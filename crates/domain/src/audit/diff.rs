//! What a resource looks like in the record, and what changed between two looks.

use crate::{
    Backoff, Endpoint, EndpointState, EndpointTarget, EventType, EventTypeVersion, Filter,
    HttpTarget, Jitter, Key, KeyRing, Labels, PayloadFormat, RetryPolicy, Subscription, Tenant,
    Timestamp,
};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use std::{collections::BTreeMap, time::Duration};
use uuid::Uuid;

/// The fields of a resource as text, by path. A field without a value is not there.
pub type Fields = BTreeMap<String, String>;

/// One changed field.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FieldChange {
    /// Path of the field, such as `http.timeout`.
    pub field: String,
    /// Its value before; none when it had none.
    pub before: Option<String>,
    /// Its value after; none when it has none.
    pub after: Option<String>,
}

/// A resource whose changes are recorded.
pub trait Audited {
    /// Its fields, without ids, times and secrets.
    fn fields(&self) -> Fields;
}

/// The fields that differ, by path.
#[must_use]
pub fn diff(before: &Fields, after: &Fields) -> Vec<FieldChange> {
    let gone = before.iter().filter(|(field, _)| !after.contains_key(*field));
    let gone = gone.map(|(field, value)| (field, Some(value), None));
    let kept = after.iter().map(|(field, value)| (field, before.get(field), Some(value)));
    let changed = gone.chain(kept).filter(|(_, before, after)| before != after);
    let mut changes: Vec<FieldChange> = changed
        .map(|(field, before, after)| FieldChange {
            field: field.clone(),
            before: before.cloned(),
            after: after.cloned(),
        })
        .collect();
    changes.sort_by(|one, other| one.field.cmp(&other.field));
    changes
}

/// Separates these hashes from other uses of the function.
const FINGERPRINT_DOMAIN: &[u8] = b"turnbuckle audit fingerprint 1";

/// Shows that a hidden value changed without giving it away: too short to tell the right guess from
/// many wrong ones, and different for the same value elsewhere.
const FINGERPRINT_BYTES: usize = 4;

pub(super) fn fingerprint(owner: Uuid, field: &str, hidden: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(FINGERPRINT_DOMAIN);
    hasher.update(owner.as_bytes());
    hasher.update(field.len().to_be_bytes());
    hasher.update(field.as_bytes());
    hasher.update(hidden.as_bytes());
    let hash = hasher.finalize();
    HEXLOWER.encode(hash.get(..FINGERPRINT_BYTES).unwrap_or_default())
}

/// A URL without user information, query and fragment.
fn shown_url(owner: Uuid, url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (base, rest) = url.split_at(end);
    let (scheme, after) = base.split_once("://").unwrap_or(("", base));
    let host = after.find('/').unwrap_or(after.len());
    let (authority, path) = after.split_at(host);
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let shown = format!("{scheme}://{host}{path}");
    if user.is_empty() && rest.is_empty() {
        return shown;
    }
    let hidden = fingerprint(owner, "http.url", &format!("{user}@{rest}"));
    format!("{shown} (hidden part {hidden})")
}

/// A duration in its shortest exact form: seconds, or milliseconds, or microseconds.
fn shown_duration(duration: Duration) -> String {
    match (duration.subsec_millis(), duration.subsec_micros()) {
        (0, 0) => format!("{}s", duration.as_secs()),
        (_, micros) if micros % 1000 == 0 => format!("{}ms", duration.as_millis()),
        _ => format!("{}us", duration.as_micros()),
    }
}

/// A time as microseconds since the epoch: exact, and the form of the database.
pub(super) fn shown_time(at: Timestamp) -> String {
    format!("{}us", at.micros())
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

/// Notes a field that has a value.
pub(super) fn put(fields: &mut Fields, field: &str, value: impl Into<String>) {
    let value = value.into();
    if !value.is_empty() {
        fields.insert(field.to_owned(), value);
    }
}

pub(super) fn put_labels(fields: &mut Fields, labels: &Labels) {
    for (key, value) in labels.iter() {
        fields.insert(format!("labels.{key}"), value.to_owned());
    }
}

impl Audited for Tenant {
    fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        put(&mut fields, "uid", self.id.to_string());
        put(&mut fields, "display_name", &self.display_name);
        put_labels(&mut fields, &self.labels);
        fields
    }
}

impl Audited for EventType {
    fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        put(&mut fields, "uid", self.id.to_string());
        put(&mut fields, "description", &self.description);
        put(&mut fields, "compatibility", self.compatibility.as_str());
        put(&mut fields, "unknown_version", self.unknown_version.as_str());
        put_labels(&mut fields, &self.labels);
        fields
    }
}

/// The schema by its hash: the version never changes and stays readable, also once deleted.
impl Audited for EventTypeVersion {
    fn fields(&self) -> Fields {
        let hash = HEXLOWER.encode(&Sha256::digest(self.schema.as_bytes()));
        let mut fields = Fields::new();
        put(&mut fields, "uid", self.id.to_string());
        put(&mut fields, "event_type_uid", self.event_type.to_string());
        put(&mut fields, "schema", format!("({} bytes, sha256 {hash})", self.schema.len()));
        put(&mut fields, "description", &self.description);
        fields
    }
}

impl Audited for Subscription {
    fn fields(&self) -> Fields {
        let format = match self.format {
            PayloadFormat::Envelope => "envelope",
            PayloadFormat::Standard => "standard",
            PayloadFormat::Raw => "raw",
        };
        let mut fields = Fields::new();
        put(&mut fields, "uid", self.id.to_string());
        put(&mut fields, "endpoint_uid", self.endpoint.to_string());
        put(&mut fields, "event_types", list(&self.patterns));
        put(&mut fields, "payload_format", format);
        put(&mut fields, "filter", self.filter.as_ref().map(Filter::to_string).unwrap_or_default());
        put(&mut fields, "channels", list(self.channels.iter()));
        put_labels(&mut fields, &self.labels);
        fields
    }
}

impl Audited for RetryPolicy {
    fn fields(&self) -> Fields {
        let rule = &self.rule;
        let jitter = match rule.jitter {
            Jitter::None => "none",
            Jitter::Equal => "equal",
            Jitter::Full => "full",
        };
        let mut fields = Fields::new();
        put(&mut fields, "uid", self.id.to_string());
        put(&mut fields, "version", self.version.to_string());
        match &rule.backoff {
            Backoff::Exponential { first_delay, factor, max_delay } => {
                put(&mut fields, "exponential.first_delay", shown_duration(*first_delay));
                put(&mut fields, "exponential.factor", factor.to_string());
                put(&mut fields, "exponential.max_delay", shown_duration(*max_delay));
            }
            Backoff::Delays(delays) => {
                put(&mut fields, "delays", list(delays.iter().copied().map(shown_duration)));
            }
        }
        put(&mut fields, "jitter", jitter);
        put(&mut fields, "max_attempts", rule.max_attempts.to_string());
        put(&mut fields, "horizon", shown_duration(rule.horizon));
        put(&mut fields, "max_retry_after", shown_duration(rule.max_retry_after));
        put(&mut fields, "retry_statuses", list(&rule.retry_statuses));
        put_labels(&mut fields, &self.labels);
        fields
    }
}

impl Audited for Endpoint {
    fn fields(&self) -> Fields {
        let (state, reason) = match &self.state {
            EndpointState::Active => ("active", ""),
            EndpointState::Disabled { reason } => ("disabled", reason.as_str()),
        };
        let policy = self.retry_policy.map(|id| id.to_string());
        let mut fields = Fields::new();
        put(&mut fields, "uid", self.id.to_string());
        put(&mut fields, "display_name", &self.display_name);
        put_target(&mut fields, self.id.uuid(), &self.target);
        put(&mut fields, "signature_profile", self.signature_profile.as_str());
        put(&mut fields, "retry_policy_uid", policy.unwrap_or_default());
        put(&mut fields, "max_in_flight", self.max_in_flight.to_string());
        put(&mut fields, "state", state);
        put(&mut fields, "disable_reason", reason);
        put_labels(&mut fields, &self.labels);
        fields
    }
}

fn put_target(fields: &mut Fields, owner: Uuid, target: &EndpointTarget) {
    match target {
        EndpointTarget::Http(http) => put_http(fields, owner, http),
        EndpointTarget::Pull(pull) => {
            put(fields, "pull.lease", shown_duration(pull.lease));
            put(fields, "pull.max_outstanding", pull.max_outstanding.to_string());
            put(
                fields,
                "pull.ordered_by_subject",
                if pull.ordered_by_subject { "yes" } else { "" },
            );
        }
    }
}

fn put_http(fields: &mut Fields, owner: Uuid, target: &HttpTarget) {
    put(fields, "http.url", shown_url(owner, &target.url));
    put(fields, "http.timeout", shown_duration(target.timeout));
    put(fields, "http.header_prefix", &target.header_prefix);
    for (name, value) in &target.headers {
        let field = format!("http.headers.{name}");
        let hidden = format!("(value {})", fingerprint(owner, &field, value));
        put(fields, &field, hidden);
    }
}

impl Audited for KeyRing {
    fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        for key in &self.keys {
            put_key(&mut fields, key);
        }
        if let Some(pause) = &self.pause {
            put(&mut fields, "pause.time", shown_time(pause.at));
            put(&mut fields, "pause.reason", &pause.reason);
            let resumed = pause.resumed_at.map(shown_time);
            put(&mut fields, "pause.resume_time", resumed.unwrap_or_default());
        }
        fields
    }
}

fn put_key(fields: &mut Fields, key: &Key) {
    let path = |part: &str| format!("keys.{}.{part}", key.id);
    put(fields, &path("state"), key.state.as_str());
    put(fields, &path("algorithm"), key.algorithm.as_str());
    put(fields, &path("fingerprint"), &key.fingerprint);
    let activated = key.activated_at.map(shown_time).unwrap_or_default();
    put(fields, &path("activate_time"), activated);
    put(fields, &path("retire_time"), key.retire_at.map(shown_time).unwrap_or_default());
    put(fields, &path("held"), if key.held { "yes" } else { "" });
    put(fields, &path("revoke_reason"), key.revoke_reason.clone().unwrap_or_default());
}

#[cfg(test)]
mod tests;
