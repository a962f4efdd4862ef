//! Handshakes of schemes on the wire.

use super::{At, expected, locator, place};
use turnbuckle_proto::v1;
use turnbuckle_signing::scheme::{Condition, Escape, Handshake, Piece, Reply};

/// Status of an answer when nothing is said.
const STATUS_DEFAULT: u16 = 200;

pub(super) fn handshake(at: &mut At<'_>, wire: v1::Handshake) -> Option<Handshake> {
    let when = at.list("when", wire.when, condition);
    let answer = at.within("reply").required(wire.reply);
    let reply = answer.and_then(|answer| reply(&mut at.within("reply"), answer));
    let learns_secret = match wire.learns_secret {
        Some(wire) => locator(&mut at.within("learns_secret"), wire).map(Some),
        None => Some(None),
    };
    Some(Handshake {
        name: wire.name,
        when: when?,
        signed: wire.signed,
        reply: reply?,
        learns_secret: learns_secret?,
    })
}

fn condition(at: &mut At<'_>, wire: v1::HandshakeCondition) -> Option<Condition> {
    use v1::handshake_condition::Condition as Wire;
    match at.required(wire.condition)? {
        Wire::Method(method) => Some(Condition::Method(method)),
        Wire::Present(wire) => locator(&mut at.within("present"), wire).map(Condition::Present),
        Wire::Equals(wire) => {
            let mut at = at.within("equals");
            let place = place(&mut at, "at", wire.at);
            let value = at.within("expected").required(wire.expected)?;
            let expected = expected(&mut at.within("expected"), value);
            Some(Condition::Equals { at: place?, expected: expected? })
        }
        Wire::EmptyArray(text) => at.within("empty_array").path(&text).map(Condition::EmptyArray),
    }
}

fn reply(at: &mut At<'_>, wire: v1::HandshakeReply) -> Option<Reply> {
    let status = match wire.status {
        0 => Some(STATUS_DEFAULT),
        number => at.small("status", number),
    };
    let headers = at.list("headers", wire.headers, |at, header| {
        let value = at.list("value", header.value, piece)?;
        Some((header.name, value))
    });
    let body = at.list("body", wire.body, piece);
    Some(Reply { status: status?, content_type: wire.content_type, headers: headers?, body: body? })
}

fn piece(at: &mut At<'_>, wire: v1::ReplyPiece) -> Option<Piece> {
    use v1::reply_piece::Piece as Wire;
    match at.required(wire.piece)? {
        Wire::Literal(text) => Some(Piece::Literal(text)),
        Wire::Setting(name) => Some(Piece::Setting(name)),
        Wire::Echo(echo) => {
            let mut at = at.within("echo");
            let place = place(&mut at, "at", echo.at);
            let escape = match echo.escape {
                0 => Some(Escape::Plain),
                number => at.named("escape", number),
            };
            Some(Piece::Echo { at: place?, escape: escape? })
        }
        Wire::Hmac(hmac) => {
            let mut at = at.within("hmac");
            let of = place(&mut at, "of", hmac.of);
            let encoding = at.named("encoding", hmac.encoding);
            Some(Piece::Hmac { of: of?, encoding: encoding? })
        }
    }
}
