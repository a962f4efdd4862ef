//! Whatever is changed in a valid request, it is refused.

use turnbuckle_signing::scheme::{Encoding, Locator, Proof, Refusal, Role, SignatureProof, preset};

use crate::sample::Sample;
use crate::vectors;

fn signature_proof(sample: &Sample) -> Option<SignatureProof> {
    match &preset(&sample.preset).unwrap().scheme.proof {
        Proof::Signature(proof) => Some(proof.clone()),
        Proof::Jwt(_) => None,
    }
}

/// The places of the headers that hold signatures or a token.
fn signature_headers(sample: &Sample) -> Vec<usize> {
    let places = match &preset(&sample.preset).unwrap().scheme.proof {
        Proof::Signature(proof) => proof.sources.clone(),
        Proof::Jwt(proof) => vec![proof.source.clone()],
    };
    let holds = |name: &str| places.contains(&Locator::Header(name.to_owned()));
    (0..sample.headers.len()).filter(|index| holds(&sample.headers[*index].0)).collect()
}

/// Samples with exactly one signature, so that every character of it counts.
fn with_one_signature() -> impl Iterator<Item = (Sample, usize)> {
    const SEVERAL: [&str; 5] =
        ["standard-webhooks-list", "paddle-two", "stripe", "box-primary", "box-secondary"];
    vectors::all().into_iter().filter(|sample| !SEVERAL.contains(&sample.name.as_str())).filter_map(
        |sample| match signature_headers(&sample).as_slice() {
            [index] => Some((sample.clone(), *index)),
            _ => None,
        },
    )
}

fn refused(sample: &Sample, what: &str) {
    assert!(sample.verify().is_err(), "{}: {what} passes", sample.name);
}

#[test]
fn a_flipped_bit_anywhere_in_the_body_is_refused() {
    for sample in vectors::all().into_iter().filter(|sample| sample.body_covered) {
        let key = [sample.parsed_key()];
        for index in 0..sample.body.len() {
            let mut changed = sample.clone();
            changed.body[index] ^= 1 << (index % 8);
            assert!(changed.verify_with(&key).is_err(), "{}: byte {index}", sample.name);
        }
    }
}

#[test]
fn a_shortened_or_lengthened_body_is_refused() {
    for sample in vectors::all().into_iter().filter(|sample| sample.body_covered) {
        let key = [sample.parsed_key()];
        for length in 0..sample.body.len() {
            let mut changed = sample.clone();
            changed.body.truncate(length);
            assert!(changed.verify_with(&key).is_err(), "{}: {length} bytes", sample.name);
        }
        for more in [b"\0".as_slice(), b" ", b"\n", b"\r\n", b"x", b"\xff"] {
            for front in [false, true] {
                let mut changed = sample.clone();
                let at = if front { 0 } else { changed.body.len() };
                changed.body.splice(at..at, more.iter().copied());
                assert!(changed.verify_with(&key).is_err(), "{}: {more:?}", sample.name);
            }
        }
    }
}

#[test]
fn every_character_of_a_signature_counts() {
    for (sample, index) in with_one_signature() {
        let key = [sample.parsed_key()];
        let hex = signature_proof(&sample).is_some_and(|proof| proof.encoding == Encoding::Hex);
        for at in 0..sample.headers[index].1.len() {
            let mut changed = sample.clone();
            let character = &mut changed.headers[index].1[at];
            // The case of a hex digit is the one thing that does not count.
            *character ^= if hex { 1 } else { 1 << (at % 7) };
            let before = sample.headers[index].1[at];
            if hex && character.eq_ignore_ascii_case(&before) {
                continue;
            }
            assert!(changed.verify_with(&key).is_err(), "{}: character {at}", sample.name);
        }
    }
}

#[test]
fn a_shortened_or_lengthened_signature_is_refused() {
    for (sample, index) in with_one_signature() {
        let key = [sample.parsed_key()];
        for length in 0..sample.headers[index].1.len() {
            let mut changed = sample.clone();
            changed.headers[index].1.truncate(length);
            assert!(changed.verify_with(&key).is_err(), "{}: {length}", sample.name);
        }
        let trims = signature_proof(&sample).is_some_and(|proof| proof.syntax.trim);
        for more in ["0", "00", "=", "A", "AAAA", "\n", "\0"] {
            if trims && more == "\n" {
                continue;
            }
            let mut changed = sample.clone();
            changed.headers[index].1.extend_from_slice(more.as_bytes());
            assert!(changed.verify_with(&key).is_err(), "{}: {more:?}", sample.name);
        }
    }
}

#[test]
fn another_key_is_refused() {
    for sample in vectors::all() {
        let mut changed = sample.clone();
        changed.key = match sample.preset.as_str() {
            "sendgrid" => "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\
                           6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q=="
                .to_owned(),
            _ => {
                let start = sample.key.find('_').filter(|at| *at < 6).map_or(0, |at| at + 1);
                let (prefix, secret) = sample.key.split_at(start);
                let first = if secret.starts_with('a') { 'b' } else { 'a' };
                format!("{prefix}{first}{}", &secret[1..])
            }
        };
        let refusal = match changed.verifier().key(&changed.key) {
            Ok(key) => changed.verify_with(&[key]).unwrap_err(),
            // Not every 32 bytes are a point of the curve.
            Err(_) => continue,
        };
        assert_eq!(refusal, Refusal::Mismatch, "{}", sample.name);
    }
}

#[test]
fn a_changed_time_is_refused_even_inside_the_window() {
    for sample in vectors::all() {
        let scheme = &preset(&sample.preset).unwrap().scheme;
        let Some(rule) = &scheme.timestamp else { continue };
        let mut changed = sample.clone();
        let replace = |value: &mut Vec<u8>, from: &str, to: &str| {
            *value = String::from_utf8(value.clone()).unwrap().replace(from, to).into_bytes();
        };
        match &rule.at {
            Locator::Header(name) => {
                let header = changed.headers.iter_mut().find(|(known, _)| known == name).unwrap();
                let last = header.1.iter().rposition(u8::is_ascii_digit).unwrap();
                header.1[last] = if header.1[last] == b'1' { b'2' } else { b'1' };
            }
            Locator::SignatureField(tag) => {
                let at = (sample.signed_at_ms.unwrap() / 1000).to_string();
                let later = (sample.signed_at_ms.unwrap() / 1000 + 1).to_string();
                for header in &mut changed.headers {
                    replace(&mut header.1, &format!("{tag}={at}"), &format!("{tag}={later}"));
                }
            }
            _ => continue,
        }
        assert_eq!(changed.verify(), Err(Refusal::Mismatch), "{}", sample.name);
    }
}

#[test]
fn too_old_and_too_new_are_refused_at_the_millisecond() {
    for sample in vectors::all() {
        let scheme = &preset(&sample.preset).unwrap().scheme;
        let (Some(rule), Some(at)) = (&scheme.timestamp, sample.signed_at_ms) else { continue };
        let oldest = at + i64::from(rule.max_age_seconds) * 1000;
        let newest = at - i64::from(rule.max_future_seconds) * 1000;
        let verify_at = |now_ms| Sample { now_ms, ..sample.clone() }.verify();
        for passes in [oldest, newest, at] {
            assert!(verify_at(passes).is_ok(), "{}", sample.name);
        }
        let age_ms = u64::from(rule.max_age_seconds) * 1000 + 1;
        assert_eq!(verify_at(oldest + 1), Err(Refusal::TooOld { age_ms }), "{}", sample.name);
        let ahead_ms = u64::from(rule.max_future_seconds) * 1000 + 1;
        assert_eq!(verify_at(newest - 1), Err(Refusal::TooNew { ahead_ms }), "{}", sample.name);
        for extreme in [i64::MIN, i64::MAX] {
            assert!(verify_at(extreme).is_err(), "{}", sample.name);
        }
    }
}

#[test]
fn a_header_that_must_be_single_is_refused_twice_and_missed_once() {
    for sample in vectors::all() {
        let scheme = &preset(&sample.preset).unwrap().scheme;
        let Some(rule) = &scheme.timestamp else { continue };
        let Locator::Header(name) = &rule.at else { continue };
        let value = sample.headers.iter().find(|(known, _)| known == name).unwrap().1.clone();
        let mut twice = sample.clone();
        twice.headers.push((name.to_ascii_uppercase(), value));
        let repeated = Err(Refusal::Repeated(Role::Timestamp));
        assert_eq!(twice.verify(), repeated, "{}", sample.name);
        let mut without = sample.clone();
        without.headers.retain(|(known, _)| known != name);
        assert_eq!(without.verify(), Err(Refusal::Missing(Role::Timestamp)), "{}", sample.name);
    }
}

#[test]
fn a_request_without_its_signature_is_refused() {
    for (sample, index) in with_one_signature() {
        let mut without = sample.clone();
        without.headers.remove(index);
        assert_eq!(without.verify(), Err(Refusal::Missing(Role::Signature)), "{}", sample.name);
        let mut empty = sample.clone();
        empty.headers[index].1.clear();
        refused(&empty, "an empty signature");
    }
}

#[test]
fn header_names_and_hex_digits_have_no_case() {
    for (sample, index) in with_one_signature() {
        let mut shouted = sample.clone();
        for (name, _) in &mut shouted.headers {
            *name = name.to_ascii_uppercase();
        }
        assert!(shouted.verify().is_ok(), "{}", sample.name);
        let Some(proof) = signature_proof(&sample) else { continue };
        let mut upper = sample.clone();
        let value = &mut upper.headers[index].1;
        let digits = value.iter().rposition(|byte| *byte == b'=').map_or(0, |at| at + 1);
        let digits = if digits == value.len() { 0 } else { digits };
        value[digits..].make_ascii_uppercase();
        let hex = proof.encoding == Encoding::Hex;
        assert_eq!(upper.verify().is_ok(), hex, "{}", sample.name);
    }
}

#[test]
fn a_signature_in_another_encoding_is_refused() {
    for (sample, index) in with_one_signature() {
        let Some(proof) = signature_proof(&sample) else { continue };
        let mut changed = sample.clone();
        let value = String::from_utf8(sample.headers[index].1.clone()).unwrap();
        let rewritten = match proof.encoding {
            Encoding::Base64 => value.trim_end_matches('=').to_owned(),
            _ => {
                let at = value.find('=').map_or(0, |at| at + 1);
                let bytes = data_encoding::HEXLOWER.decode(&value.as_bytes()[at..]);
                let Ok(bytes) = bytes else { continue };
                format!("{}{}", &value[..at], crate::sample::base64(&bytes))
            }
        };
        if rewritten == value {
            continue;
        }
        changed.headers[index].1 = rewritten.into_bytes();
        refused(&changed, "another encoding");
    }
}

#[test]
fn another_address_is_refused_where_the_address_is_signed() {
    use turnbuckle_signing::scheme::Part;
    for sample in vectors::all() {
        let signed = match &preset(&sample.preset).unwrap().scheme.proof {
            Proof::Signature(proof) => proof.template.contains(&Part::Url),
            Proof::Jwt(proof) => proof.url_hash.is_some(),
        };
        if !signed {
            continue;
        }
        for url in ["https://evil.example/", "", "https://", &format!("{}x", sample.url)] {
            let changed = Sample { url: url.to_owned(), ..sample.clone() };
            refused(&changed, url);
        }
    }
}
