mod api_tokens;
mod config;
mod hostile;
mod issuers;
mod layer;
mod rotation;
mod tokens;
mod walk;

use super::*;
use http::HeaderValue;
use std::sync::Arc;
use turnbuckle_domain::{Caller, Clock, Error, Timestamp};

/// A point in 2027; tokens in these tests are made around it.
const NOW: i64 = 1_800_000_000;

pub(super) struct Fixed(pub(super) Timestamp);

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        self.0
    }
}

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn key() -> TokenKey {
    TokenKey::from_bytes(&[7; 32]).unwrap()
}

fn authenticator_at(seconds: i64) -> Authenticator {
    Authenticator::new(key(), Arc::new(Fixed(at(seconds))))
}

fn authenticator() -> Authenticator {
    authenticator_at(NOW)
}

fn bearer(token: &str) -> HeaderValue {
    HeaderValue::from_str(&format!("Bearer {token}")).unwrap()
}

/// What a check says at once.
fn authenticate(authenticator: &Authenticator, header: &HeaderValue) -> Result<Caller, Error> {
    authenticator.check(header).map_err(|miss| miss.into_refusal().into_error())
}
