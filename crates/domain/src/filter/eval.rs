//! What a filter says about an event.

use super::decimal::Decimal;
use super::expr::{Expr, Field, Literal, Operator};
use super::payload::{for_each_element, look_up, string};
use super::{Filter, FilterInput};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Ordering;

pub(super) fn matches(filter: &Filter, input: &FilterInput<'_>) -> bool {
    Evaluation { filter, input, payload: OnceCell::new() }.holds(&filter.expr)
}

struct Evaluation<'f, 'a> {
    filter: &'f Filter,
    input: &'f FilterInput<'a>,
    /// Read when first needed: the envelope alone often decides.
    payload: OnceCell<Vec<Option<&'a str>>>,
}

/// What a field holds.
enum Value<'a> {
    Null,
    Bool(bool),
    Text(Cow<'a, str>),
    Number(Decimal),
    /// The JSON text.
    Array(&'a str),
    /// An object, or a string that spells no text: equal to nothing.
    Opaque,
}

impl<'a> Evaluation<'_, 'a> {
    fn holds(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Constant(value) => *value,
            Expr::Exists(field) => self.value(*field).is_some(),
            Expr::Compare(field, operator, literal) => match self.value(*field) {
                Some(value) => value.compare(*operator, literal),
                None => *operator == Operator::NotEqual,
            },
            Expr::In(field, list) => self
                .value(*field)
                .is_some_and(|value| list.iter().any(|literal| value.equals(literal))),
            Expr::Not(inner) => !self.holds(inner),
            Expr::All(members) => members.iter().all(|member| self.holds(member)),
            Expr::Any(members) => members.iter().any(|member| self.holds(member)),
        }
    }

    fn value(&self, field: Field) -> Option<Value<'a>> {
        let text = |text: &'a str| Value::Text(Cow::Borrowed(text));
        match field {
            Field::EventType => Some(text(self.input.event_type)),
            Field::EventVersion => Some(text(self.input.event_version)),
            Field::Source => Some(text(self.input.source)),
            Field::Subject => self.input.subject.map(text),
            Field::Sequence => self.input.sequence.map(|number| Value::Number(number.into())),
            Field::Data(index) => self
                .payload
                .get_or_init(|| look_up(self.input.data, &self.filter.paths))
                .get(index)
                .copied()
                .flatten()
                .map(Value::from_json),
        }
    }
}

impl<'a> Value<'a> {
    /// `json` is checked JSON, so that its first byte tells its type.
    fn from_json(json: &'a str) -> Self {
        match json.as_bytes().first() {
            Some(b'"') => string(json).map_or(Self::Opaque, Self::Text),
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'n') => Self::Null,
            Some(b'[') => Self::Array(json),
            Some(b'-' | b'0'..=b'9') => Self::Number(Decimal::from_json(json)),
            _ => Self::Opaque,
        }
    }

    fn compare(&self, operator: Operator, literal: &Literal) -> bool {
        match operator {
            Operator::Equal => self.equals(literal),
            Operator::NotEqual => !self.equals(literal),
            Operator::Less => self.order(literal).is_some_and(Ordering::is_lt),
            Operator::AtMost => self.order(literal).is_some_and(Ordering::is_le),
            Operator::Greater => self.order(literal).is_some_and(Ordering::is_gt),
            Operator::AtLeast => self.order(literal).is_some_and(Ordering::is_ge),
            Operator::Contains => self.contains(literal),
            Operator::StartsWith => self.texts(literal).is_some_and(|(a, b)| a.starts_with(b)),
            Operator::EndsWith => self.texts(literal).is_some_and(|(a, b)| a.ends_with(b)),
        }
    }

    fn equals(&self, literal: &Literal) -> bool {
        match (self, literal) {
            (Self::Null, Literal::Null) => true,
            (Self::Bool(value), Literal::Bool(wanted)) => value == wanted,
            (Self::Text(value), Literal::Text(wanted)) => value == wanted,
            (Self::Number(value), Literal::Number(wanted)) => *value == wanted.value,
            _ => false,
        }
    }

    /// `None` when the two have no order.
    fn order(&self, literal: &Literal) -> Option<Ordering> {
        match (self, literal) {
            // The order of UTF-8 bytes is that of code points.
            (Self::Text(value), Literal::Text(other)) => Some((**value).cmp(other)),
            (Self::Number(value), Literal::Number(other)) => Some(value.cmp(&other.value)),
            _ => None,
        }
    }

    fn contains(&self, literal: &Literal) -> bool {
        if let Self::Array(json) = self {
            let mut found = false;
            for_each_element(json, |element| {
                found = found || Value::from_json(element).equals(literal);
            });
            return found;
        }
        self.texts(literal).is_some_and(|(text, part)| text.contains(part))
    }

    fn texts<'l>(&'l self, literal: &'l Literal) -> Option<(&'l str, &'l str)> {
        match (self, literal) {
            (Self::Text(value), Literal::Text(other)) => Some((value, other)),
            _ => None,
        }
    }
}
