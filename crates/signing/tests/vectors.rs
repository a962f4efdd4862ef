//! Published vectors of public libraries and manuals. Both ways: our signature must equal the
//! published one, and our verifier must accept it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use turnbuckle_signing::{
    KeyError, Message, Profile, SignerOptions, SigningKey, VerifyOptions, VerifyingKey, sign,
    verify,
};

struct Vector {
    secret: &'static str,
    id: &'static str,
    timestamp: i64,
    body: &'static str,
    signature: &'static str,
}

/// standard-webhooks libraries for Go, JavaScript, Python, Ruby, PHP, Java and C#; Svix; Replicate.
const SHARED: Vector = Vector {
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    timestamp: 1_614_265_330,
    body: r#"{"test": 2432232314}"#,
    signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};

/// standard-webhooks library for Rust.
const RUST: Vector = Vector {
    secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
    id: "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
    timestamp: 1_649_367_553,
    body: r#"{"email":"test@example.com","username":"test_user"}"#,
    signature: "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
};

/// openai-python, tests of its webhooks.
const OPENAI: Vector = Vector {
    secret: "whsec_RdvaYFYUXuIFuEbvZHwMfYFhUf7aMYjYcmM24+Aj40c=",
    id: "wh_685c059ae39c8190af8c71ed1022a24d",
    timestamp: 1_750_861_210,
    body: r#"{"id": "evt_685c059ae3a481909bdc86819b066fb6", "object": "event", "created_at": 1750861210, "type": "response.completed", "data": {"id": "resp_123"}}"#,
    signature: "v1,gUAg4R2hWouRZqRQG4uJypNS8YK885G838+EHb4nKBY=",
};

/// lithic-python, tests of its webhooks.
const LITHIC: Vector = Vector {
    secret: "whsec_zlFsbBZ8Xcodlpcu6NDTdSzZRLSdhkst",
    id: "msg_2Lh9KRb0pzN4LePd3XiA4v12Axj",
    timestamp: 1_676_312_382,
    body: r#"{"card_token":"sit Lorem ipsum, accusantium repellendus possimus","created_at":"elit. placeat libero architecto molestias, sit","account_token":"elit.","issuer_decision":"magnam, libero esse Lorem ipsum magnam, magnam,","tokenization_attempt_id":"illum dolor repellendus libero esse accusantium","wallet_decisioning_info":{"device_score":"placeat architecto"},"digital_wallet_token_metadata":{"status":"reprehenderit dolor","token_requestor_id":"possimus","payment_account_info":{"account_holder_data":{"phone_number":"libero","email_address":"nobis molestias, veniam culpa! quas elit. quas libero esse architecto placeat"},"pan_unique_reference":"adipisicing odit magnam, odit"}}}"#,
    signature: "v1,Dwa0AHInLL3XFo2sxcHamOQDrJNi7F654S3L6skMAOI=",
};

/// Server tests of Svix: the shared message under an Ed25519 key.
const ED25519: Vector = Vector {
    secret: "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
    signature: "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
    ..SHARED
};
const ED25519_PUBLIC: &str = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";

/// "Verifying payloads manually" in the documentation of Svix; its key has only 18 bytes.
const SHORT_KEY: Vector = Vector {
    secret: "whsec_plJ3nmyCDGBKInavdOK15jsl",
    id: "msg_loFOjxBNrRLzqYUf",
    timestamp: 1_731_705_121,
    body: r#"{"event_type":"ping","data":{"success":true}}"#,
    signature: "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
};

fn assert_verifies(vector: &Vector, key: &VerifyingKey) {
    let timestamp = vector.timestamp.to_string();
    for prefix in ["webhook", "svix"] {
        let headers = [
            (format!("{prefix}-id"), vector.id),
            (format!("{prefix}-timestamp"), timestamp.as_str()),
            (format!("{prefix}-signature"), vector.signature),
        ];
        let verified = verify(
            Profile::StandardWebhooks,
            &[key],
            &headers,
            vector.body.as_bytes(),
            &VerifyOptions::at(vector.timestamp),
        )
        .unwrap();
        assert_eq!(verified.key_index, 0);
        assert_eq!(verified.id.as_deref(), Some(vector.id));
        assert_eq!(verified.timestamp, Some(vector.timestamp));
    }
}

fn assert_signs(vector: &Vector) {
    let key = SigningKey::parse(vector.secret).unwrap();
    let message =
        Message { id: vector.id, timestamp: vector.timestamp, body: vector.body.as_bytes() };
    let headers =
        sign(Profile::StandardWebhooks, &[&key], &message, &SignerOptions::default()).unwrap();
    assert_eq!(
        headers,
        [
            ("webhook-id".into(), vector.id.to_owned()),
            ("webhook-timestamp".into(), vector.timestamp.to_string()),
            ("webhook-signature".into(), vector.signature.to_owned()),
        ]
    );
    assert_eq!(key.secret_text().expose(), vector.secret);
    assert_verifies(vector, &key.verifying());
}

#[test]
fn hmac_vectors_of_the_standard_webhooks_family_hold_both_ways() {
    for vector in [&SHARED, &RUST, &OPENAI, &LITHIC] {
        assert_signs(vector);
        assert_verifies(vector, &VerifyingKey::parse(vector.secret).unwrap());
    }
}

#[test]
fn the_ed25519_vector_holds_both_ways_and_with_the_published_public_key() {
    assert_signs(&ED25519);
    assert_verifies(&ED25519, &VerifyingKey::parse(ED25519_PUBLIC).unwrap());
    let key = SigningKey::parse(ED25519.secret).unwrap();
    assert_eq!(key.public_text().as_deref(), Some(ED25519_PUBLIC));
}

#[test]
fn a_published_key_below_our_minimum_verifies_only_as_a_foreign_one() {
    let too_short = KeyError::TooShort { min: 24 };
    assert_eq!(VerifyingKey::parse(SHORT_KEY.secret).unwrap_err(), too_short);
    assert_eq!(SigningKey::parse(SHORT_KEY.secret).unwrap_err(), too_short);
    let encoded = SHORT_KEY.secret.trim_start_matches("whsec_");
    let secret = data_encoding::BASE64.decode(encoded.as_bytes()).unwrap();
    assert_verifies(&SHORT_KEY, &VerifyingKey::foreign_hmac(&secret).unwrap());
}

fn assert_hub(secret: &[u8], body: &str, mac: &str) {
    let key = VerifyingKey::foreign_hmac(secret).unwrap();
    let value = format!("sha256={mac}");
    for name in ["X-Hub-Signature-256", "X-Hub-Signature"] {
        let headers = [(name, value.as_str())];
        let options = VerifyOptions::at(0);
        let verified =
            verify(Profile::HubSha256, &[&key], &headers, body.as_bytes(), &options).unwrap();
        assert_eq!((verified.id, verified.timestamp), (None, None));
    }
    if let Ok(key) = SigningKey::hmac(secret) {
        let message = Message { id: "", timestamp: 0, body: body.as_bytes() };
        let options = SignerOptions::default();
        let headers = sign(Profile::HubSha256, &[&key], &message, &options).unwrap();
        assert_eq!(
            headers,
            [("x-hub-signature".into(), value.clone()), ("x-hub-signature-256".into(), value),]
        );
    }
}

#[test]
fn hub_vectors_hold_both_ways() {
    // GitHub documentation, "Validating webhook deliveries".
    assert_hub(
        b"It's a Secret to Everybody",
        "Hello, World!",
        "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    );
    // Bitbucket Cloud documentation, "Manage webhooks".
    assert_hub(
        b"It's a Secret to Everybody",
        "Hello World!",
        "a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9",
    );
    // octokit/webhooks-methods.js, its tests.
    assert_hub(
        b"mysecret",
        r#"{"foo":"bar"}"#,
        "4864d2759938a15468b5df9ade20bf161da9b4f737ea61794142f3484236bda3",
    );
}

#[test]
fn the_timestamped_hex_bytes_are_time_dot_body() {
    // Computed independently with the hub profile, whose signed bytes are the body alone.
    let key = SigningKey::hmac(b"It's a Secret to Everybody").unwrap();
    let options = SignerOptions::default();
    let hex = sign(
        Profile::TimestampedHex,
        &[&key],
        &Message { id: "ignored.here", timestamp: 1_614_265_330, body: b"Hello" },
        &options,
    )
    .unwrap();
    let hub = sign(
        Profile::HubSha256,
        &[&key],
        &Message { id: "", timestamp: 0, body: b"1614265330.Hello" },
        &options,
    )
    .unwrap();
    assert_eq!(hex[0], ("x-webhook-timestamp".into(), "1614265330".to_owned()));
    assert_eq!(hex[1].0, "x-webhook-signature");
    assert_eq!(hex[1].1.strip_prefix("v1="), hub[0].1.strip_prefix("sha256="));
}
