//! Rules of handshakes.

use crate::scheme::handshake::{Condition, Handshake, Piece, Reply};
use crate::scheme::limits::{
    MAX_CONDITIONS, MAX_HANDSHAKES, MAX_PIECES, MAX_REPLY_HEADERS, MAX_TEXT_BYTES,
};
use crate::scheme::locator::Locator;
use crate::scheme::model::Scheme;
use crate::scheme::proof::{Algorithm, Encoding, Proof};
use crate::scheme::violation::Violations;

use super::places::{Places, check_header, check_name};
use super::{check_expected, check_setting, check_text};

pub(super) fn check(scheme: &Scheme, found: &mut Violations) {
    if scheme.handshakes.len() > MAX_HANDSHAKES {
        found.add("handshakes", format!("has at most {MAX_HANDSHAKES} entries"));
    }
    for (index, handshake) in scheme.handshakes.iter().enumerate() {
        let field = format!("handshakes[{index}]");
        check_one(scheme, &field, handshake, found);
        let earlier = &scheme.handshakes[..index];
        if earlier.iter().any(|other| other.name == handshake.name) {
            found.add(format!("{field}.name"), "is there twice");
        }
    }
}

fn check_one(scheme: &Scheme, field: &str, handshake: &Handshake, found: &mut Violations) {
    check_name(&format!("{field}.name"), &handshake.name, found);
    if handshake.when.is_empty() || handshake.when.len() > MAX_CONDITIONS {
        let message = format!("has 1 to {MAX_CONDITIONS} conditions");
        found.add(format!("{field}.when"), message);
    }
    for (index, condition) in handshake.when.iter().enumerate() {
        check_condition(scheme, &format!("{field}.when[{index}]"), condition, found);
    }
    check_reply(scheme, &format!("{field}.reply"), &handshake.reply, found);
    if let Some(at) = &handshake.learns_secret {
        check_place(&format!("{field}.learns_secret"), at, found);
        if handshake.signed {
            let message = "a request that brings the secret cannot be signed with it";
            found.add(format!("{field}.signed"), message);
        }
    }
}

fn check_condition(scheme: &Scheme, field: &str, condition: &Condition, found: &mut Violations) {
    match condition {
        Condition::Method(method) => {
            let upper = method.bytes().all(|byte| byte.is_ascii_uppercase());
            if method.is_empty() || method.len() > 16 || !upper {
                found.add(field, "a method is upper case, such as GET");
            }
        }
        Condition::Present(at) => check_place(field, at, found),
        Condition::Equals { at, expected } => {
            check_place(field, at, found);
            check_expected(scheme, field, expected, found);
        }
        Condition::EmptyArray(path) => {
            if path.is_plural() {
                found.add(field, "stands for one array, without [*]");
            }
        }
    }
}

/// Entries of a signature header are no place of a question.
fn check_place(field: &str, at: &Locator, found: &mut Violations) {
    Places::of_jwt().check(field, at, found);
}

fn check_reply(scheme: &Scheme, field: &str, reply: &Reply, found: &mut Violations) {
    if !(200..=299).contains(&reply.status) {
        found.add(format!("{field}.status"), "is 200 to 299");
    }
    let printable = reply.content_type.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if reply.content_type.len() > MAX_TEXT_BYTES || !printable {
        let message = format!("has at most {MAX_TEXT_BYTES} printable characters");
        found.add(format!("{field}.content_type"), message);
    }
    if reply.content_type.is_empty() != reply.body.is_empty() {
        found.add(format!("{field}.content_type"), "goes with a body, and only with one");
    }
    if reply.headers.len() > MAX_REPLY_HEADERS {
        let message = format!("has at most {MAX_REPLY_HEADERS} entries");
        found.add(format!("{field}.headers"), message);
    }
    for (index, (name, pieces)) in reply.headers.iter().enumerate() {
        let field = format!("{field}.headers[{index}]");
        check_header(&field, name, found);
        if matches!(name.as_str(), "content-type" | "content-length" | "transfer-encoding") {
            found.add(&field, "this header is set by itself");
        }
        check_pieces(scheme, &field, pieces, found);
    }
    check_pieces(scheme, &format!("{field}.body"), &reply.body, found);
}

fn check_pieces(scheme: &Scheme, field: &str, pieces: &[Piece], found: &mut Violations) {
    if pieces.len() > MAX_PIECES {
        found.add(field, format!("has at most {MAX_PIECES} pieces"));
    }
    for (index, piece) in pieces.iter().enumerate() {
        let field = format!("{field}[{index}]");
        match piece {
            Piece::Literal(text) => check_text(&field, text, found),
            Piece::Echo { at, .. } => check_place(&field, at, found),
            Piece::Setting(name) => check_setting(scheme, &field, name, found),
            Piece::Hmac { of, encoding } => {
                check_place(&field, of, found);
                if *encoding == Encoding::Text {
                    found.add(&field, "a MAC is written as hex, base64 or base64url");
                }
                if !has_hmac(scheme) {
                    found.add(&field, "needs an HMAC algorithm in the scheme");
                }
            }
        }
    }
}

fn has_hmac(scheme: &Scheme) -> bool {
    let Proof::Signature(proof) = &scheme.proof else {
        return false;
    };
    proof.algorithms.iter().any(|rule| {
        matches!(
            rule.algorithm,
            Algorithm::HmacSha1
                | Algorithm::HmacSha256
                | Algorithm::HmacSha384
                | Algorithm::HmacSha512
        )
    })
}
