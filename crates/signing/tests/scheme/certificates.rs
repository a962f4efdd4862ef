//! Keys that come as certificates.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rsa::pkcs8::EncodePrivateKey;
use rustls_pki_types::CertificateDer;
use sha2::Sha256;
use turnbuckle_signing::scheme::{
    Refusal, SchemeKey, SchemeKeyError, TrustAnchor, Verifier, WantedKey, preset,
};

use crate::sample::{Sample, base64};

/// Certificates made here are valid from 1975 to 4096.
const NOW_MS: i64 = 1_700_000_000_000;
const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:orders";

struct Issuer {
    anchor: TrustAnchor<'static>,
    chain: String,
    key: rsa::PrivateKey,
}

/// A root, and a certificate of it for `name` with an RSA key.
fn issuer(name: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = rsa::PrivateKey::new(&mut rand::rng(), 2048).unwrap();
    let pkcs8 = key.to_pkcs8_der().unwrap();
    let pair = KeyPair::try_from(pkcs8.as_bytes()).unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&pair, &root).unwrap();
    let root_der = CertificateDer::from(root.der().to_vec());
    let anchor = webpki::anchor_from_trusted_cert(&root_der).unwrap().to_owned();
    Issuer { anchor, chain: pem_of(leaf.der()), key }
}

fn pem_of(der: &[u8]) -> String {
    let text = base64(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

fn notification(issuer: &Issuer, subject: Option<&str>) -> Sample {
    let (id, at) = ("22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "2023-11-14T22:13:20.000Z");
    let subject_line = subject.map_or(String::new(), |text| format!("Subject\n{text}\n"));
    let signed = format!(
        "Message\nHello \"world\"\nMessageId\n{id}\n{subject_line}Timestamp\n{at}\nTopicArn\n{TOPIC}\nType\nNotification\n"
    );
    let signature = base64(&issuer.key.pkcs1v15_sign::<Sha256>(signed.as_bytes()).unwrap());
    let subject_member = subject.map_or(String::new(), |text| format!(r#""Subject":"{text}","#));
    let body = format!(
        r#"{{"Type":"Notification","MessageId":"{id}","TopicArn":"{TOPIC}",{subject_member}"Message":"Hello \"world\"","Timestamp":"{at}","SignatureVersion":"2","Signature":"{signature}","SigningCertURL":"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-x.pem"}}"#
    );
    let mut sample = Sample::of("aws-sns", "").setting("topic_arn", TOPIC).body(&body);
    sample.now_ms = NOW_MS;
    sample
}

fn sns() -> Verifier {
    Verifier::new(preset("aws-sns").unwrap().scheme.clone()).unwrap()
}

fn fetched(sample: &Sample, issuer: &Issuer, anchor: &Issuer) -> Result<SchemeKey, Refusal> {
    let wanted = sample.judged(|request, _| sns().wanted_key(request))?.unwrap();
    let anchors = [anchor.anchor.clone()];
    sns().key_from_chain(&wanted, issuer.chain.as_bytes(), &anchors, NOW_MS)
}

#[test]
fn a_notification_is_verified_with_the_certificate_it_names() {
    let issuer = issuer("sns.amazonaws.com");
    for subject in [None, Some("News")] {
        let sample = notification(&issuer, subject);
        let keys = [fetched(&sample, &issuer, &issuer).unwrap()];
        let verified = sample.verify_with(&keys).unwrap();
        assert_eq!(verified.signed_at_ms, Some(NOW_MS));
        assert!(verified.message_id_signed);
        let text = String::from_utf8(sample.body.clone()).unwrap();
        for (from, to) in [("Hello", "Hallo"), ("22b8", "22b9"), ("Notification\"", "Other\"")] {
            let changed = sample.clone().body(&text.replacen(from, to, 1));
            assert!(changed.verify_with(&keys).is_err(), "{from}");
        }
        let more = text.replacen("\"Message\":", "\"Token\":\"t\",\"Message\":", 1);
        assert_eq!(sample.clone().body(&more).verify_with(&keys), Err(Refusal::Mismatch));
        let mut other = sample.clone();
        other.settings[0].1 = "arn:aws:sns:eu-west-1:123456789012:other".into();
        assert_eq!(other.verify_with(&keys), Err(Refusal::ClaimMismatch(1)));
    }
}

#[test]
fn a_certificate_must_lead_to_an_anchor_be_for_the_sender_and_in_date() {
    let trusted = issuer("sns.amazonaws.com");
    let sample = notification(&trusted, None);
    let refused =
        |result: Result<SchemeKey, Refusal>| assert_eq!(result.err(), Some(Refusal::Certificate));
    refused(fetched(&sample, &issuer("sns.amazonaws.com"), &trusted));
    let other = issuer("evil.example");
    refused(fetched(&sample, &other, &other));
    let wanted = sample.judged(|request, _| sns().wanted_key(request)).unwrap().unwrap();
    let anchors = [trusted.anchor.clone()];
    let at = |pem: &[u8], now| sns().key_from_chain(&wanted, pem, &anchors, now);
    refused(at(trusted.chain.as_bytes(), 0));
    refused(at(trusted.chain.as_bytes(), i64::MAX));
    refused(at(trusted.chain.as_bytes(), -1));
    for pem in ["", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        refused(at(pem.as_bytes(), NOW_MS));
    }
    refused(at(&vec![b'a'; 100_000], NOW_MS));
    let set = WantedKey::KeySet { url: String::new(), key_id: String::new() };
    refused(sns().key_from_chain(&set, trusted.chain.as_bytes(), &anchors, NOW_MS));
}

#[test]
fn only_listed_hosts_are_asked_for_certificates() {
    let issuer = issuer("sns.amazonaws.com");
    let sample = notification(&issuer, None);
    let text = String::from_utf8(sample.body.clone()).unwrap();
    let moved = text.replace("sns.eu-west-1.amazonaws.com/", "evil.example/sns.amazonaws.com/");
    let moved = sample.body(&moved);
    let wanted = moved.judged(|request, _| sns().wanted_key(request));
    assert_eq!(wanted, Err(Refusal::KeyAddress));
}

#[test]
fn paypal_signs_a_checksum_of_the_body() {
    let issuer = issuer("messageverificationcerts.paypal.com");
    let verifier = Verifier::new(preset("paypal").unwrap().scheme.clone()).unwrap();
    let body = r#"{"id":"WH-1","event_type":"PAYMENT.SALE.COMPLETED"}"#;
    let (id, at) = ("b2384410-f8d2-11e4-8bf3-77339302725b", "2023-11-14T22:13:20Z");
    let crc = 0x3ee8_6b0a_u32;
    let signed = |crc: u32| format!("{id}|{at}|WH-ID|{crc}");
    let sample = |crc: u32| {
        let signature = issuer.key.pkcs1v15_sign::<Sha256>(signed(crc).as_bytes()).unwrap();
        let mut sample = Sample::of("paypal", "")
            .header("PAYPAL-TRANSMISSION-ID", id)
            .header("PAYPAL-TRANSMISSION-TIME", at)
            .header("PAYPAL-TRANSMISSION-SIG", &base64(&signature))
            .header("PAYPAL-AUTH-ALGO", "SHA256withRSA")
            .header("PAYPAL-CERT-URL", "https://api.paypal.com/v1/notifications/certs/CERT-360")
            .setting("webhook_id", "WH-ID")
            .body(body);
        sample.now_ms = NOW_MS;
        sample
    };
    let wanted = sample(crc).judged(|request, _| verifier.wanted_key(request)).unwrap().unwrap();
    let anchors = [issuer.anchor.clone()];
    let key = verifier.key_from_chain(&wanted, issuer.chain.as_bytes(), &anchors, NOW_MS).unwrap();
    let right = crc32_of(body.as_bytes());
    let keys = [key];
    assert!(sample(right).verify_with(&keys).is_ok());
    assert_eq!(sample(right ^ 1).verify_with(&keys), Err(Refusal::Mismatch));
    let mut unset = sample(right);
    unset.settings.clear();
    assert_eq!(unset.verify_with(&keys), Err(Refusal::MissingSetting));
}

/// Bit by bit, unlike the table of the product.
fn crc32_of(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn a_key_ring_takes_public_keys_and_certificates_in_pem_and_no_private_ones() {
    let text = r#"
[signature]
at = ["header:x-signature"]
encoding = "base64"
template = "{body}"
[[signature.algorithms]]
algorithm = "rsa-pkcs1-sha256"
key = { encoding = "pem" }
"#;
    let scheme = turnbuckle_signing::scheme::Scheme::from_toml(text).unwrap();
    let verifier = Verifier::new(scheme).unwrap();
    let issuer = issuer("sender.example");
    let from_certificate = verifier.key(&issuer.chain).unwrap();
    use rsa::pkcs8::EncodePublicKey;
    let public = issuer.key.to_public_key().to_public_key_pem(rsa::pkcs8::LineEnding::LF).unwrap();
    let from_key = verifier.key(&public).unwrap();
    assert_eq!(from_certificate.fingerprint(), from_key.fingerprint());
    let private = issuer.key.to_pkcs8_pem(rsa::pkcs8::LineEnding::LF).unwrap();
    assert_eq!(verifier.key(&private).err(), Some(SchemeKeyError::PrivateKeyGiven));
    let signature = base64(&issuer.key.pkcs1v15_sign::<Sha256>(b"body").unwrap());
    let sample = Sample::of("github", "").header("x-signature", &signature).body("body");
    assert!(sample.verify_under(&verifier, &[from_key]).is_ok());
    let weak = rsa::PrivateKey::new(&mut rand::rng(), 1024).unwrap();
    let weak = weak.to_public_key().to_public_key_pem(rsa::pkcs8::LineEnding::LF).unwrap();
    assert!(matches!(verifier.key(&weak), Err(SchemeKeyError::PublicKey(_))));
}
