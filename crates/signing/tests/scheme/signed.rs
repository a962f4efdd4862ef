//! Samples of every scheme whose key is held here: they verify, and nothing in them can be changed.

use proptest::prelude::*;
use turnbuckle_signing::scheme::{
    Context, Encoding, KeyEncoding, KeyRule, Locator, Part, Preset, Proof, Refusal, Request,
    Sample, SampleError, SampleOrder, SchemeKey, Verifier, Weakness, Wish, presets,
};

const SETTINGS: [(&str, &str); 6] = [
    ("webhook_id", "w-1"),
    ("verify_token", "a token to verify with"),
    ("public_key", "a-public-key"),
    ("key_id", "k-1"),
    ("api_key", "a-1"),
    ("topic_arn", "arn:aws:sns:eu-west-1:1:t"),
];

/// What differs from one sample to the next.
#[derive(Clone, Debug)]
struct Draw {
    secret: [u8; 32],
    text: String,
    now_unix_ms: i64,
}

fn draws() -> impl Strategy<Value = Draw> {
    (any::<[u8; 32]>(), "[ -~äß€]{0,24}", 1_600_000_000_000_i64..2_000_000_000_000)
        .prop_map(|(secret, text, now_unix_ms)| Draw { secret, text, now_unix_ms })
}

fn one_draw() -> Draw {
    Draw { secret: [7; 32], text: "a \"text\"".to_owned(), now_unix_ms: 1_700_000_000_123 }
}

fn key_rule(preset: &Preset) -> &KeyRule {
    match &preset.scheme.proof {
        Proof::Signature(proof) => &proof.algorithms[0].key,
        Proof::Jwt(proof) => &proof.key,
    }
}

fn key(verifier: &Verifier, rule: &KeyRule, secret: &[u8]) -> Option<SchemeKey> {
    let text = match rule.encoding {
        KeyEncoding::Hex => data_encoding::HEXLOWER.encode(secret),
        KeyEncoding::Utf8 | KeyEncoding::Base64 => data_encoding::BASE64.encode(secret),
        KeyEncoding::SpkiBase64 | KeyEncoding::Pem => return None,
    };
    let prefix = rule.prefixes.first().map_or("", String::as_str);
    verifier.key(&format!("{prefix}{text}")).ok()
}

struct Signed {
    preset: &'static Preset,
    verifier: Verifier,
    key: SchemeKey,
    sample: Sample,
    now_unix_ms: i64,
}

impl Signed {
    fn of(preset: &'static Preset, draw: &Draw) -> Option<Self> {
        let verifier = Verifier::new(preset.scheme.clone()).unwrap();
        if preset.scheme.fetches_keys() {
            return None;
        }
        let key = key(&verifier, key_rule(preset), &draw.secret)?;
        let items = preset.event.items.clone();
        let text = "json:sample.text".parse().unwrap();
        let wishes = [
            Wish { at: text, items: None, text: draw.text.clone() },
            Wish { at: "json:id".parse().unwrap(), items, text: "i-1".to_owned() },
        ];
        let context = Context { now_unix_ms: draw.now_unix_ms, settings: &SETTINGS };
        let url = "https://hooks.example:8443/in/x";
        let order = SampleOrder { url, message_id: "msg_1", wishes: &wishes, context };
        let sample = match verifier.sample(&key, &order) {
            Ok(sample) => sample,
            Err(SampleError::PublicKey) => return None,
            Err(error) => panic!("{}: {error}", preset.name),
        };
        Some(Self { preset, verifier, key, sample, now_unix_ms: draw.now_unix_ms })
    }

    fn judge(&self, sample: &Sample) -> Result<(), Refusal> {
        let request = Request {
            method: sample.method,
            url: &sample.url,
            headers: &sample.headers,
            body: &sample.body,
        };
        let context = Context { now_unix_ms: self.now_unix_ms, settings: &SETTINGS };
        self.verifier.verify(&request, std::slice::from_ref(&self.key), &context).map(drop)
    }

    /// Places of headers that the proof covers, or that are the proof.
    fn signed_headers(&self) -> Vec<(usize, bool)> {
        let scheme = &self.preset.scheme;
        let mut signed: Vec<(Locator, bool)> = Vec::new();
        match &scheme.proof {
            Proof::Signature(proof) => {
                let is_hex = proof.encoding == Encoding::Hex;
                signed.extend(proof.sources.iter().map(|at| (at.clone(), is_hex)));
                for part in &proof.template {
                    match part {
                        Part::Timestamp => {
                            signed.extend(scheme.timestamp.iter().map(|r| (r.at.clone(), false)));
                        }
                        Part::MessageId => {
                            signed.extend(scheme.message_id.first().map(|at| (at.clone(), false)));
                        }
                        Part::Value { at, .. } => signed.push((at.clone(), false)),
                        _ => {}
                    }
                }
            }
            Proof::Jwt(proof) => signed.push((proof.source.clone(), false)),
        }
        let place = |(at, is_hex): (Locator, bool)| {
            let name = match at {
                Locator::Header(name) => name,
                Locator::Authorization(_) => "authorization".to_owned(),
                Locator::NumberedHeader { prefix, .. } => format!("{prefix}1"),
                _ => return None,
            };
            let index = self.sample.headers.iter().position(|(known, _)| *known == name)?;
            Some((index, is_hex))
        };
        signed.into_iter().filter_map(place).collect()
    }
}

fn all(draw: &Draw) -> Vec<Signed> {
    presets().iter().filter_map(|preset| Signed::of(preset, draw)).collect()
}

#[test]
fn most_presets_can_be_sampled_and_the_others_say_why() {
    let mut sampled: Vec<&str> = all(&one_draw()).iter().map(|s| s.preset.name.as_str()).collect();
    assert!(sampled.len() >= 55, "{}: {sampled:?}", sampled.len());
    sampled.sort_unstable();
    for preset in presets() {
        let public = match &preset.scheme.proof {
            Proof::Signature(proof) => proof.algorithms[0].algorithm.is_public_key(),
            Proof::Jwt(proof) => {
                key_rule(preset).encoding == KeyEncoding::Pem || {
                    !proof.algorithm.as_str().starts_with("HS")
                }
            }
        };
        let expected = !public && !preset.scheme.fetches_keys();
        let found = sampled.binary_search(&preset.name.as_str()).is_ok();
        assert_eq!(found, expected, "{}", preset.name);
    }
}

#[test]
fn no_byte_of_a_sample_can_be_changed() {
    for signed in all(&one_draw()) {
        let name = &signed.preset.name;
        signed.judge(&signed.sample).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let covered = !signed.preset.scheme.weaknesses().contains(&Weakness::BodyNotCovered);
        for at in (0..signed.sample.body.len()).filter(|_| covered) {
            let mut changed = signed.sample.clone();
            changed.body[at] ^= 1;
            assert!(signed.judge(&changed).is_err(), "{name}: byte {at} of the body");
        }
        for (index, is_hex) in signed.signed_headers() {
            for at in 0..signed.sample.headers[index].1.len() {
                let mut changed = signed.sample.clone();
                let mut bytes = changed.headers[index].1.clone().into_bytes();
                let before = bytes[at];
                bytes[at] ^= 1;
                // Digits and blanks stay what a header may hold; the case of hex does not count.
                if !bytes[at].is_ascii_graphic()
                    || (is_hex && bytes[at].eq_ignore_ascii_case(&before))
                {
                    continue;
                }
                changed.headers[index].1 = String::from_utf8(bytes).unwrap();
                let header = &changed.headers[index].0;
                assert!(signed.judge(&changed).is_err(), "{name}: byte {at} of {header}");
            }
        }
    }
}

#[test]
fn another_key_does_not_verify_a_sample() {
    let others = all(&Draw { secret: [8; 32], ..one_draw() });
    for (signed, other) in all(&one_draw()).iter().zip(&others) {
        assert_eq!(signed.preset.name, other.preset.name);
        assert!(other.judge(&signed.sample).is_err(), "{}", signed.preset.name);
    }
}

#[test]
fn a_sample_shows_no_signature_when_it_is_printed() {
    for signed in all(&one_draw()) {
        let shown = format!("{:?}", signed.sample);
        assert!(shown.starts_with("Sample(") && shown.len() < 60, "{shown}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn samples_verify_whatever_key_text_and_time(draw in draws()) {
        for signed in all(&draw) {
            let judged = signed.judge(&signed.sample);
            prop_assert_eq!(judged, Ok(()), "{}", signed.preset.name);
        }
    }

    #[test]
    fn the_order_of_headers_and_of_list_entries_does_not_count(draw in draws()) {
        for signed in all(&draw) {
            let mut turned = signed.sample.clone();
            turned.headers.reverse();
            prop_assert_eq!(signed.judge(&turned), Ok(()), "{}", signed.preset.name);
            let Proof::Signature(proof) = &signed.preset.scheme.proof else { continue };
            let Some(separator) = proof.syntax.item_separator else { continue };
            for (index, _) in signed.signed_headers() {
                let mut turned = signed.sample.clone();
                let entries: Vec<String> =
                    turned.headers[index].1.split(separator).rev().map(str::to_owned).collect();
                turned.headers[index].1 = entries.join(&separator.to_string());
                prop_assert_eq!(signed.judge(&turned), Ok(()), "{}", signed.preset.name);
            }
        }
    }

    #[test]
    fn one_changed_byte_of_a_covered_body_is_refused(draw in draws(), at in any::<prop::sample::Index>(), flip in 1_u8..) {
        for signed in all(&draw) {
            if signed.preset.scheme.weaknesses().contains(&Weakness::BodyNotCovered) {
                continue;
            }
            let mut changed = signed.sample.clone();
            let at = at.index(changed.body.len());
            changed.body[at] ^= flip;
            prop_assert!(signed.judge(&changed).is_err(), "{}", signed.preset.name);
        }
    }
}
