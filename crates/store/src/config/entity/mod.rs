//! One entity for each table, and how its rows become resources.
#![expect(
    unreachable_pub,
    reason = "the derive makes public items, whose parts must be public too"
)]

pub(super) mod api_token;
pub(super) mod audit_event;
pub(super) mod audit_head;
pub(super) mod config_request;
pub(super) mod config_revision;
pub(super) mod endpoint;
pub(super) mod endpoint_health;
pub(super) mod event_type;
pub(super) mod event_type_version;
pub(super) mod key_answers;
pub(super) mod key_ring;
pub(super) mod key_usage;
pub(super) mod keyring_canary;
pub(super) mod keyring_rewrap;
pub(super) mod node;
pub(super) mod notice;
pub(super) mod retry_policy;
pub(super) mod retry_policy_version;
pub(super) mod signing_key;
pub(super) mod source;
pub(super) mod source_key_ring;
pub(super) mod source_key_usage;
pub(super) mod subscription;
pub(super) mod tenant;
pub(super) mod verification_key;
