//! Which schema may follow which.

#![expect(clippy::panic, reason = "a failed row of a table says which")]

use proptest::prelude::*;
use serde_json::{Value, json};
use turnbuckle_schema::{Compatibility, Direction, Schema, check_compatibility};

fn schema(document: &Value) -> Schema {
    Schema::parse(document.to_string().as_bytes())
        .unwrap_or_else(|error| panic!("{document}: {error}"))
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The places where `reader` may refuse what `writer` takes.
fn refusals(writer: &Value, reader: &Value) -> Vec<String> {
    match check_compatibility(Compatibility::Backward, &schema(writer), &schema(reader)) {
        Ok(()) => Vec::new(),
        Err(found) => found.into_iter().map(|one| one.path).collect(),
    }
}

/// One schema, another, where the second may refuse data of the first (`-`: nowhere), and where the
/// first may refuse data of the second.
const ROWS: &[(&str, &str, &str, &str)] = &[
    // --- trivial
    ("{}", "true", "-", "-"),
    ("{}", "false", "", "-"),
    (r#"{"type":"object"}"#, "{}", "-", "/type"),
    (r#"{"title":"a","type":"null"}"#, r#"{"description":"b","type":"null"}"#, "-", "-"),
    (r#"{"format":"email"}"#, r#"{"format":"uri","x-note":1}"#, "-", "-"),
    // --- types
    (r#"{"type":"string"}"#, r#"{"type":["string","null"]}"#, "-", "/type"),
    (r#"{"type":"string"}"#, r#"{"type":["string"]}"#, "-", "-"),
    (r#"{"type":"integer"}"#, r#"{"type":"number"}"#, "-", "/type"),
    (r#"{"type":"integer"}"#, r#"{"type":"string"}"#, "/type", "/type"),
    // --- listed values
    (r#"{"enum":["a"]}"#, r#"{"enum":["b","a"]}"#, "-", "/enum"),
    (r#"{"enum":["a"]}"#, r#"{"const":"a"}"#, "-", "-"),
    (r#"{"const":"a"}"#, r#"{"enum":["b"]}"#, "/enum", "/const"),
    (r#"{"enum":["a",1]}"#, r#"{"type":"string"}"#, "", "/enum"),
    (r#"{"enum":["a","b"]}"#, r#"{"type":"string","maxLength":1}"#, "-", "/enum"),
    (r#"{"enum":[1,2]}"#, r#"{"minimum":2}"#, "", "/enum"),
    // --- ranges
    (r#"{"minimum":1}"#, r#"{"minimum":0}"#, "-", "/minimum"),
    (r#"{"minimum":1}"#, r#"{"exclusiveMinimum":1}"#, "/exclusiveMinimum", "-"),
    (r#"{"minimum":1}"#, r#"{"exclusiveMinimum":0.5}"#, "-", "/minimum"),
    (r#"{"maximum":5}"#, "{}", "-", "/maximum"),
    (r#"{"maximum":5}"#, r#"{"exclusiveMaximum":5}"#, "/exclusiveMaximum", "-"),
    (r#"{"maximum":9007199254740993}"#, r#"{"maximum":9007199254740992}"#, "/maximum", "-"),
    (
        r#"{"maximum":9007199254740993}"#,
        r#"{"maximum":9007199254740992.5}"#,
        "/maximum",
        "/maximum",
    ),
    (r#"{"type":"string"}"#, r#"{"type":"string","minimum":5}"#, "-", "-"),
    (r#"{"multipleOf":10}"#, r#"{"multipleOf":5}"#, "-", "/multipleOf"),
    (r#"{"multipleOf":0.5}"#, r#"{"multipleOf":0.25}"#, "/multipleOf", "/multipleOf"),
    // --- strings
    (r#"{"maxLength":5}"#, r#"{"maxLength":6}"#, "-", "/maxLength"),
    (r#"{"minLength":1}"#, r#"{"minLength":0}"#, "-", "/minLength"),
    ("{}", r#"{"minLength":0}"#, "-", "-"),
    (r#"{"pattern":"^a"}"#, r#"{"pattern":"^b"}"#, "/pattern", "/pattern"),
    (r#"{"pattern":"^a"}"#, "{}", "-", "/pattern"),
    // --- arrays
    (r#"{"items":{"type":"integer"}}"#, r#"{"items":{"type":"number"}}"#, "-", "/items/type"),
    (r#"{"items":{"type":"integer"}}"#, "{}", "-", "/items/type"),
    (r#"{"minItems":1,"maxItems":2}"#, r#"{"maxItems":3}"#, "-", "/minItems /maxItems"),
    (r#"{"uniqueItems":true}"#, r#"{"uniqueItems":false}"#, "-", "/uniqueItems"),
    (
        r#"{"prefixItems":[{"type":"string"}]}"#,
        r#"{"prefixItems":[{"type":"string"},{"type":"null"}]}"#,
        "/prefixItems/1/type",
        "-",
    ),
    (
        r#"{"prefixItems":[{"type":"string"}],"items":false}"#,
        r#"{"items":{"type":"string"}}"#,
        "-",
        "/items",
    ),
    (
        r#"{"contains":{"const":1}}"#,
        r#"{"contains":{"const":1},"minContains":2}"#,
        "/contains",
        "/contains",
    ),
    // --- objects
    (r#"{"required":["a"]}"#, "{}", "-", "/required"),
    (r#"{"required":["a"]}"#, r#"{"required":["b"]}"#, "/required", "/required"),
    (
        r#"{"properties":{"a":{"type":"integer"}}}"#,
        r#"{"properties":{"a":{"type":"number"}}}"#,
        "-",
        "/properties/a/type",
    ),
    ("{}", r#"{"properties":{"a":{"type":"string"}}}"#, "/properties/a", "-"),
    ("{}", r#"{"properties":{"a":true}}"#, "-", "-"),
    (
        r#"{"additionalProperties":false}"#,
        r#"{"additionalProperties":false,"properties":{"a":{"type":"string"}}}"#,
        "-",
        "/properties/a",
    ),
    (
        r#"{"additionalProperties":{"type":"string"}}"#,
        r#"{"additionalProperties":{"type":"string"},"properties":{"a":{"type":"string"}}}"#,
        "-",
        "-",
    ),
    (
        r#"{"additionalProperties":{"type":"string"}}"#,
        r#"{"additionalProperties":{"type":"string"},"properties":{"a":{"type":"null"}}}"#,
        "/properties/a/type",
        "/additionalProperties/type",
    ),
    (r#"{"additionalProperties":false}"#, "{}", "-", "/additionalProperties"),
    (
        r#"{"additionalProperties":false}"#,
        r#"{"additionalProperties":false,"properties":{"a":true},"required":["a"]}"#,
        "/required",
        "/properties/a",
    ),
    (r#"{"minProperties":1}"#, r#"{"maxProperties":9}"#, "/maxProperties", "/minProperties"),
    (r#"{"propertyNames":{"maxLength":3}}"#, "{}", "-", "/propertyNames"),
    (r#"{"patternProperties":{"^x":{"type":"string"}}}"#, "{}", "-", "/patternProperties"),
    (
        r#"{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}"#,
        r#"{"additionalProperties":false}"#,
        "/patternProperties",
        "/patternProperties",
    ),
    (
        r#"{"patternProperties":{"^x":{"type":"string"}}}"#,
        r#"{"patternProperties":{"^x":{"type":"string"}},"properties":{"xa":{"type":"string"}}}"#,
        "/properties/xa",
        "-",
    ),
    (r#"{"dependentRequired":{"a":["b"]}}"#, "{}", "-", "/dependentRequired"),
    (
        r#"{"properties":{"a":true},"unevaluatedProperties":false}"#,
        r#"{"properties":{"a":true,"b":true},"unevaluatedProperties":false}"#,
        "/unevaluatedProperties",
        "/unevaluatedProperties",
    ),
    // --- combinators
    (
        r#"{"anyOf":[{"type":"null"}]}"#,
        r#"{"anyOf":[{"type":"null"},{"type":"string"}]}"#,
        "/anyOf",
        "/anyOf",
    ),
    (r#"{"anyOf":[{"type":"null"}]}"#, "{}", "-", "/anyOf"),
    (
        r#"{"allOf":[{"minimum":1}],"maximum":3}"#,
        r#"{"allOf":[{"minimum":1}],"maximum":4}"#,
        "-",
        "/maximum",
    ),
    (r#"{"not":{"type":"null"}}"#, r#"{"not":{"type":"string"}}"#, "/not", "/not"),
    (
        r#"{"if":{"type":"null"},"then":false}"#,
        r#"{"if":{"type":"null"},"else":false}"#,
        "/if",
        "/if",
    ),
    // --- references and dialects
    (
        r##"{"$defs":{"m":{"type":"integer"}},"items":{"$ref":"#/$defs/m"}}"##,
        r#"{"items":{"type":"integer"}}"#,
        "-",
        "-",
    ),
    (
        r##"{"$defs":{"m":{"type":"integer"}},"items":{"$ref":"#/$defs/m","minimum":1}}"##,
        r#"{"items":{"allOf":[{"type":"integer"}],"minimum":0}}"#,
        "-",
        "/items/minimum",
    ),
    (
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"null"}],"additionalItems":false}"#,
        r#"{"prefixItems":[{"type":"null"}],"items":false}"#,
        "-",
        "-",
    ),
    (
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"required":["d"]}}}"#,
        r#"{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}"#,
        "-",
        "-",
    ),
    (r#"{"dependencies":{"a":["b"]}}"#, "{}", "-", "/dependencies"),
];

fn assert_refusals(writer: &Value, reader: &Value, expected: &str) {
    let found = refusals(writer, reader).join(" ");
    let expected = if expected == "-" { "" } else { expected };
    let refused = check_compatibility(Compatibility::Backward, &schema(writer), &schema(reader));
    assert_eq!(found, expected, "{writer} → {reader}: {refused:?}");
}

#[test]
fn changes_are_judged_as_the_table_says() {
    for (one, other, there, back) in ROWS {
        let (one, other) = (parse(one), parse(other));
        assert_refusals(&one, &other, there);
        assert_eq!(refusals(&one, &other).is_empty(), *there == "-", "{one} → {other}");
        assert_refusals(&other, &one, back);
        assert_eq!(refusals(&other, &one).is_empty(), *back == "-", "{other} → {one}");

        let full = check_compatibility(Compatibility::Full, &schema(&one), &schema(&other));
        assert_eq!(full.is_ok(), *there == "-" && *back == "-", "{one} ↔ {other}");
        let none = check_compatibility(Compatibility::None, &schema(&one), &schema(&other));
        assert!(none.is_ok());
    }
}

#[test]
fn a_refusal_tells_place_reason_and_direction() {
    let old = json!({ "properties": { "total": { "type": "number" } } });
    let new = json!({ "properties": { "total": { "type": "integer" } }, "required": ["total"] });
    let found = check_compatibility(Compatibility::Full, &schema(&old), &schema(&new)).unwrap_err();
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "/required: \"total\" is required now (old data may be refused by the new schema)",
            "/properties/total/type: numbers with a fraction not taken here any more (old data may be refused by the new schema)",
        ]
    );
    let found = check_compatibility(Compatibility::Full, &schema(&new), &schema(&old)).unwrap_err();
    assert!(found.iter().all(|one| one.direction == Direction::NewDataOldSchema), "{found:?}");
}

#[test]
fn refusals_are_limited() {
    let with = |kind: &str| {
        let properties: serde_json::Map<_, _> =
            (0..500).map(|index| (format!("p{index}"), json!({ "type": kind }))).collect();
        json!({ "properties": properties })
    };
    assert_eq!(refusals(&with("string"), &with("null")).len(), 25);
}

/// Small schemas that meet each other.
fn schemas() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let kind = prop::sample::select(vec![
        json!("null"),
        json!("integer"),
        json!("number"),
        json!("string"),
        json!("array"),
        json!("object"),
        json!(["string", "null"]),
        json!(["integer", "object"]),
    ]);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        kind.prop_map(|kind| json!({ "type": kind })),
        (
            0..3i32,
            prop::sample::select(vec![
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "minProperties",
                "maxProperties",
            ])
        )
            .prop_map(|(limit, keyword)| json!({ keyword: limit })),
        (1..4i32).prop_map(|step| json!({ "multipleOf": step })),
        prop::collection::btree_set(name(), 1..3).prop_map(|names| json!({ "required": names })),
        prop::collection::vec(values(), 1..3).prop_map(|mut list| {
            list.dedup();
            list.truncate(1);
            json!({ "enum": list })
        }),
        values().prop_map(|value| json!({ "const": value })),
        Just(json!({ "uniqueItems": true })),
        Just(json!({ "pattern": "^a" })),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(one, other)| merge(one, &other)),
            2 => prop::collection::btree_map(name(), inner.clone(), 1..3)
                .prop_map(|map| json!({ "properties": map })),
            2 => inner.clone().prop_map(|inner| json!({ "additionalProperties": inner })),
            1 => inner.clone().prop_map(|inner| json!({ "patternProperties": { "^[ab]$": inner } })),
            1 => inner.clone().prop_map(|inner| json!({ "items": inner })),
            1 => prop::collection::vec(inner.clone(), 1..3)
                .prop_map(|list| json!({ "prefixItems": list })),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|list| json!({ "anyOf": list })),
            1 => inner.clone().prop_map(|inner| json!({ "not": inner })),
            1 => inner.prop_map(|inner| json!({ "contains": inner })),
        ]
    })
}

/// The keywords of both; those of the first win.
fn merge(one: Value, other: &Value) -> Value {
    let mut merged = one;
    if let (Some(merged), Some(other)) = (merged.as_object_mut(), other.as_object()) {
        for (keyword, value) in other {
            merged.entry(keyword.clone()).or_insert_with(|| value.clone());
        }
    }
    merged
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1..5i32).prop_map(Value::from),
        Just(json!(0.5)),
        prop::sample::select(vec!["", "a", "ab", "ba"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(
                prop::sample::select(vec!["a", "b", "c", "d"]),
                inner,
                0..3
            )
            .prop_map(|map| json!(map)),
        ]
    })
}

/// Loosens or tightens a schema a little, so that pairs are often compatible.
fn changed(document: &Value, extra: &Value, drop: usize) -> Value {
    let mut changed = merge(document.clone(), extra);
    if let Some(map) = changed.as_object_mut() {
        let keys: Vec<String> = map.keys().cloned().collect();
        if let Some(key) = keys.get(drop) {
            map.remove(key);
        }
    }
    changed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_schema_may_follow_itself(document in schemas()) {
        for rule in [Compatibility::None, Compatibility::Backward, Compatibility::Full] {
            prop_assert_eq!(check_compatibility(rule, &schema(&document), &schema(&document)), Ok(()));
        }
    }

    #[test]
    fn dropping_everything_is_always_backward_compatible(document in schemas()) {
        let found = refusals(&document, &json!({}));
        prop_assert!(found.is_empty(), "{} {:?}", document, found);
    }

    #[test]
    fn what_an_accepted_change_took_before_is_taken_after(
        old in schemas(),
        other in schemas(),
        related: bool,
        drop in 0..4usize,
        payloads in prop::collection::vec(values(), 24),
    ) {
        let new = if related { changed(&old, &other, drop) } else { other };
        let (before, after) = (schema(&old), schema(&new));
        if check_compatibility(Compatibility::Backward, &before, &after).is_ok() {
            for payload in payloads {
                let bytes = payload.to_string().into_bytes();
                let lost = before.validate(&bytes).is_ok() && after.validate(&bytes).is_err();
                prop_assert!(!lost, "{} → {}: {}", old, new, payload);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_schema_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        drop(Schema::parse(&bytes));
    }

    #[test]
    fn any_bytes_are_judged(document in schemas(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        drop(schema(&document).validate(&bytes));
    }

    #[test]
    fn any_document_is_a_schema_or_refused(document in values(), keyword in prop::sample::select(vec![
        "type", "properties", "items", "allOf", "$ref", "required", "enum", "pattern", "dependencies",
        "$defs", "if", "const", "$schema", "patternProperties", "prefixItems",
    ])) {
        drop(Schema::parse(json!({ keyword: document }).to_string().as_bytes()));
    }
}
