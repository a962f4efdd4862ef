//! Reads filters. One pass over the text, no backtracking; every refusal says where, what and how.

use super::decimal::Decimal;
use super::expr::{Expr, Field, Literal, Number, Operator, Segment, is_plain_byte};
use super::{Filter, FilterError, filter_limits as limits};
use serde_json::value::RawValue;

type Parsed<T> = Result<T, FilterError>;

const CONDITION: &str = "expected a condition, such as data.total >= 100 or exists(data.id)";
const OPERATOR: &str = "expected an operator: == != < <= > >= in contains startsWith endsWith";
const FIELDS: &str =
    "use event_type, event_version, source, subject, sequence, or data and a key (data.total)";
const LITERAL: &str = "expected a value: a string in double quotes, a number, true, false or null";

pub(super) fn parse(text: &str) -> Parsed<Filter> {
    if text.len() > limits::TEXT_BYTES {
        return Err(too_long());
    }
    let mut parser = Parser { text, at: 0, depth: 0, nodes: 0, paths: Vec::new() };
    parser.skip_space();
    if parser.rest().is_empty() {
        return Ok(Filter { expr: Expr::Constant(true), paths: Vec::new() });
    }
    let expr = parser.any()?;
    match parser.peek() {
        None => Ok(Filter { expr, paths: parser.paths }),
        Some(')') => Err(parser.error("this parenthesis was never opened: remove it")),
        Some(_) => Err(parser.error(&parser.joint_expected("or the end of the filter"))),
    }
}

pub(super) fn too_long() -> FilterError {
    let message = format!(
        "the filter is longer than {} bytes, as given or as printed: split it into several subscriptions",
        limits::TEXT_BYTES
    );
    FilterError { column: 1, message }
}

struct Parser<'t> {
    text: &'t str,
    /// A byte position, always on a character boundary.
    at: usize,
    depth: usize,
    nodes: usize,
    paths: Vec<Box<[Segment]>>,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes `token` and the space after it.
    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
            self.skip_space();
        }
        found
    }

    /// The plain characters ahead: a name, a keyword or part of a number.
    fn word(&self) -> &'t str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| is_plain_byte(*byte)).count();
        &rest[..length]
    }

    fn error(&self, message: &str) -> FilterError {
        self.error_at(self.at, message)
    }

    fn error_at(&self, at: usize, message: &str) -> FilterError {
        let column = self.text[..at].chars().count() + 1;
        FilterError { column, message: message.to_owned() }
    }

    fn count_node(&mut self) -> Parsed<()> {
        self.nodes += 1;
        if self.nodes > limits::NODES {
            let message = format!(
                "more than {} conditions, operators and list values: split the filter into several subscriptions",
                limits::NODES
            );
            return Err(self.error(&message));
        }
        Ok(())
    }

    fn any(&mut self) -> Parsed<Expr> {
        let mut members = Vec::new();
        loop {
            match self.all()? {
                Expr::Any(inner) => members.extend(inner),
                member => members.push(member),
            }
            if !self.take("||") {
                return self.join(members, Expr::Any);
            }
        }
    }

    fn all(&mut self) -> Parsed<Expr> {
        let mut members = Vec::new();
        loop {
            match self.not()? {
                Expr::All(inner) => members.extend(inner),
                member => members.push(member),
            }
            if !self.take("&&") {
                return self.join(members, Expr::All);
            }
        }
    }

    /// One member stands for itself.
    fn join(&mut self, mut members: Vec<Expr>, group: fn(Vec<Expr>) -> Expr) -> Parsed<Expr> {
        if members.len() > 1 {
            self.count_node()?;
            return Ok(group(members));
        }
        members.pop().ok_or_else(|| self.error(CONDITION))
    }

    fn not(&mut self) -> Parsed<Expr> {
        let start = self.at;
        if self.take("!") {
            self.count_node()?;
            let bare = matches!(self.peek(), Some('(' | '!'))
                || matches!(self.word(), "exists" | "true" | "false");
            if !bare && self.peek().is_some() {
                return Err(
                    self.error("put the condition after ! in parentheses: !(data.paid == true)")
                );
            }
            let inner = self.nested(start, Self::not)?;
            return Ok(Expr::Not(Box::new(inner)));
        }
        if self.take("(") {
            let inner = self.nested(start, Self::any)?;
            if self.take(")") {
                return Ok(inner);
            }
            return Err(match self.peek() {
                None => self.error_at(start, "this parenthesis is never closed: add )"),
                Some(_) => self.error(&self.joint_expected("or )")),
            });
        }
        self.condition()
    }

    fn nested(&mut self, start: usize, read: fn(&mut Self) -> Parsed<Expr>) -> Parsed<Expr> {
        if self.depth == limits::DEPTH {
            let message =
                format!("nested deeper than {} levels of ( and !: simplify it", limits::DEPTH);
            return Err(self.error_at(start, &message));
        }
        self.depth += 1;
        let inner = read(self);
        self.depth -= 1;
        inner
    }

    fn condition(&mut self) -> Parsed<Expr> {
        self.count_node()?;
        match self.word() {
            word @ ("true" | "false") => {
                self.take(word);
                Ok(Expr::Constant(word == "true"))
            }
            "exists" => self.exists(),
            "not" => Err(self.error("write ! and parentheses: !(data.paid == true)")),
            _ => {
                let field = self.field()?;
                self.comparison(field)
            }
        }
    }

    fn exists(&mut self) -> Parsed<Expr> {
        self.take("exists");
        if !self.take("(") {
            return Err(self.error("expected ( and a field: exists(data.id)"));
        }
        let field = self.field()?;
        if !self.take(")") {
            return Err(self.error("expected ) after the field: exists(data.id)"));
        }
        Ok(Expr::Exists(field))
    }

    fn comparison(&mut self, field: Field) -> Parsed<Expr> {
        let word = self.word();
        if word == "in" {
            self.take("in");
            return Ok(Expr::In(field, self.list()?));
        }
        let found = Operator::ALL.iter().find(|(text, _)| {
            // A word operator is a whole word, not the beginning of one.
            if word.is_empty() { self.rest().starts_with(text) } else { word == *text }
        });
        let Some((text, operator)) = found else {
            return Err(self.error(&self.operator_expected()));
        };
        self.take(text);
        let start = self.at;
        if self.peek() == Some('[') {
            return Err(
                self.error("a list may only follow in: data.currency in [\"EUR\", \"CHF\"]")
            );
        }
        let literal = self.literal()?;
        self.check_operand(*operator, &literal, start)?;
        Ok(Expr::Compare(field, *operator, literal))
    }

    /// Comparisons that could never hold are mistakes.
    fn check_operand(&self, operator: Operator, literal: &Literal, start: usize) -> Parsed<()> {
        match (operator, literal) {
            (
                Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast,
                Literal::Null | Literal::Bool(_),
            ) => Err(self.error_at(start, "only numbers and strings have an order: use == or !=")),
            (Operator::StartsWith | Operator::EndsWith, literal)
                if !matches!(literal, Literal::Text(_)) =>
            {
                Err(self.error_at(start, "expected a string in double quotes"))
            }
            _ => Ok(()),
        }
    }

    fn operator_expected(&self) -> String {
        let next = match self.peek() {
            Some('=') => "; equality is ==",
            Some(')' | '&' | '|') | None => {
                "; a yes-or-no field is compared too: data.paid == true"
            }
            Some('[') => "; only fields below data have indexes",
            Some('.') => "; only data has fields below it, and one dot stands before each",
            _ => "",
        };
        format!("{OPERATOR}{next}")
    }

    fn joint_expected(&self, ending: &str) -> String {
        let remedy = match (self.peek(), self.word()) {
            (Some('&'), _) | (_, "and" | "AND") => "; and is written &&",
            (Some('|'), _) | (_, "or" | "OR") => "; or is written ||",
            (Some('='), _) => "; equality is written with two signs: ==",
            _ => "",
        };
        format!("expected &&, || {ending}{remedy}")
    }

    fn field(&mut self) -> Parsed<Field> {
        let start = self.at;
        let word = self.word();
        if let Some((name, field)) = Field::ENVELOPE.iter().find(|(name, _)| *name == word) {
            self.take(name);
            return Ok(*field);
        }
        if word == "data" {
            self.at += word.len();
            let path = self.path()?;
            self.skip_space();
            let known = self.paths.iter().position(|known| *known == path);
            return Ok(Field::Data(known.unwrap_or_else(|| {
                self.paths.push(path);
                self.paths.len() - 1
            })));
        }
        Err(self.error_at(start, &self.field_expected(word)))
    }

    fn field_expected(&self, word: &str) -> String {
        let literal = matches!(self.peek(), Some('"' | '\'' | '-' | '0'..='9')) || word == "null";
        if literal {
            "expected a field: it stands on the left, the value on the right".to_owned()
        } else if word.is_empty() {
            CONDITION.to_owned()
        } else {
            format!("there is no such field: {FIELDS}")
        }
    }

    /// Keys and indexes, with no space in front of them.
    fn path(&mut self) -> Parsed<Box<[Segment]>> {
        let mut path = Vec::new();
        while let Some(opening @ ('.' | '[')) = self.peek() {
            if path.len() == limits::PATH_SEGMENTS {
                let message = format!("more than {} steps below data", limits::PATH_SEGMENTS);
                return Err(self.error(&message));
            }
            let start = self.at;
            self.at += 1;
            let segment = if opening == '.' { self.plain_key()? } else { self.bracket()? };
            if path.is_empty() && matches!(segment, Segment::Index(_)) {
                return Err(self.error_at(start, "expected a key first: data.items[0]"));
            }
            path.push(segment);
        }
        if path.is_empty() {
            return Err(self.error("expected a key after data: data.total or data[\"total sum\"]"));
        }
        Ok(path.into())
    }

    fn plain_key(&mut self) -> Parsed<Segment> {
        let key = self.word();
        if key.is_empty() {
            return Err(self.error(
                "expected a key of A-Z a-z 0-9 _ -; write others in brackets: data[\"total sum\"]",
            ));
        }
        self.at += key.len();
        Ok(Segment::Key(key.to_owned()))
    }

    fn bracket(&mut self) -> Parsed<Segment> {
        self.skip_space();
        let segment = if self.peek() == Some('"') {
            Segment::Key(self.string()?)
        } else {
            let word = self.word();
            let digits = word.bytes().all(|byte| byte.is_ascii_digit());
            let index = word.parse().ok().filter(|_| digits).ok_or_else(|| {
                self.error("expected an index from 0 or a key in double quotes: [0] or [\"key\"]")
            })?;
            self.at += word.len();
            Segment::Index(index)
        };
        self.skip_space();
        if self.peek() != Some(']') {
            return Err(self.error("expected ]"));
        }
        self.at += 1;
        Ok(segment)
    }

    fn list(&mut self) -> Parsed<Vec<Literal>> {
        let start = self.at;
        if !self.take("[") {
            return Err(self.error("expected a list after in: data.currency in [\"EUR\", \"CHF\"]"));
        }
        if self.peek() == Some(']') {
            return Err(
                self.error_at(start, "an empty list matches nothing: name at least one value")
            );
        }
        let mut list = Vec::new();
        loop {
            if list.len() == limits::LIST_LENGTH {
                let message = format!(
                    "more than {} values in a list: join two lists with ||",
                    limits::LIST_LENGTH
                );
                return Err(self.error(&message));
            }
            self.count_node()?;
            list.push(self.literal()?);
            if self.take("]") {
                return Ok(list);
            }
            if !self.take(",") {
                return Err(self.error("expected , or ] after a value of the list"));
            }
        }
    }

    fn literal(&mut self) -> Parsed<Literal> {
        match self.peek() {
            Some('"') => {
                let text = self.string()?;
                self.skip_space();
                return Ok(Literal::Text(text));
            }
            Some('\'') => return Err(self.error("strings stand in double quotes: \"EUR\"")),
            Some('-' | '+' | '.' | '0'..='9') => return self.number(),
            _ => {}
        }
        let word = self.word();
        let literal = match word {
            "null" => Literal::Null,
            "true" => Literal::Bool(true),
            "false" => Literal::Bool(false),
            "" => return Err(self.error(LITERAL)),
            _ => {
                let hint = "a field cannot be compared with a field, and text stands in quotes";
                return Err(self.error(&format!("{LITERAL}; {hint}")));
            }
        };
        self.take(word);
        Ok(literal)
    }

    fn number(&mut self) -> Parsed<Literal> {
        let rest = self.rest();
        let part = |byte: &u8| is_plain_byte(*byte) || matches!(byte, b'.' | b'+');
        let text = &rest[..rest.bytes().take_while(|byte| part(byte)).count()];
        if serde_json::from_str::<&RawValue>(text).is_err() {
            return Err(self.error("write numbers as in JSON: 100, -1, 0.5 or 1e3"));
        }
        self.take(text);
        let number = Number { text: text.to_owned(), value: Decimal::from_json(text) };
        Ok(Literal::Number(number))
    }

    /// A JSON string; the space after it is left, because a path may go on.
    fn string(&mut self) -> Parsed<String> {
        let rest = self.rest();
        let mut escaped = false;
        let closing = rest.bytes().skip(1).position(|byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        });
        let Some(closing) = closing else {
            return Err(self.error("this string is never closed: add a double quote"));
        };
        let json = &rest[..closing + 2];
        let text = serde_json::from_str(json).map_err(|_| {
            self.error("write strings as in JSON: \\\" \\\\ \\n \\t \\u00e9 are the escapes, and no control characters")
        })?;
        self.at += json.len();
        Ok(text)
    }
}
