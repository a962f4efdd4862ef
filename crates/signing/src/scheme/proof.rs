//! How a request proves where it comes from.

use super::handshake::Expected;
use super::locator::Locator;
use super::model::UrlVariant;
use super::names::named;
use super::template::Part;

/// How a request proves where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Proof {
    /// A signature (or a shared token) that stands in the request.
    Signature(SignatureProof),
    /// A JSON Web Token whose claims hold hashes of the request.
    Jwt(JwtProof),
}

/// A signature over parts of the request.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureProof {
    /// Where signatures stand; all places count, and any right signature will do. 1 to
    /// [`MAX_SIGNATURE_SOURCES`](super::limits::MAX_SIGNATURE_SOURCES).
    pub sources: Vec<Locator>,
    /// How the value there is taken apart.
    pub syntax: SignatureSyntax,
    /// How a signature is written. Decoding is strict: one spelling, except for the case of hex.
    pub encoding: Encoding,
    /// The algorithms, 1 to [`MAX_ALGORITHMS`](super::limits::MAX_ALGORITHMS). They come from
    /// here and never from the request; with two, the tag of an entry says which one it is for.
    pub algorithms: Vec<AlgorithmRule>,
    /// What is signed, 1 to [`MAX_PARTS`](super::limits::MAX_PARTS) parts; empty for
    /// [`Algorithm::Equality`], where the key itself is sent.
    pub template: Vec<Part>,
    /// The spellings of the URL tried for [`Part::Url`]: 1 to
    /// [`MAX_URL_VARIANTS`](super::limits::MAX_URL_VARIANTS) when the template has that part,
    /// none otherwise.
    pub url_variants: Vec<UrlVariant>,
}

/// How a signature header is taken apart.
///
/// | header | syntax |
/// |---|---|
/// | `757107ea…` | everything empty |
/// | `sha256=757107ea…` | `prefix` `sha256=` |
/// | `t=1533,v1=d737…,v1=0b2c…` | `item_separator` `,`, `key_separator` `=`, tag `v1` |
/// | `v1,g0hM… v1a,hnO3…` | `item_separator` blank, `key_separator` `,`, tags `v1` and `v1a` |
///
/// Entries of other tags, of the wrong length or that do not decode are passed over: a malformed
/// entry never hides a good one behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureSyntax {
    /// Between the entries of a list; without it the whole value is one entry. Printable ASCII.
    pub item_separator: Option<char>,
    /// Between tag and value of an entry; without it entries have no tags. Printable ASCII.
    pub key_separator: Option<char>,
    /// Text in front of each signature (behind the tag, if there is one); may be empty.
    pub prefix: String,
    /// Whether blanks around entries are ignored.
    pub trim: bool,
}

/// How a signature is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Hexadecimal digits in either case.
    Hex,
    /// Base64 with padding.
    Base64,
    /// Base64 of the URL alphabet, without padding.
    Base64Url,
    /// The text itself: shared tokens.
    Text,
}

named!(Encoding, "encoding", {
    Hex => "hex",
    Base64 => "base64",
    Base64Url => "base64url",
    Text => "text",
});

/// One algorithm, the entries it is for, and its keys.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmRule {
    /// What is computed.
    pub algorithm: Algorithm,
    /// The tags of the entries that carry signatures of this algorithm, at most
    /// [`MAX_TAGS`](super::limits::MAX_TAGS). With a
    /// [`key_separator`](SignatureSyntax::key_separator) and no tag, entries of every tag count.
    pub tags: Vec<String>,
    /// How its keys are written.
    pub key: KeyRule,
}

/// What is computed over the signed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// HMAC with SHA-1.
    HmacSha1,
    /// HMAC with SHA-256.
    HmacSha256,
    /// HMAC with SHA-384.
    HmacSha384,
    /// HMAC with SHA-512.
    HmacSha512,
    /// SHA-256 over a template that holds the secret; weaker than HMAC, and in use.
    Sha256,
    /// SHA-512 over a template that holds the secret.
    Sha512,
    /// Ed25519.
    Ed25519,
    /// ECDSA on P-256 with SHA-256, the signature in ASN.1 DER.
    EcdsaP256Sha256,
    /// RSA (PKCS #1 v1.5) with SHA-1, for senders that offer nothing newer.
    RsaPkcs1Sha1,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    RsaPkcs1Sha256,
    /// No signature: the key itself is sent as a token, and compared in constant time. Whoever
    /// sees one request can forge others.
    Equality,
}

named!(Algorithm, "algorithm", {
    HmacSha1 => "hmac-sha1",
    HmacSha256 => "hmac-sha256",
    HmacSha384 => "hmac-sha384",
    HmacSha512 => "hmac-sha512",
    Sha256 => "sha256",
    Sha512 => "sha512",
    Ed25519 => "ed25519",
    EcdsaP256Sha256 => "ecdsa-p256-sha256",
    RsaPkcs1Sha1 => "rsa-pkcs1-sha1",
    RsaPkcs1Sha256 => "rsa-pkcs1-sha256",
    Equality => "equality",
});

impl Algorithm {
    /// Whether keys of this algorithm are public keys, which need no secrecy.
    #[must_use]
    pub const fn is_public_key(self) -> bool {
        matches!(
            self,
            Self::Ed25519 | Self::EcdsaP256Sha256 | Self::RsaPkcs1Sha1 | Self::RsaPkcs1Sha256
        )
    }
}

/// How a key is written.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRule {
    /// How the text becomes the key. Never guessed: the same looking text is used in different
    /// ways by different senders.
    pub encoding: KeyEncoding,
    /// Prefixes taken off first, such as `whsec_`; at most [`MAX_TAGS`](super::limits::MAX_TAGS).
    /// A key without any of them is read as it is.
    pub prefixes: Vec<String>,
    /// The fewest bytes a secret must have after decoding, 1 to
    /// [`MAX_REQUIRED_KEY_BYTES`](super::limits::MAX_REQUIRED_KEY_BYTES); public keys have their
    /// own sizes.
    pub min_bytes: u16,
    /// A digest that makes the key out of the decoded text, in use at one sender.
    pub digest: Option<KeyDigest>,
}

/// How the text of a key becomes the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyEncoding {
    /// The text itself is the key.
    Utf8,
    /// Hexadecimal digits.
    Hex,
    /// Base64; padding and trailing bits are not judged.
    Base64,
    /// A `SubjectPublicKeyInfo` structure in base64.
    SpkiBase64,
    /// A public key or certificate in PEM.
    Pem,
}

named!(KeyEncoding, "key encoding", {
    Utf8 => "utf8",
    Hex => "hex",
    Base64 => "base64",
    SpkiBase64 => "spki-base64",
    Pem => "pem",
});

/// A digest that makes the key out of the decoded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyDigest {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

named!(KeyDigest, "key digest", { Sha1 => "sha1", Sha256 => "sha256" });

/// A JSON Web Token that vouches for the request.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtProof {
    /// Where the token stands.
    pub source: Locator,
    /// The algorithm of the tokens: one, and never taken from the token.
    pub algorithm: JwtAlgorithm,
    /// How its keys are written.
    pub key: KeyRule,
    /// The only issuer accepted, if tokens name one: a text or a setting.
    pub issuer: Option<Expected>,
    /// The audience that must be among the token's, if tokens name one: a text or a setting.
    pub audience: Option<Expected>,
    /// The claim with the hash of the body. Without it the body is not authenticated.
    pub body_hash: Option<BodyHashClaim>,
    /// The claim with the hash of the URL.
    pub url_hash: Option<UrlHashClaim>,
    /// The greatest age by `iat`, in seconds, when tokens have no or a late `exp`; `exp` and `nbf`
    /// are always respected. At most
    /// [`MAX_TOLERANCE_SECONDS`](super::limits::MAX_TOLERANCE_SECONDS).
    pub max_age_seconds: u32,
    /// How far in the future `iat` and `nbf` may lie, in seconds, for clocks that disagree.
    pub max_future_seconds: u32,
    /// The claim that is the message id, such as `jti`.
    pub id_claim: Option<String>,
    /// Claims that must be there with these values, such as the account that the issuer vouches
    /// for; at most [`MAX_CLAIMS`](super::limits::MAX_CLAIMS).
    #[serde(default)]
    pub claims: Vec<TokenClaim>,
    /// Whether a token without any time is taken, at senders that write none. Only with a hash of
    /// the body; then only deduplication protects against replay.
    #[serde(default)]
    pub timeless: bool,
}

/// A claim of a token and the value it must have.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenClaim {
    /// The name of the claim.
    pub claim: String,
    /// A text or a setting. `true` and `false` also stand for the JSON values.
    pub expected: Expected,
}

/// The algorithm of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256.
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    Rs256,
    /// Ed25519.
    EdDsa,
}

named!(JwtAlgorithm, "token algorithm", {
    Hs256 => "HS256",
    Hs384 => "HS384",
    Hs512 => "HS512",
    Es256 => "ES256",
    Rs256 => "RS256",
    EdDsa => "EdDSA",
});

/// The claim of a token that holds the SHA-256 of the body.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyHashClaim {
    /// The name of the claim.
    pub claim: String,
    /// How the hash is written: hex or base64.
    pub encoding: Encoding,
    /// Whether a request without a body comes without the claim; then a body without the claim
    /// and a claim without a body are both refused.
    pub absent_when_empty: bool,
}

/// The claim of a token that holds the SHA-256 of the URL.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UrlHashClaim {
    /// The name of the claim.
    pub claim: String,
    /// How the hash is written: hex or base64.
    pub encoding: Encoding,
}
