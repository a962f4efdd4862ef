//! Properties: printing and reading agree, nothing panics, and looking up finds what a tree holds.

use super::decimal::Decimal;
use super::expr::{Expr, Field, Literal, Number, Operator, Segment};
use super::payload::look_up;
use super::{Filter, FilterInput};
use proptest::prelude::*;
use serde_json::Value;

/// Keys that meet each other in payloads and paths.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c-d", "in", "exists", "data", "x y", "", "ü", "\"", "\\"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn literal() -> impl Strategy<Value = Literal> {
    let number = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u128>().prop_map(|number| number.to_string()),
        (-1e9..1e9f64).prop_map(|number| format!("{number}")),
        (-999..999i32, -999..999i32).prop_map(|(number, power)| format!("{number}.5e{power}")),
    ];
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Bool),
        key().prop_map(Literal::Text),
        number.prop_map(|text| {
            let value = Decimal::from_json(&text);
            Literal::Number(Number { text, value })
        }),
    ]
}

fn operator_and_literal() -> impl Strategy<Value = (Operator, Literal)> {
    use Operator::{
        AtLeast, AtMost, Contains, EndsWith, Equal, Greater, Less, NotEqual, StartsWith,
    };
    let text = key().prop_map(Literal::Text);
    let ordered = literal().prop_filter("has an order", |literal| {
        matches!(literal, Literal::Text(_) | Literal::Number(_))
    });
    prop_oneof![
        (prop::sample::select(vec![Equal, NotEqual, Contains]), literal()),
        (prop::sample::select(vec![Less, AtMost, Greater, AtLeast]), ordered),
        (prop::sample::select(vec![StartsWith, EndsWith]), text),
    ]
}

/// A field; those below `data` carry their path until the filter is put together.
fn field() -> impl Strategy<Value = Result<Field, Vec<Segment>>> {
    prop_oneof![
        prop::sample::select(Field::ENVELOPE.map(|(_, field)| field).to_vec()).prop_map(Ok),
        path().prop_map(Err),
    ]
}

fn path() -> impl Strategy<Value = Vec<Segment>> {
    let segment = prop_oneof![key().prop_map(Segment::Key), (0..4u32).prop_map(Segment::Index)];
    (key(), prop::collection::vec(segment, 0..3))
        .prop_map(|(first, rest)| std::iter::once(Segment::Key(first)).chain(rest).collect())
}

/// An expression before its paths are numbered.
#[derive(Debug, Clone)]
enum Draft {
    Constant(bool),
    Exists(Result<Field, Vec<Segment>>),
    Compare(Result<Field, Vec<Segment>>, Operator, Literal),
    In(Result<Field, Vec<Segment>>, Vec<Literal>),
    Not(Box<Draft>),
    All(Vec<Draft>),
    Any(Vec<Draft>),
}

fn draft() -> impl Strategy<Value = Draft> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Draft::Constant),
        field().prop_map(Draft::Exists),
        (field(), operator_and_literal())
            .prop_map(|(field, (operator, literal))| { Draft::Compare(field, operator, literal) }),
        (field(), prop::collection::vec(literal(), 1..4))
            .prop_map(|(field, list)| Draft::In(field, list)),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|draft| Draft::Not(Box::new(draft))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Draft::All),
            prop::collection::vec(inner, 2..4).prop_map(Draft::Any),
        ]
    })
}

fn number(field: Result<Field, Vec<Segment>>, paths: &mut Vec<Box<[Segment]>>) -> Field {
    field.unwrap_or_else(|path| {
        let path: Box<[Segment]> = path.into();
        let known = paths.iter().position(|known| *known == path);
        Field::Data(known.unwrap_or_else(|| {
            paths.push(path);
            paths.len() - 1
        }))
    })
}

/// Numbers the paths in order and melts groups into groups of their kind.
fn finish(draft: Draft, paths: &mut Vec<Box<[Segment]>>) -> Expr {
    match draft {
        Draft::Constant(value) => Expr::Constant(value),
        Draft::Exists(field) => Expr::Exists(number(field, paths)),
        Draft::Compare(field, operator, literal) => {
            Expr::Compare(number(field, paths), operator, literal)
        }
        Draft::In(field, list) => Expr::In(number(field, paths), list),
        Draft::Not(inner) => Expr::Not(Box::new(finish(*inner, paths))),
        Draft::All(members) => {
            let members = members.into_iter().map(|member| finish(member, paths));
            Expr::All(
                members
                    .flat_map(|member| match member {
                        Expr::All(inner) => inner,
                        other => vec![other],
                    })
                    .collect(),
            )
        }
        Draft::Any(members) => {
            let members = members.into_iter().map(|member| finish(member, paths));
            Expr::Any(
                members
                    .flat_map(|member| match member {
                        Expr::Any(inner) => inner,
                        other => vec![other],
                    })
                    .collect(),
            )
        }
    }
}

fn filter() -> impl Strategy<Value = Filter> {
    draft().prop_map(|draft| {
        let mut paths = Vec::new();
        let expr = finish(draft, &mut paths);
        Filter { expr, paths }
    })
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        key().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn input(data: &[u8]) -> FilterInput<'_> {
    FilterInput {
        event_type: "a",
        event_version: "1",
        source: "b",
        subject: None,
        sequence: Some(1),
        data,
    }
}

/// What a tree of the payload has at the path.
fn walk<'v>(root: &'v Value, path: &[Segment]) -> Option<&'v Value> {
    path.iter().try_fold(root, |value, segment| match segment {
        Segment::Key(key) => value.as_object()?.get(key),
        Segment::Index(index) => value.as_array()?.get(*index as usize),
    })
}

proptest! {
    #[test]
    fn a_printed_filter_reads_as_the_same_filter(filter in filter()) {
        let printed = filter.to_string();
        prop_assume!(printed.len() <= super::filter_limits::TEXT_BYTES);
        prop_assert_eq!(Filter::parse(&printed), Ok(filter), "{}", printed);
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!(error.column <= text.chars().count() + 1);
        }
    }

    #[test]
    fn text_of_the_languages_own_pieces_is_read_or_refused(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "data", ".a", "[0]", "[\"", "\"", "\\", "==", "!=", "<", "!", "(", ")", "&&", "||", "in",
            "[", "]", ",", "exists", "source", "true", "null", "1", "-", "e5", " ", "contains", "ü",
        ]), 0..24)
    ) {
        let text = pieces.concat();
        match Filter::parse(&text) {
            Ok(filter) => prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter)),
            Err(error) => prop_assert!(error.column <= text.chars().count() + 1),
        }
    }

    #[test]
    fn any_payload_is_answered(filter in filter(), data in prop::collection::vec(any::<u8>(), 0..64)) {
        let opposite = Filter { expr: Expr::Not(Box::new(filter.expr.clone())), ..filter.clone() };
        prop_assert_ne!(filter.matches(&input(&data)), opposite.matches(&input(&data)));
    }

    #[test]
    fn a_cut_payload_is_answered(filter in filter(), value in json(), cut in any::<prop::sample::Index>()) {
        let bytes = value.to_string().into_bytes();
        let data = &bytes[..cut.index(bytes.len() + 1)];
        let opposite = Filter { expr: Expr::Not(Box::new(filter.expr.clone())), ..filter.clone() };
        prop_assert_ne!(filter.matches(&input(data)), opposite.matches(&input(data)));
    }

    #[test]
    fn looking_up_finds_what_a_tree_holds(
        value in json(),
        paths in prop::collection::vec(path(), 1..5),
    ) {
        let text = value.to_string();
        let boxed: Vec<Box<[Segment]>> = paths.iter().map(|path| path.clone().into()).collect();
        for (path, found) in paths.iter().zip(look_up(text.as_bytes(), &boxed)) {
            let found = found.map(|json| serde_json::from_str::<Value>(json).unwrap());
            prop_assert_eq!(found.as_ref(), walk(&value, path));
        }
    }

    #[test]
    fn not_equal_is_the_opposite_of_equal(path in path(), literal in literal(), value in json()) {
        let text = value.to_string();
        let answer = |operator| {
            let filter = Filter {
                expr: Expr::Compare(Field::Data(0), operator, literal.clone()),
                paths: vec![path.clone().into()],
            };
            filter.matches(&input(text.as_bytes()))
        };
        prop_assert_ne!(answer(Operator::Equal), answer(Operator::NotEqual));
    }
}
