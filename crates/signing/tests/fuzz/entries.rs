//! What is fuzzed: every way in which bytes of a stranger, or of an operator, come into this crate.
//! The fuzz targets and the test beside this file call the same functions; a panic is a finding, and so
//! is a broken promise of the crate.

use turnbuckle_signing::scheme::{
    Context, JsonPath, Locator, Request, Scheme, SchemeKey, Verifier, presets,
};
use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};

/// The clock of every entry.
const NOW_MS: i64 = 1_700_000_000_000;

/// Signature headers of our own profiles, and of every scheme whose keys are texts.
pub(crate) fn headers(data: &[u8]) {
    let (first, second) = halves(data);
    let Ok(key) = VerifyingKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") else { return };
    let options = VerifyOptions::at(NOW_MS / 1000);
    for profile in [Profile::StandardWebhooks, Profile::TimestampedHex, Profile::HubSha256] {
        for name in ["webhook-signature", "x-webhook-signature", "x-hub-signature-256"] {
            let headers = [
                (name, first),
                ("webhook-id", second),
                ("webhook-timestamp", b"1700000000".as_slice()),
                ("x-webhook-timestamp", second),
            ];
            let keys = [key.clone()];
            // Nobody guesses a signature.
            assert!(verify(profile, &keys, &headers, b"body", &options).is_err());
        }
    }
    for_each_scheme(|verifier, key| {
        let names = ["signature", "x-signature", "authorization", "stripe-signature"];
        let mut headers: Vec<(String, Vec<u8>)> =
            names.iter().map(|name| ((*name).to_owned(), first.to_vec())).collect();
        headers.extend(header_names(verifier).map(|name| (name, first.to_vec())));
        let request =
            Request { method: "POST", url: "https://h.example/x", headers: &headers, body: second };
        judge(verifier, key, &request);
    });
}

/// A scheme of an operator, in the form of a file: read, checked, and used on the other half.
pub(crate) fn template(data: &[u8]) {
    let (first, second) = halves(data);
    let Ok(text) = std::str::from_utf8(first) else { return };
    let template = text.replace(['"', '\\', '\n', '\r'], "_");
    let document = format!(
        "[signature]\nat = [\"header:x-s\"]\nencoding = \"hex\"\ntemplate = \"{template}\"\n\
         url_variants = [\"as-is\"]\n[[signature.algorithms]]\nalgorithm = \"hmac-sha256\"\n\
         key = {{ encoding = \"utf8\", min_bytes = 8 }}\n"
    );
    for document in [text, document.as_str(), &document.replace("url_variants", "#")] {
        let Ok(scheme) = Scheme::from_toml(document) else { continue };
        let Ok(verifier) = Verifier::new(scheme) else { continue };
        let Ok(key) = verifier.key("a secret of some length") else { continue };
        let headers = [("x-s", second)];
        let url = "https://h.example/x?a=1";
        judge(&verifier, &key, &Request { method: "POST", url, headers: &headers, body: second });
    }
}

/// Forms and queries: fields taken out, and sorted to be signed.
pub(crate) fn form(data: &[u8]) {
    let query = String::from_utf8_lossy(data);
    let url = format!("https://h.example/x?{query}");
    let headers: [(&str, &[u8]); 1] = [("x-twilio-signature", b"RSOYDt4T1cUTdK1PDd93/VVr8B8=")];
    let request = Request { method: "POST", url: &url, headers: &headers, body: data };
    for at in ["form:a", "query:a", "form:payload", "query:hub.challenge"] {
        let Ok(at) = at.parse::<Locator>() else { continue };
        let found = request.value(&at);
        // What is there once is there in the bytes.
        assert!(!found.is_ok_and(|found| found.is_some()) || !data.is_empty());
    }
    for_each_scheme(|verifier, key| judge(verifier, key, &request));
}

/// JSON of strangers, and paths of operators into it.
pub(crate) fn json(data: &[u8]) {
    let (first, second) = halves(data);
    let headers: [(&str, &[u8]); 0] = [];
    let request =
        Request { method: "POST", url: "https://h.example/x", headers: &headers, body: second };
    let own = std::str::from_utf8(first).ok().and_then(|text| JsonPath::parse(text).ok());
    let known = ["id", "a.b[0].c", "items[*]", "[*].x", r#"["odd.name"].x"#];
    let known = known.iter().filter_map(|text| JsonPath::parse(text).ok());
    for path in known.chain(own) {
        // The text of a path is the path.
        let again = JsonPath::parse(&path.to_string());
        assert_eq!(again.as_ref(), Ok(&path));
        for item in request.items(&path).unwrap_or_default().into_iter().flatten() {
            assert!(
                second.windows(item.len().max(1)).any(|found| found == item) || item.is_empty()
            );
        }
        drop(request.value(&Locator::Json(path)));
    }
    for_each_scheme(|verifier, key| judge(verifier, key, &request));
}

/// Judges a request in every way there is. None of them is signed, so none may pass.
fn judge(verifier: &Verifier, key: &SchemeKey, request: &Request<'_>) {
    let settings = [("verify_token", "t"), ("public_key", "p"), ("key_id", "k"), ("api_key", "a")];
    let context = Context { now_unix_ms: NOW_MS, settings: &settings };
    let keys = [key.clone()];
    assert!(verifier.verify(request, &keys, &context).is_err());
    let handshake = verifier.handshake(request, &keys, &context);
    let reply = handshake.and_then(|asked| verifier.answer(asked, request, &keys, &context).ok());
    if let Some(reply) = reply {
        assert!((200..300).contains(&reply.status));
        for (name, value) in &reply.headers {
            assert!(!name.contains(['\r', '\n']) && !value.contains(['\r', '\n']));
        }
    }
    drop(verifier.wanted_key(request));
    drop(verifier.confirmation_url(request));
}

fn for_each_scheme(mut each: impl FnMut(&Verifier, &SchemeKey)) {
    for preset in presets() {
        let Ok(verifier) = Verifier::new(preset.scheme.clone()) else { continue };
        let texts = ["a secret of some length", "00112233445566778899aabbccddeeff"];
        if let Some(key) = texts.iter().find_map(|text| verifier.key(text).ok()) {
            each(&verifier, &key);
        }
    }
}

/// The headers that a scheme reads.
fn header_names(verifier: &Verifier) -> impl Iterator<Item = String> {
    use turnbuckle_signing::scheme::Proof;
    let places = match &verifier.scheme().proof {
        Proof::Signature(proof) => proof.sources.clone(),
        Proof::Jwt(proof) => vec![proof.source.clone()],
    };
    places.into_iter().filter_map(|at| match at {
        Locator::Header(name) => Some(name),
        _ => None,
    })
}

/// Two inputs out of one, parted where the first byte says.
fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    let Some((at, rest)) = data.split_first() else { return (&[], &[]) };
    rest.split_at(usize::from(*at).min(rest.len()))
}
