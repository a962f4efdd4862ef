//! Black-box scenarios against the real binary: one file per subject, every name a sentence.

/// Makes a test on each store out of each function.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> anyhow::Result<()> {
                super::$name(turnbuckle_tests::StoreKind::Embedded).await
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> anyhow::Result<()> {
                super::$name(turnbuckle_tests::StoreKind::Postgres).await
            })+
        }
    };
}

/// The value, or the end of the test where there is no such store: that has been said loudly.
macro_rules! or_skip {
    ($made:expr) => {
        match $made {
            Some(made) => made,
            None => return Ok(()),
        }
    };
}

mod api_tokens;
mod apply;
mod auth;
mod bytes;
mod cli;
mod crash;
mod dedup;
mod demo;
mod disable;
mod egress;
mod endpoint_health;
mod event_types;
mod event_types_cli;
mod fetched_keys;
mod filters;
mod handshakes;
mod happy;
mod idempotent_config;
mod ingress;
mod ingress_again;
mod ingress_batches;
mod ingress_door;
mod ingress_encodings;
mod ingress_faults;
mod ingress_keys;
mod ingress_limits;
mod ingress_order;
mod ingress_receipts;
mod ingress_storm;
mod key_rotation;
mod keyring;
mod keys;
mod marker_secrets;
mod older_node;
mod operate;
mod outage;
mod pull;
mod pull_faults;
mod pull_outside;
mod replay;
mod retry;
mod roles;
mod roles_apart;
mod roles_faults;
mod roles_large;
mod secrets;
mod settings;
mod sharing;
mod shutdown;
mod slow;
mod source_states;
mod source_test;
mod sources_config;
mod startup;
mod tls;

/// Seconds of the wall clock, as a receiver on another machine would have it.
#[expect(clippy::disallowed_methods, reason = "the receiver's clock is not the server's")]
fn unix_now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}
