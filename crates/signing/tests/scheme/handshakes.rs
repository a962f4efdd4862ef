//! Questions that senders ask, and the answers they get.

use turnbuckle_signing::scheme::{HandshakeReply, Verifier, presets};

use crate::sample::{Sample, base64, hex, hmac_sha256};

fn body_of(reply: &HandshakeReply) -> (&str, u16, Option<&str>) {
    let content_type = reply.headers.iter().find(|(name, _)| name == "content-type");
    (&reply.body, reply.status, content_type.map(|(_, value)| value.as_str()))
}

fn slack(body: &str, key: &str) -> Sample {
    let at = 1_700_000_000;
    let mac = hmac_sha256(key.as_bytes(), format!("v0:{at}:{body}").as_bytes());
    Sample::of("slack", key)
        .header("X-Slack-Request-Timestamp", &at.to_string())
        .header("X-Slack-Signature", &format!("v0={}", hex(&mac)))
        .body(body)
}

#[test]
fn slack_gets_its_challenge_back_when_it_is_signed() {
    let body = r#"{"type":"url_verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY"}"#;
    let sample = slack(body, "secret");
    let (name, reply) = sample.handshake(&[sample.parsed_key()]).unwrap();
    assert_eq!(name, "url-verification");
    assert_eq!(body_of(&reply), ("3eZbrw1aBm2rZgRNFdxV2595E9CY", 200, Some("text/plain")));
    let forged = Sample { key: "other".into(), ..sample };
    assert!(forged.handshake(&[forged.parsed_key()]).is_none());
    let event = slack(r#"{"type":"event_callback"}"#, "secret");
    assert!(event.handshake(&[event.parsed_key()]).is_none());
}

#[test]
fn zoom_gets_the_token_and_its_mac() {
    let body =
        r#"{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}"#;
    let at = 1_700_000_000;
    let mac = hmac_sha256(b"secret", format!("v0:{at}:{body}").as_bytes());
    let sample = Sample::of("zoom", "secret")
        .header("x-zm-request-timestamp", &at.to_string())
        .header("x-zm-signature", &format!("v0={}", hex(&mac)))
        .body(body);
    let (_, reply) = sample.handshake(&[sample.parsed_key()]).unwrap();
    let expected = format!(
        r#"{{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"{}"}}"#,
        hex(&hmac_sha256(b"secret", b"qgg8vlvZRS6UYooatFL8Aw"))
    );
    assert_eq!(body_of(&reply), (expected.as_str(), 200, Some("application/json")));
}

#[test]
fn x_gets_a_mac_of_a_token_and_of_nothing_else() {
    let ask = |token: &str| {
        let mut sample = Sample::of("x", "secret");
        sample.method = "GET".into();
        sample.url = format!("https://hooks.example/in?crc_token={token}");
        sample.handshake(&[sample.parsed_key()])
    };
    let (_, reply) = ask("9b4507b3-9040-4669-9ca3-6b94edb50553").unwrap();
    let mac = base64(&hmac_sha256(b"secret", b"9b4507b3-9040-4669-9ca3-6b94edb50553"));
    assert_eq!(reply.body, format!(r#"{{"response_token":"sha256={mac}"}}"#));
    // Otherwise anyone could have an event of their own making signed.
    for body in ["%7B%22event%22%3A1%7D", "a%3Db%26c", "%22", &"a".repeat(200), ""] {
        assert!(ask(body).is_none(), "{body}");
    }
}

#[test]
fn meta_gets_its_challenge_for_the_right_token_alone() {
    let ask = |query: &str, settings: bool| {
        let mut sample = Sample::of("meta", "app-secret");
        if settings {
            sample = sample.setting("verify_token", "letmein");
        }
        sample.method = "GET".into();
        sample.url = format!("https://hooks.example/in?{query}");
        sample.handshake(&[sample.parsed_key()])
    };
    let right = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=letmein";
    assert_eq!(body_of(&ask(right, true).unwrap().1), ("1158201444", 200, Some("text/plain")));
    for wrong in [
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=letmei",
        "hub.mode=subscribe&hub.challenge=1",
        "hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=letmein",
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=x&hub.verify_token=letmein",
        "hub.mode=subscribe&hub.verify_token=letmein",
        "hub.mode=subscribe&hub.challenge=%3Cscript%3E&hub.verify_token=letmein",
        "hub.mode=subscribe&hub.challenge=a%0d%0ab&hub.verify_token=letmein",
    ] {
        assert!(ask(wrong, true).is_none(), "{wrong}");
    }
    assert!(ask(right, false).is_none());
    assert!(ask("hub.mode=subscribe&hub.challenge=1&hub.verify_token=", false).is_none());
}

#[test]
fn echoes_of_get_and_post() {
    for (preset, method, query, body) in [
        ("dropbox", "GET", "challenge=abc", "abc"),
        ("nylas", "GET", "challenge=abc", "abc"),
        ("microsoft-graph", "POST", "validationToken=Validation%3a+a%20b", "Validation: a b"),
    ] {
        let mut sample = Sample::of(preset, "secret");
        sample.method = method.into();
        sample.url = format!("https://hooks.example/in?{query}");
        let (_, reply) = sample.handshake(&[sample.parsed_key()]).unwrap();
        assert_eq!(body_of(&reply), (body, 200, Some("text/plain")), "{preset}");
        let sniff = ("x-content-type-options".to_owned(), "nosniff".to_owned());
        assert!(reply.headers.contains(&sniff), "{preset}");
    }
}

#[test]
fn okta_gets_its_challenge_as_json() {
    let mut sample = Sample::of("okta", "secret").header("X-Okta-Verification-Challenge", "a\"b");
    sample.method = "GET".into();
    let (_, reply) = sample.handshake(&[sample.parsed_key()]).unwrap();
    assert_eq!(reply.body, r#"{"verification":"a\"b"}"#);
}

#[test]
fn a_secret_is_learned_once() {
    for (preset, sample) in [
        ("asana", Sample::of("asana", "").header("X-Hook-Secret", "b537207f20cbfa02")),
        ("notion", Sample::of("notion", "").body(r#"{"verification_token":"secret_tMrl"}"#)),
    ] {
        let (_, reply) = sample.handshake(&[]).unwrap();
        let secret = reply.learned_secret.as_ref().unwrap().expose().to_owned();
        assert!(["b537207f20cbfa02", "secret_tMrl"].contains(&secret.as_str()));
        assert!(!format!("{reply:?}").contains(&secret), "{preset}");
        let known = sample.verifier().key("an older secret").unwrap();
        assert!(sample.handshake(&[known]).is_none(), "{preset}");
    }
    let asana = Sample::of("asana", "").header("X-Hook-Secret", "b537207f20cbfa02");
    let echoed = ("x-hook-secret".to_owned(), "b537207f20cbfa02".to_owned());
    assert!(asana.handshake(&[]).unwrap().1.headers.contains(&echoed));
}

#[test]
fn signed_heartbeats_are_answered() {
    for (preset, header, encode) in [
        ("asana", "X-Hook-Signature", hex as fn(&[u8]) -> String),
        ("xero", "x-xero-signature", base64 as fn(&[u8]) -> String),
    ] {
        let body = r#"{"events":[]}"#;
        let mac = encode(&hmac_sha256(b"secret", body.as_bytes()));
        let sample = Sample::of(preset, "secret").header(header, &mac).body(body);
        let (_, reply) = sample.handshake(&[sample.parsed_key()]).unwrap();
        assert_eq!(body_of(&reply), ("", 200, None), "{preset}");
        let wrong = Sample { key: "wrong".into(), ..sample };
        assert!(wrong.handshake(&[wrong.parsed_key()]).is_none(), "{preset}");
    }
}

#[test]
fn twitch_gets_its_challenge() {
    let (id, at, body) = ("e76c6bd4", "2023-11-14T22:13:20.123456789Z", r#"{"challenge":"p0g"}"#);
    let mac = hmac_sha256(b"s3cre77890ab", format!("{id}{at}{body}").as_bytes());
    let sample = Sample::of("twitch", "s3cre77890ab")
        .header("Twitch-Eventsub-Message-Id", id)
        .header("Twitch-Eventsub-Message-Timestamp", at)
        .header("Twitch-Eventsub-Message-Type", "webhook_callback_verification")
        .header("Twitch-Eventsub-Message-Signature", &format!("sha256={}", hex(&mac)))
        .body(body);
    assert_eq!(sample.handshake(&[sample.parsed_key()]).unwrap().1.body, "p0g");
    assert_eq!(sample.verify().unwrap().signed_at_ms, Some(1_700_000_000_123));
}

#[test]
fn braintree_gets_its_public_key_and_a_mac_under_the_derived_key() {
    let mut sample = Sample::of("braintree", "integration_private_key")
        .setting("public_key", "integration_public_key");
    sample.method = "GET".into();
    sample.url = "https://hooks.example/in?bt_challenge=20f9f8ed05f77439fe955c977e4c8a53".into();
    // braintree_python, tests of its verification.
    let expected = "integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4";
    assert_eq!(sample.handshake(&[sample.parsed_key()]).unwrap().1.body, expected);
}

#[test]
fn an_ordinary_request_is_no_handshake_of_anyone() {
    for preset in presets() {
        let verifier = Verifier::new(preset.scheme.clone()).unwrap();
        for body in ["", "{", "[]", r#"{"id":"1"}"#, "\u{0}", "a=b"] {
            let sample = Sample::of(&preset.name, "").body(body);
            let none: [turnbuckle_signing::scheme::SchemeKey; 0] = [];
            let found = sample
                .judged(|request, context| verifier.handshake(request, &none, context).is_some());
            assert!(!found, "{}: {body}", preset.name);
        }
    }
}
