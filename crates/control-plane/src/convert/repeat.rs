//! Requests that may be repeated: their id, and all that a repeat must say again.

use prost::Message;
use std::collections::{BTreeMap, HashMap};
use turnbuckle_domain::{Caller, Error, RequestKey, Violations};
use turnbuckle_proto::v1;
use zeroize::Zeroizing;

const FIELD: &str = "request_id";

/// Pairs whose order says nothing.
type Pairs = HashMap<String, String>;

/// A request that has an id of its own.
pub(crate) trait Repeatable: Message + Clone {
    /// The id.
    fn request_id(&mut self) -> &mut String;

    /// All pairs inside, which are encoded in any order.
    fn pairs(&mut self) -> Vec<&mut Pairs> {
        Vec::new()
    }

    /// A secret, which is kept apart.
    fn secret(&mut self) -> Option<&mut String> {
        None
    }
}

macro_rules! repeatable {
    ($($request:ident: $resource:ident;)*) => {$(
        impl Repeatable for v1::$request {
            fn request_id(&mut self) -> &mut String {
                &mut self.request_id
            }

            fn pairs(&mut self) -> Vec<&mut Pairs> {
                self.$resource.iter_mut().map(|resource| &mut resource.labels).collect()
            }
        }
    )*};
}

repeatable! {
    CreateTenantRequest: tenant;
    CreateEventTypeRequest: event_type;
    CreateSubscriptionRequest: subscription;
    CreateRetryPolicyRequest: retry_policy;
}

macro_rules! repeatable_verbs {
    ($($request:ident),* $(,)?) => {$(
        impl Repeatable for v1::$request {
            fn request_id(&mut self) -> &mut String {
                &mut self.request_id
            }
        }
    )*};
}

repeatable_verbs!(
    ActivateKeyRequest,
    RollbackKeyRequest,
    RevokeKeyRequest,
    PauseRotationRequest,
    ResumeRotationRequest,
    RotateIngestPathRequest,
    CreateApiTokenRequest,
    CreateEventTypeVersionRequest,
);

macro_rules! repeatable_with_secret {
    ($($request:ident),* $(,)?) => {$(
        impl Repeatable for v1::$request {
            fn request_id(&mut self) -> &mut String {
                &mut self.request_id
            }

            fn secret(&mut self) -> Option<&mut String> {
                Some(&mut self.secret)
            }
        }
    )*};
}

repeatable_with_secret!(StageKeyRequest, RotateKeyRequest);

impl Repeatable for v1::CreateEndpointRequest {
    fn request_id(&mut self) -> &mut String {
        &mut self.request_id
    }

    fn pairs(&mut self) -> Vec<&mut Pairs> {
        endpoint_pairs(&mut self.endpoint)
    }

    fn secret(&mut self) -> Option<&mut String> {
        Some(&mut self.secret)
    }
}

impl Repeatable for v1::UpdateEndpointRequest {
    fn request_id(&mut self) -> &mut String {
        &mut self.request_id
    }

    fn pairs(&mut self) -> Vec<&mut Pairs> {
        endpoint_pairs(&mut self.endpoint)
    }
}

impl Repeatable for v1::CreateSourceRequest {
    fn request_id(&mut self) -> &mut String {
        &mut self.request_id
    }

    fn pairs(&mut self) -> Vec<&mut Pairs> {
        let Some(source) = &mut self.source else {
            return Vec::new();
        };
        vec![&mut source.labels, &mut source.scheme_settings]
    }

    fn secret(&mut self) -> Option<&mut String> {
        Some(&mut self.secret)
    }
}

fn endpoint_pairs(endpoint: &mut Option<v1::Endpoint>) -> Vec<&mut Pairs> {
    let Some(endpoint) = endpoint else {
        return Vec::new();
    };
    let mut pairs = vec![&mut endpoint.labels];
    if let Some(v1::endpoint::Target::Http(http)) = &mut endpoint.target {
        pairs.push(&mut http.headers);
    }
    pairs
}

/// The id of a request with the hash of what it says; none when it has no id.
pub(crate) fn request_key<M: Repeatable>(
    message: &M,
    caller: &Caller,
) -> Result<Option<RequestKey>, Error> {
    let mut message = message.clone();
    // Taken out before anything else is done with the copy.
    let secret = Zeroizing::new(message.secret().map(std::mem::take).unwrap_or_default());
    let id = std::mem::take(message.request_id());
    if id.is_empty() {
        return Ok(None);
    }
    let mut sorted: Vec<BTreeMap<String, String>> = Vec::new();
    for pairs in message.pairs() {
        sorted.push(std::mem::take(pairs).into_iter().collect());
    }
    let plain = message.encode_to_vec();
    let mut parts: Vec<&[u8]> = vec![&plain, secret.as_bytes()];
    for pairs in &sorted {
        // A separator, since maps of different lengths must not run into each other.
        parts.push(b"pairs");
        parts.extend(pairs.iter().flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]));
    }
    let key = RequestKey::new(&id, caller, parts);
    key.map(Some).map_err(|error| Error::invalid(FIELD, error.to_string()))
}

/// Both values, or all that is wrong with either.
pub(crate) fn both<A, B>(one: Result<A, Error>, other: Result<B, Error>) -> Result<(A, B), Error> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(Error::Invalid(first)), Err(Error::Invalid(second))) => {
            let mut all = Violations::new();
            for violation in first.into_iter().chain(second) {
                all.add(violation.field, violation.message);
            }
            Err(all.into_error())
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190e5d8-7a44-7c1f-9d0e-5b1c2f6a7e10";

    fn request() -> v1::CreateEndpointRequest {
        let headers = (0..20).map(|number| (format!("x-{number}"), "v".to_owned())).collect();
        let labels = (0..20).map(|number| (format!("l{number}"), "v".to_owned())).collect();
        let http =
            v1::HttpTarget { url: "https://a.example".to_owned(), headers, ..Default::default() };
        v1::CreateEndpointRequest {
            parent: "tenants/acme".to_owned(),
            endpoint: Some(v1::Endpoint {
                labels,
                target: Some(v1::endpoint::Target::Http(http)),
                ..Default::default()
            }),
            secret: "whsec_a".to_owned(),
            request_id: ID.to_owned(),
            ..Default::default()
        }
    }

    fn caller(subject: &str) -> Caller {
        Caller {
            issuer: String::new(),
            subject: subject.to_owned(),
            role: turnbuckle_domain::Role::Operator,
            tenant: None,
        }
    }

    fn key(change: impl FnOnce(&mut v1::CreateEndpointRequest)) -> RequestKey {
        let mut request = request();
        change(&mut request);
        request_key(&request, &caller("alice")).unwrap().unwrap()
    }

    #[test]
    fn the_order_of_pairs_says_nothing_and_everything_else_does() {
        // Every map has its own order.
        let first = key(|_| {});
        assert!((0..20).all(|_| key(|_| {}) == first));
        // An id is one whatever its spelling.
        assert_eq!(key(|request| request.request_id = ID.to_uppercase()), first);
        let labels = |request: &mut v1::CreateEndpointRequest| {
            request.endpoint.as_mut().unwrap().labels.insert("l1".to_owned(), "w".to_owned());
        };
        let moved = |request: &mut v1::CreateEndpointRequest| {
            let endpoint = request.endpoint.as_mut().unwrap();
            let value = endpoint.labels.remove("l1").unwrap();
            let Some(v1::endpoint::Target::Http(http)) = &mut endpoint.target else { panic!() };
            http.headers.insert("l1".to_owned(), value);
        };
        for other in [
            key(|request| request.secret = "whsec_b".to_owned()),
            key(|request| request.endpoint_id = "orders".to_owned()),
            key(labels),
            key(moved),
        ] {
            assert_ne!(other.content, first.content);
        }
        assert_ne!(
            request_key(&request(), &caller("bob")).unwrap().unwrap().content,
            first.content
        );
    }

    #[test]
    fn a_source_is_its_pairs_and_its_secret_too() {
        let pairs = || (0..20).map(|number| (format!("k{number}"), "v".to_owned())).collect();
        let key = |change: fn(&mut v1::CreateSourceRequest)| {
            let (labels, scheme_settings) = (pairs(), pairs());
            let source = v1::Source { labels, scheme_settings, ..Default::default() };
            let mut request = v1::CreateSourceRequest {
                source: Some(source),
                secret: "a secret of a sender".to_owned(),
                request_id: ID.to_owned(),
                ..Default::default()
            };
            change(&mut request);
            request_key(&request, &caller("alice")).unwrap().unwrap()
        };
        let first = key(|_| {});
        assert!((0..20).all(|_| key(|_| {}) == first));
        let moved = |request: &mut v1::CreateSourceRequest| {
            let source = request.source.as_mut().unwrap();
            source.labels.remove("k1");
        };
        let text = |request: &mut v1::CreateSourceRequest| {
            let source = request.source.as_mut().unwrap();
            source.scheme_settings.insert("k1".to_owned(), "w".to_owned());
        };
        let secret = |request: &mut v1::CreateSourceRequest| request.secret.push('2');
        for other in [key(moved), key(text), key(secret)] {
            assert_ne!(other.content, first.content);
        }
    }

    #[test]
    fn an_id_is_optional_but_never_garbage() {
        let none = v1::CreateEndpointRequest { request_id: String::new(), ..request() };
        assert_eq!(request_key(&none, &caller("alice")).unwrap(), None);
        let bad = v1::CreateEndpointRequest { request_id: "7".to_owned(), ..request() };
        let error = request_key(&bad, &caller("alice")).unwrap_err().to_string();
        assert!(error.contains("request_id: is no UUID") && !error.contains("whsec"), "{error}");
    }

    #[test]
    fn what_is_wrong_with_id_and_request_is_told_together() {
        let (one, other) = (Error::invalid("a", "is bad"), Error::invalid("b", "is bad too"));
        let all = both(Err::<(), _>(one), Err::<(), _>(other)).unwrap_err().to_string();
        assert!(all.contains("a: is bad") && all.contains("b: is bad too"), "{all}");
    }
}
