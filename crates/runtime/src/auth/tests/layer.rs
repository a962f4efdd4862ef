use super::*;
use crate::auth::policy::Policy;
use http::{Request, Response, header::AUTHORIZATION};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Value};
use std::{convert::Infallible, time::Duration};
use tonic::{Code, Status};
use tower::{Layer as _, ServiceExt as _, service_fn};
use turnbuckle_domain::{Caller, Role};
use turnbuckle_proto::DESCRIPTORS;

/// What came of a request: the caller that reached the service, or the status.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Reached(Option<Caller>),
    Refused(Code),
}

fn layer(mode: AuthMode) -> AuthLayer {
    AuthLayer::new(DESCRIPTORS, mode).unwrap()
}

fn required() -> AuthLayer {
    layer(AuthMode::Required(authenticator()))
}

pub(super) async fn send(layer: &AuthLayer, path: &str, tokens: &[&HeaderValue]) -> Outcome {
    let service = layer.layer(service_fn(|request: Request<()>| async move {
        let mut response = Response::new(String::new());
        response.extensions_mut().insert(Reached(request.extensions().get().cloned()));
        Ok::<_, Infallible>(response)
    }));
    let mut request = Request::post(format!("http://localhost{path}")).body(()).unwrap();
    for token in tokens {
        request.headers_mut().append(AUTHORIZATION, (*token).clone());
    }
    let mut response = service.oneshot(request).await.unwrap();
    if let Some(Reached(caller)) = response.extensions_mut().remove() {
        return Outcome::Reached(caller);
    }
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/grpc");
    Outcome::Refused(Status::from_header_map(response.headers()).unwrap().code())
}

/// What the service saw, on its way back in the response.
#[derive(Clone)]
struct Reached(Option<Caller>);

fn token(role: Role) -> HeaderValue {
    let token = key().issue("alice", role, None, Duration::from_secs(60), at(NOW)).unwrap();
    bearer(&token)
}

pub(super) fn methods() -> Vec<(String, turnbuckle_domain::Permission)> {
    let policy = Policy::read(DESCRIPTORS).unwrap();
    policy.iter().map(|(path, permission)| (path.to_owned(), permission)).collect()
}

#[test]
fn every_method_of_the_contract_is_known() {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let count: usize = pool.services().map(|service| service.methods().len()).sum();
    assert_eq!(methods().len(), count);
    assert!(count > 20, "{count}");
}

#[tokio::test]
async fn every_method_lets_exactly_the_allowed_roles_through() {
    let layer = required();
    for (path, permission) in methods() {
        assert_eq!(
            send(&layer, &path, &[]).await,
            Outcome::Refused(Code::Unauthenticated),
            "{path}"
        );
        for role in Role::ALL {
            let expected = if role.allows(permission) {
                let issuer = ISSUER.to_owned();
                let caller = Caller { issuer, subject: "alice".to_owned(), role, tenant: None };
                Outcome::Reached(Some(caller))
            } else {
                Outcome::Refused(Code::PermissionDenied)
            };
            assert_eq!(send(&layer, &path, &[&token(role)]).await, expected, "{path} {role:?}");
        }
    }
}

#[tokio::test]
async fn a_bad_token_reaches_no_method() {
    let layer = required();
    let expired = key().issue("alice", Role::Admin, None, Duration::ZERO, at(NOW - 60)).unwrap();
    for (path, _) in methods() {
        for bad in [bearer("x.y.z"), bearer(&expired), HeaderValue::from_static("")] {
            assert_eq!(send(&layer, &path, &[&bad]).await, Outcome::Refused(Code::Unauthenticated));
        }
        let good = token(Role::Admin);
        let twice = send(&layer, &path, &[&good, &good]).await;
        assert_eq!(twice, Outcome::Refused(Code::Unauthenticated));
    }
}

#[tokio::test]
async fn health_and_reflection_are_open_and_carry_no_caller() {
    let layer = required();
    for path in [
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    ] {
        assert_eq!(send(&layer, path, &[]).await, Outcome::Reached(None), "{path}");
    }
}

#[tokio::test]
async fn paths_that_the_contract_does_not_have_are_unimplemented() {
    let (path, _) = methods().remove(0);
    let admin = token(Role::Admin);
    let strange = [
        "/turnbuckle.v1.Endpoints/NoSuchMethod".to_owned(),
        "/turnbuckle.v2.Endpoints/GetEndpoint".to_owned(),
        "/other.Service/Method".to_owned(),
        "/".to_owned(),
        format!("{path}/"),
        format!("/{path}"),
        path.to_lowercase(),
        path.replace("Endpoint", "%45ndpoint").replace("Tenant", "%54enant") + "%20",
    ];
    for path in strange {
        let outcome = send(&required(), &path, &[&admin]).await;
        assert_eq!(outcome, Outcome::Refused(Code::Unimplemented), "{path}");
    }
}

#[tokio::test]
async fn development_needs_no_token_but_checks_one_that_is_sent() {
    let layer = layer(AuthMode::dev(authenticator()));
    for (path, permission) in methods() {
        match send(&layer, &path, &[]).await {
            Outcome::Reached(Some(caller)) => {
                assert_eq!((caller.subject.as_str(), caller.role), ("dev", Role::Admin))
            }
            // Nodes need a token of their own all the same.
            Outcome::Refused(Code::PermissionDenied) => assert!(!Role::Admin.allows(permission)),
            other => panic!("{path}: {other:?}"),
        }
        let wrong = send(&layer, &path, &[&bearer("x.y.z")]).await;
        assert_eq!(wrong, Outcome::Refused(Code::Unauthenticated), "{path}");
        let viewer = send(&layer, &path, &[&token(Role::Viewer)]).await;
        let allowed = matches!(viewer, Outcome::Reached(_));
        assert_eq!(allowed, Role::Viewer.allows(permission), "{path}");
    }
}

fn start(descriptors: &[u8]) -> Result<AuthLayer, PolicyError> {
    AuthLayer::new(descriptors, AuthMode::Required(authenticator()))
}

#[test]
fn a_method_without_a_permission_stops_the_start() {
    // These types know no options of ours, so that reading and writing loses them.
    let set = prost_types::FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let error = start(&set.encode_to_vec()).err().unwrap();
    assert!(matches!(error, PolicyError::Missing(_)), "{error}");
}

/// The descriptors with one method's permission set to this number.
fn with_permission(number: i32) -> Vec<u8> {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let option = pool.get_extension_by_name("turnbuckle.v1.permission").unwrap();
    let kind = pool.get_message_by_name("google.protobuf.FileDescriptorSet").unwrap();
    let mut set = DynamicMessage::decode(kind, DESCRIPTORS).unwrap();
    let files = set.get_field_by_name_mut("file").and_then(Value::as_list_mut).unwrap();
    let method = files
        .iter_mut()
        .filter_map(|file| {
            file.as_message_mut()?.get_field_by_name_mut("service")?.as_list_mut()?.first_mut()
        })
        .find_map(|service| {
            service.as_message_mut()?.get_field_by_name_mut("method")?.as_list_mut()?.first_mut()
        })
        .unwrap();
    let options = method.as_message_mut().unwrap().get_field_by_name_mut("options").unwrap();
    options.as_message_mut().unwrap().set_extension(&option, Value::EnumNumber(number));
    set.encode_to_vec()
}

#[test]
fn an_unspecified_or_unknown_permission_stops_the_start() {
    assert!(start(&with_permission(1)).is_ok());
    let error = start(&with_permission(0)).err().unwrap();
    assert!(matches!(error, PolicyError::Missing(_)), "{error}");
    let error = start(&with_permission(99)).err().unwrap();
    assert!(error.to_string().contains("permission 99"), "{error}");
}

#[test]
fn wrong_descriptors_stop_the_start() {
    assert!(matches!(start(b"garbage").err().unwrap(), PolicyError::Descriptors(_)));
    assert!(matches!(start(b"").err().unwrap(), PolicyError::NoOption));
}

#[test]
fn every_permission_of_the_proto_is_known_here() {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let permissions = pool.get_enum_by_name("turnbuckle.v1.Permission").unwrap();
    for value in permissions.values().filter(|value| value.number() != 0) {
        assert!(start(&with_permission(value.number())).is_ok(), "{}", value.name());
    }
}

#[tokio::test]
async fn the_layer_fits_around_tonic_routes() {
    let routes = tonic::service::Routes::default();
    let path = "http://localhost/turnbuckle.v1.Endpoints/GetEndpoint";
    for (token, code) in
        [(None, Code::Unauthenticated), (Some(token(Role::Viewer)), Code::Unimplemented)]
    {
        let mut request = Request::post(path).body(tonic::body::Body::empty()).unwrap();
        request.headers_mut().extend(token.map(|token| (AUTHORIZATION, token)));
        let response = required().layer(routes.clone()).oneshot(request).await.unwrap();
        assert_eq!(Status::from_header_map(response.headers()).unwrap().code(), code);
    }
}
