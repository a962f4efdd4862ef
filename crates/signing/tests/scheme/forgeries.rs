//! Signatures that careless verifiers have taken.

use turnbuckle_signing::scheme::{Refusal, SchemeKeyError, Verifier, preset};

use crate::sample::{Sample, base64};
use crate::vectors::named;

#[test]
fn an_ecdsa_signature_of_zeros_is_refused() {
    // Two numbers that are 0, 1, or the order of the curve, in ASN.1.
    let order = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc,
        0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    let number = |bytes: &[u8]| {
        let sign: &[u8] = if bytes[0] & 0x80 == 0 { &[] } else { &[0] };
        let value = [sign, bytes].concat();
        [&[2, u8::try_from(value.len()).unwrap()], value.as_slice()].concat()
    };
    let numbers: [&[u8]; 3] = [&[0], &[1], &order];
    for r in numbers {
        for s in numbers {
            let inner = [number(r), number(s)].concat();
            let der = [&[0x30, u8::try_from(inner.len()).unwrap()], inner.as_slice()].concat();
            let mut sample = named("sendgrid");
            sample.headers[1].1 = base64(&der).into_bytes();
            assert!(sample.verify().is_err(), "{r:?} {s:?}");
        }
    }
}

#[test]
fn an_ecdsa_signature_has_one_spelling() {
    let right = named("sendgrid");
    let der = data_encoding::BASE64.decode(&right.headers[1].1).unwrap();
    let with = |der: Vec<u8>| {
        let mut sample = right.clone();
        sample.headers[1].1 = base64(&der).into_bytes();
        sample.verify().is_ok()
    };
    assert!(with(der.clone()));
    // A length in the long form, a zero too many, and bytes behind the end.
    let mut long_form = der.clone();
    long_form.splice(1..2, [0x81, der[1]]);
    assert!(!with(long_form));
    let mut padded = der.clone();
    padded[1] += 1;
    padded[3] += 1;
    padded.insert(4, 0);
    assert!(!with(padded));
    assert!(!with([der, vec![0]].concat()));
}

#[test]
fn an_ed25519_signature_cannot_be_rewritten() {
    let right = named("made-discord");
    let place = right.headers.iter().position(|(name, _)| name.contains("ed25519")).unwrap();
    let mut bytes = data_encoding::HEXLOWER.decode(&right.headers[place].1).unwrap();
    // The same number plus the order of the group, which a lax verifier takes for the same.
    let order: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut carry = 0_u16;
    for (byte, more) in bytes[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(more) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    let mut rewritten = right;
    rewritten.headers[place].1 = data_encoding::HEXLOWER.encode(&bytes).into_bytes();
    assert_eq!(rewritten.verify(), Err(Refusal::Mismatch));
}

#[test]
fn public_keys_that_fit_every_message_are_refused() {
    let verifier = Verifier::new(preset("discord").unwrap().scheme.clone()).unwrap();
    for weak in [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    ] {
        assert_eq!(verifier.key(weak).err(), Some(SchemeKeyError::PublicKey("Ed25519")), "{weak}");
    }
}

#[test]
fn a_list_passes_in_any_order() {
    for (name, place, separator) in
        [("standard-webhooks-list", 2, ' '), ("paddle-two", 0, ';'), ("stripe", 0, ',')]
    {
        let mut sample = named(name);
        let value = String::from_utf8(sample.headers[place].1.clone()).unwrap();
        let reversed: Vec<&str> = value.split(separator).rev().collect();
        sample.headers[place].1 = reversed.join(&separator.to_string()).into_bytes();
        assert!(sample.verify().is_ok(), "{name}");
    }
}

#[test]
fn a_signature_of_another_kind_is_none() {
    // The right MAC under a tag that is not for it.
    let mut sample = named("standard-webhooks-shared");
    for tag in ["v1a,", "v2,", "V1,", ",", "v1", "v1:", ""] {
        let value = format!("{tag}g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        sample.headers[2].1 = value.into_bytes();
        assert_eq!(sample.verify(), Err(Refusal::NoUsableSignature), "{tag}");
    }
    // A public key in the ring checks no MAC, and a secret no Ed25519 signature.
    let public = named("standard-webhooks-ed25519");
    let secret = named("standard-webhooks-shared");
    assert_eq!(public.verify_with(&[secret.parsed_key()]), Err(Refusal::Mismatch));
    assert_eq!(secret.verify_with(&[public.parsed_key()]), Err(Refusal::Mismatch));
    let both = [public.parsed_key(), secret.parsed_key()];
    assert_eq!(secret.verify_with(&both).unwrap().key_index, 1);
    assert_eq!(public.verify_with(&both).unwrap().key_index, 0);
}

#[test]
fn an_empty_body_and_one_that_is_no_text_are_signed_like_others() {
    let key = "a-secret-of-some-length";
    for body in [b"".as_slice(), b"\xff\xfe\0", "\u{feff}{}".as_bytes()] {
        let mac = crate::sample::hex(&crate::sample::hmac_sha256(key.as_bytes(), body));
        let header = format!("sha256={mac}");
        let mut sample = Sample::of("github", key).header("x-hub-signature-256", &header);
        sample.body = body.to_vec();
        assert!(sample.verify().is_ok(), "{body:?}");
    }
}
