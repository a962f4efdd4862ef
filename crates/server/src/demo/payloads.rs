//! Realistic events: what real producers send, with what breaks careless pipelines.

use bytes::Bytes;

/// The registered event types.
pub(super) const TYPES: [&str; 4] =
    ["order.paid", "order.shipped", "payment.captured", "job.finished"];

/// An event the demo will publish.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) event_id: String,
    pub(super) event_type: &'static str,
    pub(super) subject: String,
    pub(super) sequence: Option<i64>,
    pub(super) data: Bytes,
}

/// Twelve events in two acts, with the key rotation between them. Payloads have 0.3 to 20 kB.
pub(super) fn acts() -> [Vec<Planned>; 2] {
    let first = vec![
        order("order.paid", 1001, 3),
        payment(5001),
        job(901, 4),
        order("order.paid", 1002, 120),
        payment(5002),
        job(902, 60),
    ];
    let second = vec![
        order("order.shipped", 1001, 3),
        job(903, 225),
        payment(5003),
        order("order.shipped", 1002, 40),
        payment(5004),
        job(904, 12),
    ];
    [first, second]
}

/// Odd spacing, an emoji, a line break and numbers beyond 2^53, which a parser in between would
/// change.
fn order(event_type: &'static str, number: u32, lines: u32) -> Planned {
    let mut data = format!(
        "{{ \"order_id\" : 90071992547{number}93,\n  \"customer\":{{\"name\":\"Zoë Ødegård 🎉\" ,\
         \"email\":\"zoe@example.org\"}},\n\t\"currency\": \"EUR\", \"total\":1234.50,\n  \"lines\" :["
    );
    for line in 0..lines {
        let comma = if line == 0 { "" } else { " ," };
        data.push_str(&format!(
            "{comma}\n    {{\"sku\":\"SKU-{number}-{line:04}\",\"quantity\" : {}, \
                 \"unit_price\":1.10, \"title\":\"Teeglas ☕ №{line}\",\"gift\":false}}",
            line % 5 + 1
        ));
    }
    data.push_str("\n  ],\"note\":\"Bitte \\\"vor 9\\\" liefern \\u2603\"\n}");
    Planned {
        event_id: format!("{}-{number}", event_type.replace('.', "-")),
        event_type,
        subject: format!("orders/{number}"),
        sequence: Some(if event_type == "order.paid" { 1 } else { 2 }),
        data: data.into(),
    }
}

fn payment(number: u32) -> Planned {
    let data = format!(
        "{{\"payment_id\":9223372036854{number}07,\"amount_minor\":4999,\"currency\":\"JPY\",\
         \"exponent\":1e-2,\"method\":{{\"kind\":\"card\",\"last4\":\"4242\",\"brand\":\"visa\"}},\
         \"risk\":{{\"score\":0.030000,\"signals\":[]}},\"captured\":true,\"reference\":null,\"country\":\"JP\",\
         \"descriptor\":\"ACME*TEA 🍵\",\"metadata\":{{\"cart\":\"c-{number}\",\"\":\"empty key\"}}}}"
    );
    Planned {
        event_id: format!("payment-captured-{number}"),
        event_type: "payment.captured",
        subject: format!("payments/{number}"),
        sequence: None,
        data: data.into(),
    }
}

fn job(number: u32, lines: u32) -> Planned {
    let mut data = format!(
        "{{\"job\":\"resize-{number}\",\"exit_code\":0,\"started_ns\":1772366400123456{number},\
         \"artifacts\":[{{\"path\":\"out/{number}.webp\",\"bytes\":18446744073709551615}}],\"log\":["
    );
    for line in 0..lines {
        let comma = if line == 0 { "" } else { "," };
        data.push_str(&format!(
            "{comma}\"{line:05} INFO worker-{} tile x={} y={} done in {}.{:03} ms ✅ cache=miss \
                 queue=images\"",
            line % 7,
            line * 17 % 640,
            line * 29 % 480,
            line % 40,
            line * 37 % 1000
        ));
    }
    data.push_str("]}");
    Planned {
        event_id: format!("job-finished-{number}"),
        event_type: "job.finished",
        subject: format!("jobs/{number}"),
        sequence: None,
        data: data.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn payloads_are_valid_json_of_the_promised_sizes() {
        let all: Vec<Planned> = acts().concat();
        for event in &all {
            serde_json::from_slice::<&serde_json::value::RawValue>(&event.data).unwrap();
            assert!(
                (300..=20_480).contains(&event.data.len()),
                "{} {}",
                event.event_id,
                event.data.len()
            );
            assert!(TYPES.contains(&event.event_type));
        }
        let longest = all.iter().map(|event| event.data.len()).max().unwrap();
        let shortest = all.iter().map(|event| event.data.len()).min().unwrap();
        assert!(longest > 15_000 && shortest < 600, "{shortest} to {longest}");
    }

    #[test]
    fn a_parser_in_between_would_be_noticed() {
        for event in acts().concat() {
            let value: serde_json::Value = serde_json::from_slice(&event.data).unwrap();
            assert_ne!(serde_json::to_vec(&value).unwrap(), event.data, "{}", event.event_id);
        }
    }

    #[test]
    fn ids_are_unique() {
        let ids: HashSet<String> =
            acts().concat().into_iter().map(|event| event.event_id).collect();
        assert_eq!(ids.len(), 12);
    }
}
