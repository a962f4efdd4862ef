//! The language as tables: filter, payload, answer; and mistakes with what is said about them.

use super::{Filter, FilterInput, filter_limits as limits};

const ORDER: &str = r#"{
    "id": "o-1", "total": 150, "price": 19.90, "big": 18446744073709551616, "huge": 1e400,
    "paid": true, "gift": false, "note": null, "empty": "", "name": "Zürich \u0041\n",
    "tags": ["new", "eu", 7, true, null, ["x"]], "customer": {"name": "Ada", "address": [{"zip": "8001"}]},
    "odd key": 1, "a.b": 2, "user-id": 3, "in": 4, "exists": 5, "0": 6, "twice": 1, "twice": 2,
    "nested": {"k": 1}, "nested": {"j": 2}, "date": "2026-11-30", "": "nameless", "half": "\ud800"
}"#;

fn input(data: &[u8]) -> FilterInput<'_> {
    FilterInput {
        event_type: "order.paid",
        event_version: "2",
        source: "shop",
        subject: Some("order/1"),
        sequence: Some(9_007_199_254_740_993),
        data,
    }
}

fn holds(filter: &str, data: &str) -> bool {
    let parsed = Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let printed = parsed.to_string();
    assert_eq!(Filter::parse(&printed).as_ref(), Ok(&parsed), "{filter} printed as {printed}");
    parsed.matches(&input(data.as_bytes()))
}

/// Rows about [`ORDER`].
const ORDER_ROWS: &[(&str, bool)] = &[
    // --- the envelope
    ("", true),
    ("  \n\t ", true),
    ("true", true),
    ("false", false),
    (r#"event_type == "order.paid""#, true),
    (r#"event_type == "order""#, false),
    (r#"event_type startsWith "order.""#, true),
    (r#"event_type in ["order.paid", "order.late"]"#, true),
    (r#"event_version == "2""#, true),
    ("event_version == 2", false),
    (r#"event_version != "1""#, true),
    (r#"source endsWith "op""#, true),
    (r#"subject contains "/""#, true),
    ("exists(subject) && exists(sequence)", true),
    ("sequence == 9007199254740993", true),
    ("sequence == 9007199254740992", false),
    ("sequence > 9007199254740992", true),
    // --- equality
    (r#"data.id == "o-1""#, true),
    (r#"data.id == "O-1""#, false),
    (r#"data.id != "o-1""#, false),
    ("data.total == 150.0", true),
    ("data.total == 1.5e2", true),
    (r#"data.total == "150""#, false),
    (r#"data.total != "150""#, true),
    ("data.price == 19.9", true),
    ("data.big == 18446744073709551616", true),
    ("data.big == 18446744073709551617", false),
    ("data.big == 18446744073709551615", false),
    ("data.huge == 1e400", true),
    ("data.huge > 1e308", true),
    ("data.huge < 1e401", true),
    ("data.paid == true", true),
    ("data.paid == 1", false),
    (r#"data.paid == "true""#, false),
    ("data.gift == false", true),
    ("data.gift == null", false),
    ("data.note == null", true),
    ("data.note != null", false),
    ("data.empty == \"\"", true),
    ("data.empty == null", false),
    (r#"data.name == "Z\u00fcrich A\n""#, true),
    (r#"data.nested != 1"#, true),
    (r#"data.tags == "new""#, false),
    // --- missing fields
    ("data.nothing == null", false),
    ("data.nothing == 1", false),
    ("data.nothing != 1", true),
    ("data.nothing != null", true),
    ("data.nothing < 1", false),
    ("data.nothing >= 0", false),
    ("data.nothing in [1, null]", false),
    (r#"data.nothing contains """#, false),
    (r#"data.nothing startsWith """#, false),
    ("exists(data.nothing)", false),
    ("!exists(data.nothing)", true),
    ("data.total == 150 && data.nothing == 2", false),
    ("data.id.deeper == 1", false),
    ("data.id.deeper != 1", true),
    ("data.total[0] == 1", false),
    ("data.tags.name == 1", false),
    ("exists(data.note)", true),
    ("exists(data.note.deeper)", false),
    // --- order, and types that have none
    ("data.total >= 150 && data.total <= 150", true),
    ("data.total > 150 || data.total < 150", false),
    ("data.total > -1", true),
    ("data.price < 19.900000000000000001", true),
    ("data.id < 5", false),
    ("data.id >= 5", false),
    (r#"data.total < "2""#, false),
    ("data.paid > 0", false),
    ("data.note < 1", false),
    ("data.tags > 1", false),
    (r#"data.date >= "2026-11-01" && data.date < "2026-12-01""#, true),
    (r#"data.empty < "a""#, true),
    // --- lists, substrings, arrays
    ("data.total in [1, 150.0]", true),
    (r#"data.total in ["150"]"#, false),
    ("data.note in [null]", true),
    ("data.tags in [7]", false),
    (r#"data.tags contains "eu""#, true),
    (r#"data.tags contains "e""#, false),
    ("data.tags contains 7.0", true),
    ("data.tags contains true", true),
    ("data.tags contains false", false),
    ("data.tags contains null", true),
    (r#"data.tags contains "x""#, false),
    (r#"data.tags[0] == "new""#, true),
    (r#"data.tags[5][0] == "x""#, true),
    ("exists(data.tags[6])", false),
    ("exists(data.tags[4294967295])", false),
    (r#"data.name contains "rich""#, true),
    (r#"data.name contains "" && data.name startsWith "" && data.name endsWith """#, true),
    (r#"data.name startsWith "Zü""#, true),
    (r#"data.name endsWith "\n""#, true),
    (r#"data.total contains "5""#, false),
    (r#"data.nested contains "k""#, false),
    // --- paths
    (r#"data.customer.name == "Ada""#, true),
    (r#"data.customer.address[0].zip == "8001""#, true),
    (r#"data["customer"]["name"] == "Ada""#, true),
    (r#"data["odd key"] == 1 && data["a.b"] == 2 && data.user-id == 3"#, true),
    ("data.in == 4 && data.exists == 5 && data.0 == 6", true),
    ("exists(data.a.b)", false),
    (r#"data[""] == "nameless""#, true),
    (r#"data["\u0069d"] == "o-1""#, true),
    ("data.twice == 2", true),
    ("exists(data.nested.k)", false),
    ("data.nested.j == 2", true),
    ("exists(data.half) && data.half != \"x\"", true),
    (r#"data.half contains """#, false),
    // --- logic
    ("true || false && false", true),
    ("(true || false) && false", false),
    ("!true || !false", true),
    ("!!true && !!!false", true),
    ("!(data.total == 150 && data.gift == true)", true),
    ("( ( data.total==150 ) )&&( true )", true),
    ("data.total == 150 && (data.gift == true || data.paid == true)", true),
];

/// Filter, payload, answer: payloads of every shape.
const SHAPE_ROWS: &[(&str, &str, bool)] = &[
    ("data.a == 1", "", false),
    ("data.a != 1", "", true),
    ("!exists(data.a)", "", true),
    ("exists(data.a)", "\"x\"", false),
    ("exists(data.a)", "1", false),
    ("exists(data.a)", "null", false),
    ("exists(data.a)", "[]", false),
    ("exists(data.a)", "[true]", false),
    ("exists(data.a)", "{}", false),
    ("exists(data.a)", "{\"a\":", false),
    ("exists(data.a)", "{\"a\":1} x", false),
    ("exists(data.a)", "{\"a\":1,}", false),
    ("exists(data.a)", "{\"a\":01}", false),
    ("exists(data.a)", "{'a':1}", false),
    ("exists(data.a)", "<a>1</a>", false),
    ("exists(data.a)", "\u{feff}{\"a\":1}", false),
    ("exists(data.a)", "  {\"a\" : 1 }\n", true),
    ("data.a == 1", "{\"a\":1,\"b\":{\"a\":2}}", true),
    ("data.a == 1", "{\"b\":{\"a\":1}}", false),
    ("data.a == 1 && data.b == 2", "{\"a\":1}", false),
    ("data.a == 1", "{\"\\ud800\":0,\"a\":1}", true),
    ("data.a == 1", "{\"\\u0061\":1}", true),
    ("data.a == 1", "{\"a\":1,\"\\u0061\":2}", false),
    ("exists(data.a.b)", "{\"a\":{\"b\":1},\"a\":2}", false),
    ("data.a[1].b == 2", "{\"a\":[{\"b\":1},{\"b\":2}]}", true),
    ("data.a[0] == 1 && data.a[2] == 3 && data.a contains 2", "{\"a\":[1,2,3]}", true),
    ("data.a == -0", "{\"a\":0}", true),
    ("data.a == 0", "{\"a\":-0.0}", true),
    ("data.a == 1e-400", "{\"a\":0}", false),
];

#[test]
fn filters_mean_what_the_table_says() {
    for (filter, expected) in ORDER_ROWS {
        assert_eq!(holds(filter, ORDER), *expected, "{filter}");
    }
}

#[test]
fn payloads_of_every_shape_are_answered() {
    for (filter, data, expected) in SHAPE_ROWS {
        assert_eq!(holds(filter, data), *expected, "{filter} on {data}");
    }
}

#[test]
fn an_event_without_subject_and_sequence_has_neither() {
    let bare = FilterInput { subject: None, sequence: None, ..input(b"{}") };
    for (filter, expected) in [
        ("exists(subject)", false),
        ("exists(sequence)", false),
        ("subject == \"\"", false),
        ("subject != \"x\"", true),
        ("sequence >= 0", false),
        ("sequence != 0", true),
    ] {
        assert_eq!(Filter::parse(filter).unwrap().matches(&bare), expected, "{filter}");
    }
}

/// Filter, column, part of the message.
const MISTAKES: &[(&str, usize, &str)] = &[
    ("data.total = 5", 12, "equality is =="),
    ("data.total === 5", 14, "expected a value"),
    ("data.total == 5 and true", 17, "and is written &&"),
    ("data.total == 5 & true", 17, "and is written &&"),
    ("data.total == 5 or true", 17, "or is written ||"),
    ("data.total == 5 | true", 17, "or is written ||"),
    ("not (true)", 1, "write !"),
    ("data.paid", 10, "data.paid == true"),
    ("data.paid && true", 11, "data.paid == true"),
    ("!data.paid == true", 2, "parentheses"),
    ("!5", 2, "parentheses"),
    ("!", 2, "expected a condition"),
    ("total >= 5", 1, "there is no such field"),
    ("data >= 5", 5, "expected a key after data"),
    ("exists(data)", 12, "expected a key after data"),
    ("data [\"id\"] == 1", 5, "expected a key after data"),
    ("data[0] == 1", 5, "expected a key first"),
    ("data.a[-1] == 1", 8, "expected an index"),
    ("data.a[4294967296] == 1", 8, "expected an index"),
    ("data.a[0 == 1", 10, "expected ]"),
    ("data..a == 1", 6, "expected a key"),
    ("data. a == 1", 6, "expected a key"),
    ("data.ü == 1", 6, "in brackets"),
    ("source.x == 1", 7, "only data has fields"),
    ("source[0] == 1", 7, "only fields below data have indexes"),
    ("5 == data.total", 1, "on the left"),
    ("\"EUR\" == data.currency", 1, "on the left"),
    ("data.a == data.b", 11, "cannot be compared with a field"),
    ("data.a == EUR", 11, "text stands in quotes"),
    ("data.a == 'EUR'", 11, "double quotes"),
    ("data.a == \"EUR", 11, "never closed"),
    ("data.a == \"\\x\"", 11, "as in JSON"),
    ("data.a == \"a\nb\"", 11, "as in JSON"),
    ("data.a == \"\\ud800\"", 11, "as in JSON"),
    ("data.a == 01", 11, "write numbers as in JSON"),
    ("data.a == +1", 11, "write numbers as in JSON"),
    ("data.a == .5", 11, "write numbers as in JSON"),
    ("data.a == 1.", 11, "write numbers as in JSON"),
    ("data.a == 0x10", 11, "write numbers as in JSON"),
    ("data.a == 1_000", 11, "write numbers as in JSON"),
    ("data.a == [1]", 11, "only follow in"),
    ("data.a == {}", 11, "expected a value"),
    ("data.a in 5", 11, "expected a list"),
    ("data.a in []", 11, "empty list"),
    ("data.a in [1 2]", 14, "expected , or ]"),
    ("data.a in [1,]", 14, "expected a value"),
    ("data.a in [[1]]", 12, "expected a value"),
    ("data.a < true", 10, "have an order"),
    ("data.a >= null", 11, "have an order"),
    ("data.a startsWith 5", 19, "expected a string"),
    ("data.a startswith \"x\"", 8, "startsWith"),
    ("data.a containsx \"x\"", 8, "expected an operator"),
    ("(true", 1, "never closed"),
    ("(true true", 7, "expected &&, || or )"),
    ("true)", 5, "never opened"),
    ("()", 2, "expected a condition"),
    ("true &&", 8, "expected a condition"),
    ("&& true", 1, "expected a condition"),
    ("exists data.a", 8, "expected ("),
    ("exists(data.a", 14, "expected )"),
    ("exists(5)", 8, "on the left"),
    ("data.ok == \"ü\" && x == 1", 19, "there is no such field"),
    ("order.*", 1, "there is no such field"),
    ("{\"a\":1}", 1, "expected a condition"),
    ("null", 1, "expected a field"),
];

#[test]
fn a_mistake_is_told_with_its_place_and_the_remedy() {
    for (filter, column, part) in MISTAKES {
        let error = Filter::parse(filter).expect_err(filter);
        assert_eq!(error.column, *column, "{filter}: {error}");
        assert!(error.message.contains(part), "{filter}: {error}");
        assert!(error.to_string().starts_with(&format!("is wrong at column {column}: ")));
    }
}

fn refusal(filter: &str) -> String {
    Filter::parse(filter).expect_err("it exceeds a bound").to_string()
}

#[test]
fn every_bound_holds_exactly() {
    let depth = |levels: usize| format!("{}true{}", "(".repeat(levels), ")".repeat(levels));
    assert!(Filter::parse(&depth(limits::DEPTH)).is_ok());
    assert!(refusal(&depth(limits::DEPTH + 1)).contains("32 levels"));

    let list = |length: usize| format!("data.a in [{}]", vec!["1"; length].join(","));
    assert!(Filter::parse(&list(limits::LIST_LENGTH)).is_ok());
    assert!(refusal(&list(limits::LIST_LENGTH + 1)).contains("100 values"));

    let nodes = |count: usize| vec!["true"; count].join("||");
    assert!(Filter::parse(&nodes(limits::NODES - 1)).is_ok(), "the group is a node too");
    assert!(refusal(&nodes(limits::NODES)).contains("256 conditions"));

    let path = |segments: usize| format!("exists(data{})", ".a".repeat(segments));
    assert!(Filter::parse(&path(limits::PATH_SEGMENTS)).is_ok());
    assert!(refusal(&path(limits::PATH_SEGMENTS + 1)).contains("16 steps"));

    let text = |length: usize| format!("true{}", " ".repeat(length - 4));
    assert!(Filter::parse(&text(limits::TEXT_BYTES)).is_ok());
    assert!(refusal(&text(limits::TEXT_BYTES + 1)).contains("4096 bytes"));
}

#[test]
fn a_filter_that_would_print_too_long_is_refused() {
    let one = format!("data.a==\"{}\"", "x".repeat(84));
    let filter = vec![one; 42].join("||");
    assert!(filter.len() <= limits::TEXT_BYTES);
    assert!(refusal(&filter).contains("as printed"));
}

#[test]
fn nesting_bombs_are_refused_and_deep_payloads_are_read() {
    for bomb in ["(", "!", "!(", "((true)&&", "data.a["] {
        let bomb = bomb.repeat(limits::TEXT_BYTES / bomb.len());
        assert!(Filter::parse(&bomb).is_err());
    }
    let filter = Filter::parse("data.a == 1 && exists(data.deep.x[0])").unwrap();
    let deep = format!("{{\"deep\":{}{},\"a\":1}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!filter.matches(&input(deep.as_bytes())));
    let deep = format!("{{\"deep\":{{\"x\":{}{}}},\"a\":1}}", "[".repeat(9_999), "]".repeat(9_999));
    assert!(filter.matches(&input(deep.as_bytes())));
}

#[test]
fn only_filters_on_the_payload_need_it() {
    for (filter, expected) in [
        ("", false),
        ("event_type == \"a\" && !exists(subject)", false),
        ("source == \"data.total\"", false),
        ("true || exists(data.a)", true),
        ("data.a in [1]", true),
    ] {
        assert_eq!(Filter::parse(filter).unwrap().uses_data(), expected, "{filter}");
    }
}

#[test]
fn filters_print_in_one_form() {
    for (filter, expected) in [
        ("", "true"),
        ("((data.a==1))", "data.a == 1"),
        ("data.a==1&&(data.b!=2&&true)", "data.a == 1 && data.b != 2 && true"),
        ("(true&&false)||true", "true && false || true"),
        ("(true||false)&&true", "(true || false) && true"),
        ("!(true)", "!true"),
        ("! ( data.a in[1,\"x\",null] )", "!(data.a in [1, \"x\", null])"),
        ("data[\"a\"][\"b c\"][07] == 1.50", "data.a[\"b c\"][7] == 1.50"),
        ("source == \"\\u0041\\/\"", "source == \"A/\""),
    ] {
        assert_eq!(Filter::parse(filter).unwrap().to_string(), expected, "{filter}");
    }
}

#[test]
fn the_payload_stays_out_of_debug_text() {
    let shown = format!("{:?}", input(b"{\"card\":4111}"));
    assert!(!shown.contains("4111") && shown.contains("data_bytes: 13"), "{shown}");
}
