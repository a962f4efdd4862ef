//! Every method, for every role, tenant and issuer, and for API tokens.

use super::{
    api_tokens,
    issuers::*,
    layer::{Outcome, methods, send},
    *,
};
use jsonwebtoken::Algorithm;
use serde_json::json;
use std::time::Duration;
use tonic::Code;
use turnbuckle_domain::{ResourceId, Role};
use turnbuckle_proto::DESCRIPTORS;

/// Whose token it is, what it should mean, and the token.
struct Credential {
    issuer: String,
    caller: Caller,
    header: HeaderValue,
}

/// A credential of each issuer for each role and tenant.
fn credentials(signers: &[(&str, &Signer)]) -> Vec<Credential> {
    let mut made = Vec::new();
    for (role, tenant) in
        Role::ALL.into_iter().flat_map(|role| [(role, None), (role, Some("shop"))])
    {
        let tenant_id = tenant.map(|tenant| ResourceId::new(tenant).unwrap());
        let caller = Caller {
            issuer: ISSUER.to_owned(),
            subject: "alice".to_owned(),
            role,
            tenant: tenant_id.clone(),
        };
        let own = key().issue("alice", role, tenant_id, Duration::from_secs(60), at(NOW)).unwrap();
        made.push(("turnbuckle".to_owned(), caller.clone(), own));
        for (issuer, signer) in signers {
            let mut claims = with("iss", json!(issuer));
            claims["role"] = json!(role.as_str());
            claims["tenant"] = json!(tenant.unwrap_or("*"));
            let caller = Caller { issuer: (*issuer).to_owned(), ..caller.clone() };
            made.push(((*issuer).to_owned(), caller, signer.sign(&claims)));
        }
    }
    made.into_iter()
        .map(|(issuer, caller, token)| Credential { issuer, caller, header: bearer(&token) })
        .collect()
}

#[tokio::test]
async fn every_method_asks_the_roles_of_every_kind_of_token_alike_and_keeps_the_tenant() {
    let (one, two) = (Signer::new(Algorithm::EdDSA, "k"), Signer::new(Algorithm::ES256, "k"));
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("one"), set(&[one.public()])).unwrap();
    std::fs::write(directory.path().join("two"), set(&[two.public()])).unwrap();
    let text = table("https://one", Algorithm::EdDSA, "jwks_file = \"one\"")
        + &table("https://two", Algorithm::ES256, "jwks_file = \"two\"");
    let (api_tokens, of_tokens) = api_tokens::of_every_kind();
    let authenticator = from_files(&text, directory.path()).with_api_tokens(api_tokens);
    let layer = AuthLayer::new(DESCRIPTORS, AuthMode::Required(authenticator)).unwrap();
    let mut credentials = credentials(&[("https://one", &one), ("https://two", &two)]);
    credentials.extend(of_tokens.into_iter().map(|(caller, header)| {
        let issuer = "API tokens".to_owned();
        Credential { issuer, caller, header }
    }));
    assert_eq!(credentials.len(), Role::ALL.len() * 2 * 4);
    for (path, permission) in methods() {
        for Credential { issuer, caller, header } in &credentials {
            let expected = match caller.role.allows(permission) {
                true => Outcome::Reached(Some(caller.clone())),
                false => Outcome::Refused(Code::PermissionDenied),
            };
            let outcome = send(&layer, &path, &[header]).await;
            assert_eq!(outcome, expected, "{path} {issuer} {caller:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_new_key_waits_for_the_issuer_and_goes_on() {
    let (signer, stranger) =
        (Signer::new(Algorithm::EdDSA, "one"), Signer::new(Algorithm::EdDSA, "two"));
    let published = Published::new(&[signer.public()]);
    let mode = AuthMode::Required(running(at_address(Algorithm::EdDSA), &published));
    let layer = AuthLayer::new(DESCRIPTORS, mode).unwrap();
    let path = "/turnbuckle.v1.Endpoints/GetEndpoint";
    let strange = bearer(&stranger.sign(&claims()));
    assert_eq!(send(&layer, path, &[&strange]).await, Outcome::Refused(Code::Unauthenticated));
    let known = send(&layer, path, &[&bearer(&signer.sign(&claims()))]).await;
    assert!(matches!(known, Outcome::Reached(Some(_))), "{known:?}");
    tokio::time::sleep(Duration::from_secs(31)).await;
    published.publish(&[signer.public(), stranger.public()]);
    let now_known = send(&layer, path, &[&strange]).await;
    assert!(matches!(now_known, Outcome::Reached(Some(_))), "{now_known:?}");
    let admin = bearer(&stranger.sign(&with("role", json!("node"))));
    assert_eq!(send(&layer, path, &[&admin]).await, Outcome::Refused(Code::PermissionDenied));
}

#[test]
fn without_a_token_key_our_own_tokens_are_nobodys() {
    let config = at_address(Algorithm::EdDSA);
    let fetch: Arc<dyn JwksFetch> = Published::new(&[]);
    let clock = Arc::new(Fixed(at(NOW)));
    let (foreign_only, _) = Authenticator::with_issuers(config, None, &fetch, clock).unwrap();
    let token = key().issue("alice", Role::Admin, None, Duration::from_secs(60), at(NOW)).unwrap();
    assert!(authenticate(&foreign_only, &bearer(&token)).is_err());
    assert_eq!(format!("{foreign_only:?}"), "Authenticator([\"https://issuer.example\"])");
}
