//! Which schemas are taken, and what they say about payloads.

#![expect(clippy::panic, clippy::expect_used, reason = "a failed row of a table says which")]

use serde_json::json;
use turnbuckle_schema::{Schema, schema_limits as limits};

const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

fn schema(text: &str) -> Schema {
    Schema::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn sound_schemas_are_taken() {
    for text in [
        "true",
        "false",
        "{}",
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}"#,
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}"#,
        r#"{"$schema":"http://json-schema.org/draft-07/schema"}"#,
        r#"{"$id":"https://example.com/order.json","type":"object"}"#,
        r##"{"$defs":{"m":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/m"},"b":{"$ref":"#/$defs/m"}}}"##,
        r##"{"definitions":{"m":true},"items":{"$ref":"#/definitions/m"}}"##,
        r##"{"$defs":{"a/b~c":true},"items":{"$ref":"#/$defs/a~1b~0c"}}"##,
        r##"{"properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}"##,
        r#"{"properties":{"$id":{"type":"string"},"$ref":{"type":"string"},"$schema":true}}"#,
        r#"{"enum":[{"$ref":"http://example.com/x"}],"default":{"$id":"x"}}"#,
        r#"{"pattern":"^[A-Z]{3}\\d+$","patternProperties":{"^x-":true}}"#,
        r#"{"format":"no-such-format","x-internal":{"$ref":5}}"#,
    ] {
        schema(text);
    }
}

/// Schema, pointer, part of the message.
const REFUSED: &[(&str, &str, &str)] = &[
    ("", "", "not valid JSON"),
    ("{", "", "not valid JSON"),
    ("5", "", "an object or a boolean"),
    ("[]", "", "an object or a boolean"),
    ("null", "", "an object or a boolean"),
    (r#"{"type":"strin"}"#, "/type", "alternatives"),
    (r#"{"type":5}"#, "/type", "alternatives"),
    (r#"{"minLength":-1}"#, "/minLength", "at least 0"),
    (r#"{"required":"a"}"#, "/required", "must be an array"),
    (r#"{"required":["a","a"]}"#, "/required", "an item twice"),
    (r#"{"properties":[]}"#, "/properties", "must be an object"),
    (r#"{"properties":{"a":5}}"#, "/properties/a", "must be a boolean or an object"),
    (r#"{"items":[true]}"#, "/items", "must be a boolean or an object"),
    (r#"{"exclusiveMinimum":true}"#, "/exclusiveMinimum", "must be a number"),
    (r#"{"$schema":"http://json-schema.org/draft-04/schema#"}"#, "/$schema", "no dialect we know"),
    (r#"{"$schema":"https://example.com/mine"}"#, "/$schema", "no dialect we know"),
    (r#"{"$schema":5}"#, "/$schema", "no dialect we know"),
    (r#"{"$ref":"http://example.com/x"}"#, "/$ref", "another document"),
    (r#"{"items":{"$ref":"file:///etc/passwd"}}"#, "/items/$ref", "another document"),
    (r#"{"$ref":"other.json"}"#, "/$ref", "another document"),
    (r#"{"$ref":""}"#, "/$ref", "another document"),
    (r##"{"$ref":"#/$defs/none"}"##, "/$ref", "no schema of this document"),
    (r##"{"$ref":"#name"}"##, "/$ref", "no schema of this document"),
    (r##"{"$ref":"#/%24defs/a","$defs":{"a":true}}"##, "/$ref", "no schema of this document"),
    (r##"{"default":{"a":1},"items":{"$ref":"#/default/a"}}"##, "/items/$ref", "no schema of"),
    (r#"{"$ref":5}"#, "/$ref", "no schema of this document"),
    (r##"{"$ref":"#"}"##, "", "refers to itself"),
    (r##"{"properties":{"a":{"$ref":"#"}}}"##, "", "refers to itself"),
    (
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        "/$defs/a",
        "refers to itself",
    ),
    (r#"{"$anchor":"a"}"#, "/$anchor", "not supported"),
    (r##"{"$dynamicRef":"#a"}"##, "/$dynamicRef", "not supported"),
    (r##"{"items":{"$recursiveRef":"#"}}"##, "/items/$recursiveRef", "not supported"),
    (r#"{"items":{"$id":"http://example.com/b"}}"#, "/items/$id", "not supported"),
    (r#"{"items":{"$schema":"http://example.com"}}"#, "/items/$schema", "not supported"),
    (r#"{"pattern":"("}"#, "/pattern", "no usable pattern"),
    (r#"{"pattern":"(?=a)b"}"#, "/pattern", "no usable pattern"),
    (r#"{"pattern":"(?!a)b"}"#, "/pattern", "no usable pattern"),
    (r#"{"pattern":"(a)\\1"}"#, "/pattern", "no usable pattern"),
    (r#"{"pattern":"((a{100}){100}){100}"}"#, "/pattern", "no usable pattern"),
];

#[test]
fn unsound_schemas_are_refused_with_place_and_remedy() {
    let mut wrong = Vec::new();
    for (text, path, part) in REFUSED {
        let error = Schema::parse(text.as_bytes()).expect_err(text);
        if error.path != *path || !error.message.contains(part) {
            wrong.push(format!("{text}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn refusal(text: &str) -> String {
    Schema::parse(text.as_bytes()).expect_err("it exceeds a bound").to_string()
}

/// `$defs` where each definition refers twice to the next one.
fn doubling(levels: usize) -> String {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        defs.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
    }
    defs.insert(format!("d{levels}"), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/d0", "$defs": defs }).to_string()
}

fn chain(levels: usize) -> String {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = format!("#/$defs/d{}", level + 1);
        defs.insert(format!("d{level}"), json!({ "properties": { "a": { "$ref": next } } }));
    }
    defs.insert(format!("d{levels}"), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/d0", "$defs": defs }).to_string()
}

#[test]
fn every_bound_holds() {
    let padded = |length: usize| format!("{{}}{}", " ".repeat(length - 2));
    assert!(Schema::parse(padded(limits::TEXT_BYTES).as_bytes()).is_ok());
    assert!(refusal(&padded(limits::TEXT_BYTES + 1)).contains("at most 65536"));

    let nested =
        |levels: usize| format!("{}true{}", "{\"not\":".repeat(levels), "}".repeat(levels));
    assert!(Schema::parse(nested(limits::DEPTH - 1).as_bytes()).is_ok());
    assert!(refusal(&nested(limits::DEPTH + 1)).contains("64 levels"));
    assert!(refusal(&nested(5_000)).contains("not valid JSON"));

    assert!(refusal(&doubling(30)).contains("too large"));
    assert!(Schema::parse(chain(30).as_bytes()).is_ok());
    assert!(refusal(&chain(1_000)).contains("64 levels once every $ref"));

    let patterns = |count: usize| {
        let named: serde_json::Map<_, _> =
            (0..count).map(|index| (format!("^p{index}"), json!(true))).collect();
        json!({ "patternProperties": named }).to_string()
    };
    assert!(Schema::parse(patterns(limits::PATTERNS).as_bytes()).is_ok());
    assert!(refusal(&patterns(limits::PATTERNS + 1)).contains("at most 100"));

    let pattern = |length: usize| json!({ "pattern": "a".repeat(length) }).to_string();
    assert!(Schema::parse(pattern(limits::PATTERN_BYTES).as_bytes()).is_ok());
    assert!(refusal(&pattern(limits::PATTERN_BYTES + 1)).contains("512 bytes"));

    let listed = json!({ "enum": (0..limits::VALUES / 2).collect::<Vec<_>>() }).to_string();
    assert!(Schema::parse(listed.as_bytes()).is_ok());
}

/// Schema, payload, what is said: `path message`, or nothing when the payload follows.
const PAYLOADS: &[(&str, &str, &str)] = &[
    ("true", "{}", ""),
    ("true", "", "payload cannot be read as JSON (line 1, column 0)"),
    ("true", "{\"a\":}", "payload cannot be read as JSON (line 1, column 6)"),
    ("true", "1e400", "payload cannot be read as JSON (line 1, column 5)"),
    ("false", "1", "payload must not be there"),
    (r#"{"type":"object"}"#, "[]", "payload must be an object"),
    (r#"{"type":["string","null"]}"#, "5", "payload must be null or a string"),
    (r#"{"type":"integer"}"#, "1.0", ""),
    (r#"{"type":"integer"}"#, "1.5", "payload must be an integer"),
    (r#"{"properties":{"a":{"type":"string"}}}"#, r#"{"a":1}"#, "/a must be a string"),
    (r#"{"properties":{"a/b":{"type":"string"}}}"#, r#"{"a/b":1}"#, "/a~1b must be a string"),
    (
        r#"{"properties":{"a":{"items":{"minimum":3}}}}"#,
        r#"{"a":[3,1]}"#,
        "/a/1 must be at least 3",
    ),
    (r#"{"required":["id"]}"#, "{}", r#"payload lacks the required property "id""#),
    (
        r#"{"additionalProperties":false}"#,
        r#"{"secret":1}"#,
        "payload has a property the schema does not allow",
    ),
    (r#"{"additionalProperties":{"type":"string"}}"#, r#"{"secret":1}"#, "/* must be a string"),
    (
        r#"{"propertyNames":{"maxLength":2}}"#,
        r#"{"abc":1}"#,
        "payload has a property name that must have at most 2 characters",
    ),
    (r#"{"enum":["a","b"]}"#, "\"c\"", "payload is none of the values the schema lists"),
    (r#"{"const":7}"#, "8", "payload is not the one value the schema allows"),
    (r#"{"maxLength":2}"#, "\"äöü\"", "payload must have at most 2 characters"),
    (r#"{"maxLength":3}"#, "\"äöü\"", ""),
    (r#"{"pattern":"^a+$"}"#, "\"b\"", "payload does not match the pattern ^a+$"),
    (r#"{"exclusiveMaximum":5}"#, "5", "payload must be less than 5"),
    (r#"{"multipleOf":0.01}"#, "19.99", ""),
    (r#"{"multipleOf":5}"#, "7", "payload must be a multiple of 5"),
    (r#"{"minItems":1}"#, "[]", "payload must have at least 1 items"),
    (r#"{"uniqueItems":true}"#, "[1,1.0]", "payload has an item twice"),
    (
        r#"{"contains":{"const":1}}"#,
        "[2]",
        "payload has not the number of matching items the schema asks for",
    ),
    (
        r#"{"anyOf":[{"type":"string"},{"minimum":3}]}"#,
        "1",
        "payload follows none of the alternatives",
    ),
    (r#"{"oneOf":[true,true]}"#, "1", "payload follows more than one of the alternatives"),
    (r#"{"not":{"type":"string"}}"#, "\"x\"", "payload follows a schema it must not follow"),
    (r#"{"prefixItems":[true],"items":false}"#, "[1,2]", "/1 must not be there"),
    (
        r#"{"properties":{"a":true},"unevaluatedProperties":false}"#,
        r#"{"a":1,"b":2}"#,
        "payload has 1 property the schema does not allow",
    ),
    (r#"{"format":"email"}"#, "\"nobody\"", ""),
    (r#"{"contentEncoding":"base64"}"#, "\"%\"", ""),
    (r#"{"dependencies":{"a":["b"]}}"#, r#"{"a":1}"#, r#"payload lacks the required property "b""#),
    (r#"{"maximum":18446744073709551615}"#, "18446744073709551615", ""),
    (
        r#"{"maximum":9007199254740992}"#,
        "9007199254740993",
        "payload must be at most 9007199254740992",
    ),
    (
        r##"{"$defs":{"m":{"minimum":1}},"properties":{"a":{"$ref":"#/$defs/m"}}}"##,
        r#"{"a":0}"#,
        "/a must be at least 1",
    ),
];

#[test]
fn payloads_are_judged_as_the_table_says() {
    let mut wrong = Vec::new();
    for (text, payload, expected) in PAYLOADS {
        let said = match schema(text).validate(payload.as_bytes()) {
            Ok(()) => String::new(),
            Err(violations) => {
                violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            }
        };
        if said != *expected {
            wrong.push(format!("{text} on {payload}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn draft_7_has_its_own_rules() {
    for (rules, payload, expected) in [
        (json!({ "dependencies": { "a": ["b"] } }), r#"{"a":1}"#, false),
        (json!({ "items": [true], "additionalItems": false }), "[1,2]", false),
        (json!({ "format": "email" }), "\"nobody\"", true),
        (
            json!({ "contentEncoding": "base64", "contentMediaType": "application/json" }),
            "\"%\"",
            true,
        ),
        // Beside a reference nothing counts.
        (
            json!({ "definitions": { "a": true }, "items": { "$ref": "#/definitions/a", "type": "null" } }),
            "[1]",
            true,
        ),
    ] {
        let mut document = rules.clone();
        document["$schema"] = DRAFT_7.into();
        let answer = schema(&document.to_string()).validate(payload.as_bytes());
        assert_eq!(answer.is_ok(), expected, "{rules} {payload} {answer:?}");
    }
}

#[test]
fn violations_are_limited_and_repeat_nothing_of_the_payload() {
    let schema = schema(
        r#"{"additionalProperties":{"type":"object","required":["id"],"additionalProperties":false,
            "properties":{"id":{"enum":["x"]}}}}"#,
    );
    let members: serde_json::Map<_, _> = (0..1_000)
        .map(|index| (format!("4111-{index}"), json!({ "id": "4111", "4111": "4111" })))
        .collect();
    let payload = serde_json::to_vec(&members).unwrap();
    let violations = schema.validate(&payload).unwrap_err();
    assert_eq!(violations.len(), limits::REPORTED);
    assert!(!format!("{violations:?} {schema:?}").contains("4111"));
}

#[test]
fn a_pattern_that_would_backtrack_forever_answers_at_once() {
    let schema = schema(r#"{"pattern":"^(a+)+$"}"#);
    let text = format!("\"{}b\"", "a".repeat(100_000));
    assert!(schema.validate(text.as_bytes()).is_err());
}

#[test]
fn a_deep_payload_is_refused_and_does_no_harm() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(schema("true").validate(deep.as_bytes()).is_err());
    assert!(schema(&chain(30)).validate(b"{\"a\":{\"a\":{\"a\":{}}}}").is_ok());
}
