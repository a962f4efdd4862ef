use super::*;
use data_encoding::BASE64;
use std::fs;
use turnbuckle_domain::{EndpointId, KeyId, SecretRewrapper as _, SourceId, TenantId};
use uuid::Uuid;

const SECRET: &[u8] = b"a signing secret of thirty bytes";

fn context(tenant: u128, endpoint: u128, key: u128) -> SealContext {
    SealContext {
        tenant: TenantId::from_uuid(Uuid::from_u128(tenant)),
        owner: EndpointId::from_uuid(Uuid::from_u128(endpoint)).into(),
        key: KeyId::from_uuid(Uuid::from_u128(key)),
    }
}

fn ring(primary: &str, ids: &[(&str, u8)]) -> Keyring {
    let keys = ids
        .iter()
        .map(|(id, byte)| ((*id).to_owned(), Zeroizing::new([*byte; KEY_LENGTH])))
        .collect();
    Keyring::from_keys(primary, keys).unwrap()
}

fn parse(text: &str) -> Result<Keyring, KeyringError> {
    file::parse(text.as_bytes())
}

#[test]
fn a_sealed_secret_opens_in_its_place() {
    let keyring = Keyring::generate_in_memory().unwrap();
    for secret in [SECRET, b"", &[0; 4096]] {
        let sealed = keyring.seal(context(1, 2, 3), secret).unwrap();
        assert_eq!(keyring.open(context(1, 2, 3), &sealed).unwrap().as_slice(), secret);
    }
}

#[test]
fn the_same_secret_never_gives_the_same_record() {
    let keyring = Keyring::generate_in_memory().unwrap();
    let sealed = |_| keyring.seal(context(1, 2, 3), SECRET).unwrap().as_bytes().to_vec();
    assert_ne!(sealed(1), sealed(2));
}

#[test]
fn a_record_moved_to_another_row_does_not_open() {
    let keyring = Keyring::generate_in_memory().unwrap();
    let sealed = keyring.seal(context(1, 2, 3), SECRET).unwrap();
    for other in [context(9, 2, 3), context(1, 9, 3), context(1, 2, 9), context(2, 1, 3)] {
        assert_eq!(keyring.open(other, &sealed), Err(SealError::Corrupt));
    }
}

#[test]
fn a_record_of_a_source_opens_for_no_endpoint_and_the_other_way_round() {
    let keyring = Keyring::generate_in_memory().unwrap();
    let endpoint = context(1, 2, 3);
    let owner = SourceId::from_uuid(Uuid::from_u128(2)).into();
    let source = SealContext { owner, ..endpoint };
    for (own, other) in [(endpoint, source), (source, endpoint)] {
        let sealed = keyring.seal(own, SECRET).unwrap();
        assert_eq!(keyring.open(own, &sealed).unwrap().as_slice(), SECRET);
        assert_eq!(keyring.open(other, &sealed), Err(SealError::Corrupt));
    }
}

#[test]
fn a_change_of_any_byte_is_noticed() {
    let keyring = Keyring::generate_in_memory().unwrap();
    let sealed = keyring.seal(context(1, 2, 3), SECRET).unwrap();
    for position in 0..sealed.as_bytes().len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut bytes = sealed.as_bytes().to_vec();
            bytes[position] ^= mask;
            let opened = keyring.open(context(1, 2, 3), &SealedSecret::from_bytes(bytes));
            assert!(opened.is_err(), "byte {position}");
        }
    }
}

#[test]
fn a_record_cut_short_or_extended_does_not_open() {
    let keyring = Keyring::generate_in_memory().unwrap();
    let sealed = keyring.seal(context(1, 2, 3), SECRET).unwrap();
    for length in 0..sealed.as_bytes().len() {
        let cut = SealedSecret::from_bytes(sealed.as_bytes()[..length].to_vec());
        assert_eq!(keyring.open(context(1, 2, 3), &cut), Err(SealError::Corrupt), "{length}");
    }
    let longer = SealedSecret::from_bytes([sealed.as_bytes(), &[0]].concat());
    assert_eq!(keyring.open(context(1, 2, 3), &longer), Err(SealError::Corrupt));
}

#[test]
fn a_missing_key_is_named() {
    let sealed = ring("old", &[("old", 1)]).seal(context(1, 2, 3), SECRET).unwrap();
    let error = ring("new", &[("new", 2)]).open(context(1, 2, 3), &sealed).unwrap_err();
    assert_eq!(error, SealError::UnknownKey("old".to_owned()));
    assert!(error.to_string().contains("old"));
}

#[test]
fn old_records_open_beside_a_new_primary() {
    let before = ring("k1", &[("k1", 1)]);
    let after = ring("k2", &[("k1", 1), ("k2", 2)]);
    let old = before.seal(context(1, 2, 3), SECRET).unwrap();
    let new = after.seal(context(1, 2, 3), SECRET).unwrap();
    assert_eq!(after.open(context(1, 2, 3), &old).unwrap().as_slice(), SECRET);
    assert_eq!(after.open(context(1, 2, 3), &new).unwrap().as_slice(), SECRET);
    assert_eq!(before.open(context(1, 2, 3), &new), Err(SealError::UnknownKey("k2".to_owned())));
}

#[test]
fn another_key_under_the_same_id_does_not_open() {
    let sealed = ring("k1", &[("k1", 1)]).seal(context(1, 2, 3), SECRET).unwrap();
    let other = ring("k1", &[("k1", 2)]);
    assert_eq!(other.open(context(1, 2, 3), &sealed), Err(SealError::Corrupt));
}

#[test]
fn a_created_keyring_loads_and_opens_what_it_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keyring.json");
    let sealed = Keyring::create(&path).unwrap().seal(context(1, 2, 3), SECRET).unwrap();
    let loaded = Keyring::load(&path).unwrap();
    assert_eq!(loaded.primary_id(), "k1");
    assert_eq!(loaded.open(context(1, 2, 3), &sealed).unwrap().as_slice(), SECRET);
    let before = fs::read(&path).unwrap();
    assert!(Keyring::create(&path).is_err());
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn faults_of_a_keyring_file_are_named() {
    let good = BASE64.encode(&[7; 32]);
    let short = BASE64.encode(&[7; 31]);
    let entry = |id: &str, key: &str| format!(r#"{{"id":"{id}","key":"{key}"}}"#);
    let whole = |primary: &str, keys: &[String]| {
        format!(r#"{{"primary":"{primary}","keys":[{}]}}"#, keys.join(","))
    };
    let cases = [
        (String::new(), "line 1"),
        ("{}".to_owned(), "expected form"),
        (whole("k1", &[]), "no keys"),
        (whole("k2", &[entry("k1", &good)]), "primary key k2"),
        (whole("k1", &[entry("k1", &good), entry("k1", &good)]), "two keys named k1"),
        (whole("k1", &[entry("k1", &short)]), "key k1 of the keyring is not 32 bytes"),
        (whole("k1", &[entry("k1", "###")]), "key k1 of the keyring is not 32 bytes"),
        (whole("", &[entry("", &good)]), "key id"),
        (whole("a b", &[entry("a b", &good)]), "key id"),
        (whole("k1", &[format!(r#"{{"id":"k1","key":"{good}","note":1}}"#)]), "expected form"),
        (whole("k1", &[entry("k1", &good)]).replace("primary", "Primary"), "expected form"),
    ];
    for (text, expected) in cases {
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
        assert!(!message.contains(&good) && !message.contains(&short), "{message}");
    }
    assert!(parse(&whole("k1", &[entry("k1", &good)])).is_ok());
}

#[test]
fn debug_shows_no_key() {
    let text = format!("{:?}", ring("k1", &[("k1", 7)]));
    assert_eq!(text, "Keyring(1 keys)");
}

#[test]
fn a_record_moves_to_the_primary_key_and_holds_the_same_secret() {
    let old = ring("k1", &[("k1", 1)]);
    let both = ring("k2", &[("k1", 1), ("k2", 2)]);
    let new = ring("k2", &[("k2", 2)]);
    let sealed = old.seal(context(1, 2, 3), SECRET).unwrap();
    assert_eq!(both.key_id_of(&sealed).as_deref(), Some("k1"));
    let moved = both.rewrap(context(1, 2, 3), &sealed).unwrap().unwrap();
    assert_eq!(both.key_id_of(&moved).as_deref(), Some("k2"));
    assert_eq!(new.open(context(1, 2, 3), &moved).unwrap().as_slice(), SECRET);
    assert_eq!(new.open(context(1, 2, 4), &moved), Err(SealError::Corrupt), "it is still bound");
    assert_eq!(both.rewrap(context(1, 2, 3), &moved), Ok(None), "it is there already");
    assert_eq!(both.rewrap(context(9, 2, 3), &sealed), Err(SealError::Corrupt));
    assert_eq!(new.rewrap(context(1, 2, 3), &sealed), Err(SealError::UnknownKey("k1".to_owned())));
    let garbage = SealedSecret::from_bytes(vec![9; 200]);
    assert_eq!(both.rewrap(context(1, 2, 3), &garbage), Err(SealError::Corrupt));
    assert_eq!(both.key_id_of(&garbage), None);
}
