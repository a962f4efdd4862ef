//! Any message as table cells, from its descriptor alone: a new field needs no code here.

use super::{
    error::printable,
    resource::{Column, Style},
    values::humane,
};
use comfy_table::{ContentArrangement, Table, presets};
use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey, ReflectMessage as _, Value,
};
use std::{borrow::Cow, time::Duration};
use turnbuckle_domain::Timestamp;

/// Shown where a value is missing.
const MISSING: &str = "-";

/// A longer payload is named by its size: it would bury the other fields.
const PAYLOAD_SHOWN_MAX: usize = 400;

/// Rows under upper-case titles.
pub(crate) fn list(columns: &[Column], messages: &[DynamicMessage], now: Timestamp) -> String {
    let mut table = plain_table();
    let shown: Vec<&Column> = columns.iter().filter(|column| is_shown(column, messages)).collect();
    table.set_header(shown.iter().map(|column| column.title));
    for message in messages {
        table.add_row(shown.iter().map(|column| cell(column, message, now)));
    }
    finish(&table)
}

/// A column that few rows fill is there only when one does.
fn is_shown(column: &Column, messages: &[DynamicMessage]) -> bool {
    let fills =
        |message: &DynamicMessage| column.paths.iter().any(|path| lookup(message, path).is_some());
    column.style != Style::RareAge || messages.iter().any(fills)
}

/// One message, a field a line.
pub(crate) fn details(message: &DynamicMessage, now: Timestamp) -> String {
    let mut table = plain_table();
    add_details(&mut table, "", message, now);
    finish(&table)
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.force_no_tty();
    table
}

/// Every cell is padded by one space on both sides; the first one would indent the whole table.
fn finish(table: &Table) -> String {
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.strip_prefix(' ').unwrap_or(&line).trim_end());
        text.push('\n');
    }
    text
}

fn add_details(table: &mut Table, prefix: &str, message: &DynamicMessage, now: Timestamp) {
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(|(field, _)| field.number());
    for (field, value) in fields {
        let label = format!("{prefix}{}", field.name().replace('_', " "));
        match value {
            Value::Message(inner) if well_known(inner).is_none() => {
                add_details(table, &format!("{label} "), inner, now);
            }
            Value::Message(inner) if seconds_of(inner, TIMESTAMP).is_some() => {
                let shown = format!("{} ({})", text(&field, value), relative(inner, now));
                table.add_row([label, shown]);
            }
            _ => {
                table.add_row([label, text(&field, value)]);
            }
        }
    }
}

fn cell(column: &Column, message: &DynamicMessage, now: Timestamp) -> String {
    let found = column.paths.iter().find_map(|path| lookup(message, path));
    let Some((field, value)) = found else {
        return MISSING.to_owned();
    };
    let shown = match (column.style, value.as_ref()) {
        (Style::Age | Style::RareAge, Value::Message(time)) => relative(time, now),
        (Style::Short, Value::String(name)) => {
            printable(name.rsplit('/').next().unwrap_or_default())
        }
        (Style::Code, Value::I32(0)) => String::new(),
        (_, value) => text(&field, value),
    };
    if shown.is_empty() { MISSING.to_owned() } else { shown }
}

/// The field at a dotted path: none when a message on the way, or a field with presence, is not set.
fn lookup<'m>(
    message: &'m DynamicMessage,
    path: &str,
) -> Option<(FieldDescriptor, Cow<'m, Value>)> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let field = message.descriptor().get_field_by_name(first)?;
    if field.supports_presence() && !message.has_field(&field) {
        return None;
    }
    let value = message.get_field(&field);
    if rest.is_empty() {
        return Some((field, value));
    }
    match value {
        Cow::Borrowed(Value::Message(inner)) => lookup(inner, rest),
        Cow::Borrowed(_) | Cow::Owned(_) => None,
    }
}

fn text(field: &FieldDescriptor, value: &Value) -> String {
    match value {
        Value::Map(entries) => {
            let mut pairs: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}={}", key_text(key), scalar(&field.kind(), value)))
                .collect();
            pairs.sort_unstable();
            pairs.join(",")
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| scalar(&field.kind(), item)).collect();
            items.join(", ")
        }
        _ => scalar(&field.kind(), value),
    }
}

fn scalar(kind: &Kind, value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::I32(number) => number.to_string(),
        Value::I64(number) => number.to_string(),
        Value::U32(number) => number.to_string(),
        Value::U64(number) => number.to_string(),
        Value::F32(number) => number.to_string(),
        Value::F64(number) => number.to_string(),
        Value::String(text) => printable(text),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if bytes.len() <= PAYLOAD_SHOWN_MAX => printable(text),
            _ => format!("{} bytes", bytes.len()),
        },
        Value::EnumNumber(number) => match kind {
            Kind::Enum(descriptor) => enum_text(descriptor, *number),
            _ => number.to_string(),
        },
        Value::Message(message) => message_text(message),
        Value::List(_) | Value::Map(_) => String::new(),
    }
}

/// `ENDPOINT_STATE_ACTIVE` of `EndpointState` is `active`; the unset value is empty.
fn enum_text(descriptor: &EnumDescriptor, number: i32) -> String {
    let Some(value) = descriptor.get_value(number) else {
        return number.to_string();
    };
    let mut prefix = String::new();
    for c in descriptor.name().chars() {
        if c.is_ascii_uppercase() && !prefix.is_empty() {
            prefix.push('_');
        }
        prefix.push(c.to_ascii_uppercase());
    }
    prefix.push('_');
    let full = value.name();
    let name = full.strip_prefix(&prefix).unwrap_or(full);
    if name == "UNSPECIFIED" { String::new() } else { name.to_ascii_lowercase().replace('_', "-") }
}

fn message_text(message: &DynamicMessage) -> String {
    if let Some(shown) = well_known(message) {
        return shown;
    }
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(|(field, _)| field.number());
    let shown: Vec<String> = fields
        .into_iter()
        .map(|(field, value)| format!("{}={}", field.name(), text(&field, value)))
        .collect();
    shown.join(" ")
}

const TIMESTAMP: &str = "google.protobuf.Timestamp";
const DURATION: &str = "google.protobuf.Duration";

fn well_known(message: &DynamicMessage) -> Option<String> {
    if let Some((seconds, _)) = seconds_of(message, TIMESTAMP) {
        let time = prost_types::Timestamp { seconds, nanos: 0 }.to_string();
        return Some(time.replace('T', " ").replace('Z', " UTC"));
    }
    let (seconds, nanos) = seconds_of(message, DURATION)?;
    let seconds = u64::try_from(seconds).ok()?;
    Some(humane(Duration::new(seconds, u32::try_from(nanos).ok()?)))
}

fn seconds_of(message: &DynamicMessage, full_name: &str) -> Option<(i64, i32)> {
    if message.descriptor().full_name() != full_name {
        return None;
    }
    let seconds = message.get_field_by_name("seconds")?.as_i64()?;
    let nanos = message.get_field_by_name("nanos")?.as_i32()?;
    Some((seconds, nanos))
}

/// `3m ago`, `in 5s`, `now`; one unit is enough to see the order of size.
fn relative(time: &DynamicMessage, now: Timestamp) -> String {
    let Some((seconds, _)) = seconds_of(time, TIMESTAMP) else {
        return String::new();
    };
    let distance = Duration::from_secs(seconds.abs_diff(now.unix_seconds()));
    if distance.is_zero() {
        return "now".to_owned();
    }
    let distance = humane(distance);
    if seconds < now.unix_seconds() { format!("{distance} ago") } else { format!("in {distance}") }
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => printable(key),
    }
}

#[cfg(test)]
mod tests;
