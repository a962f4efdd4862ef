use super::*;
use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../../docs/authentication.md");

fn faults(text: &str) -> String {
    AuthConfig::parse(text, Path::new("/etc")).unwrap_err().to_string()
}

#[test]
fn everything_wrong_is_said_at_once_and_with_its_place() {
    let text = r#"
        [[issuers]]
        issuer = "turnbuckle"
        audiences = []
        algorithm = "HS256"
        jwks_url = "http://issuer.example/jwks"
        leeway = "31s"
        max_token_age = "forever"
        role_claim = ""
        [issuers.subjects]
        "a" = { role = "root", tenant = "Shop" }
        [[issuers]]
        issuer = "https://two"
        audiences = ["x", ""]
        algorithm = "RS256"
        jwks_token_file = "token"
        [[issuers]]
        issuer = "https://two"
        audiences = ["x"]
        algorithm = "RS256"
        jwks_file = "a"
        jwks_url = "https://b"
        [[issuers]]
        issuer = "https://three"
        audience = "x"
    "#;
    let said = faults(text);
    for expected in [
        "issuers[0].issuer: \"turnbuckle\" is the name",
        "issuers[0].audiences: name at least one",
        "issuers[0].algorithm: is \"HS256\"; use RS256, ES256 or EdDSA",
        "issuers[0].jwks_url: use https",
        "issuers[0].leeway: is \"31s\"; use 0s to 30s",
        "issuers[0].max_token_age: is \"forever\"",
        "issuers[0].role_claim: use 1 to 512 bytes",
        "issuers[0].subjects.\"a\".role: is \"root\"; use one of admin",
        "issuers[0].subjects.\"a\".tenant: is \"Shop\"",
        "issuers[1].audiences[1]: use 1 to 512 bytes",
        "issuers[1].jwks_token_file: is for a jwks_url",
        "issuers[1].jwks_file: give either",
        "issuers[2].issuer: is there twice",
        "issuers[2].jwks_file: give either",
        "issuers[3]: unknown field `audience`",
    ] {
        assert!(said.contains(expected), "{expected}\nis missing in\n{said}");
    }
}

#[test]
fn nonsense_is_refused_with_its_line() {
    assert!(faults("").contains("issuers"));
    assert!(faults("issuers = []").contains("name 1 to 32"));
    assert!(faults("issuers = [").contains("line 1"));
    assert!(faults("issuers = []\nother = 1").contains("unknown field `other`"));
}

#[test]
fn a_file_is_read_from_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("auth.toml");
    assert!(matches!(AuthConfig::load(&path), Err(AuthConfigError::File { .. })));
    let text = issuers::table("https://one", jsonwebtoken::Algorithm::ES256, "jwks_file = \"k\"");
    std::fs::write(&path, text).unwrap();
    assert_eq!(AuthConfig::load(&path).unwrap().to_string(), "https://one");
    std::fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
    assert!(matches!(AuthConfig::load(&path), Err(AuthConfigError::TooLarge(_))));
}

#[test]
fn keys_come_over_https_or_from_this_machine() {
    let at = |url: &str| {
        let line = format!("jwks_url = \"{url}\"");
        let text = issuers::table("https://one", jsonwebtoken::Algorithm::ES256, &line);
        AuthConfig::parse(&text, Path::new("")).is_ok()
    };
    for good in
        ["https://x/jwks", "http://127.0.0.1:8080/jwks", "http://localhost/", "http://[::1]/"]
    {
        assert!(at(good), "{good}");
    }
    for bad in
        ["http://x/jwks", "file:///etc/keys", "x", "", "http://localhost.example/", "ftp://x"]
    {
        assert!(!at(bad), "{bad}");
    }
}

/// The fenced block of the document that begins with this line.
fn block(fence: &str) -> &'static str {
    let start = DOCUMENT.find(fence).unwrap() + fence.len();
    DOCUMENT[start..].split("```").next().unwrap()
}

#[test]
fn the_documented_example_is_a_good_one() {
    let config = AuthConfig::parse(block("```toml\n"), Path::new("/etc/turnbuckle")).unwrap();
    assert!(config.addresses().count() > 0);
}

#[test]
fn the_documented_roles_are_the_ones_there_are() {
    use turnbuckle_domain::{Permission, Role};
    let permissions = [
        ("manage tenants", Permission::TenantAdmin),
        ("read configuration", Permission::ConfigRead),
        ("change configuration", Permission::ConfigWrite),
        ("manage keys", Permission::KeyManage),
        ("publish events", Permission::EventPublish),
        ("read deliveries", Permission::DeliveryRead),
        ("retry and cancel deliveries", Permission::DeliveryOperate),
        ("take deliveries from pull endpoints", Permission::DeliveryConsume),
        ("read the record of changes", Permission::AuditRead),
        ("make, list and revoke API tokens", Permission::TokenManage),
        ("follow the configuration", Permission::ConfigWatch),
        ("see nodes", Permission::NodeRead),
        ("let a node apply what it holds back", Permission::NodeOperate),
        ("see secrets again", Permission::SecretReveal),
        ("manage key-encryption keys", Permission::KeyringManage),
    ];
    let pool = prost_reflect::DescriptorPool::decode(turnbuckle_proto::DESCRIPTORS).unwrap();
    let known = pool.get_enum_by_name("turnbuckle.v1.Permission").unwrap().values().len() - 1;
    assert_eq!(permissions.len(), known, "a permission is missing in this table");
    // What a role covers is judged by this list: one that is missing there could be given away.
    assert_eq!(Permission::ALL.len(), known, "a permission is missing in Permission::ALL");
    let row = |cells: Vec<&str>| format!("| {} |", cells.join(" | "));
    let mut table = vec![row([&["may"], Role::ALL.map(Role::as_str).as_slice()].concat())];
    table.push(format!("|{}", "---|".repeat(Role::ALL.len() + 1)));
    for (name, permission) in permissions {
        let marks = Role::ALL.map(|role| if role.allows(permission) { "yes" } else { "–" });
        table.push(row([&[name], marks.as_slice()].concat()));
    }
    let table = table.join("\n");
    assert!(DOCUMENT.contains(&table), "docs/authentication.md should have\n{table}");
}
