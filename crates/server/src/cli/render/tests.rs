use crate::cli::{
    output::{
        Format,
        tests::{NOW, samples, shown},
    },
    resource::Resource,
};

fn table<R: Resource>(rows: &[R]) -> String {
    shown(Format::Table, |output| output.many(rows))
}

#[test]
fn endpoints_are_listed_with_short_names_and_plain_enums() {
    assert_eq!(
        table(&[samples::endpoint()]),
        "\
NAME         STATE   TARGET               SIGNATURE          RETRY POLICY  CREATED
orders-hook  active  https://r.example/h  standard-webhooks  quick         3m ago
"
    );
}

#[test]
fn an_empty_list_shows_its_titles() {
    assert_eq!(table::<turnbuckle_proto::v1::Tenant>(&[]), "NAME  DISPLAY NAME  LABELS  CREATED\n");
}

#[test]
fn what_is_not_set_is_a_dash() {
    let text = table(&[turnbuckle_proto::v1::Delivery::default()]);
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["-", "-", "-", "-", "-", "0", "-", "-", "-"]);
}

#[test]
fn retry_policies_show_either_kind_of_backoff() {
    let mut list = samples::retry_policy();
    list.backoff = Some(turnbuckle_proto::v1::retry_policy::Backoff::Delays(
        turnbuckle_proto::v1::DelayList {
            delays: [5, 300].map(|seconds| prost_types::Duration { seconds, nanos: 0 }).into(),
        },
    ));
    let text = table(&[samples::retry_policy(), list]);
    assert!(text.contains("first_delay=300ms factor=2 max_delay=2s"), "{text}");
    assert!(text.contains("5s, 5m"), "{text}");
}

#[test]
fn details_show_a_field_a_line_with_absolute_and_relative_times() {
    let text = shown(Format::Table, |output| output.one(&samples::endpoint()));
    for line in [
        "http url           https://r.example/h",
        "http timeout       15s",
        "labels             a=1,b=2",
        "create time        2026-03-01 11:57:00 UTC (3m ago)",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

#[test]
fn a_stranger_s_text_cannot_steer_the_terminal() {
    let mut tenant = samples::tenant();
    tenant.display_name = "\u{1b}[2Jgone".into();
    assert!(!table(&[tenant]).contains('\u{1b}'));
}

#[test]
fn times_to_come_are_told_from_times_past() {
    let mut delivery = samples::delivery();
    delivery.next_attempt_time =
        Some(prost_types::Timestamp { seconds: NOW.unix_seconds() + 5, nanos: 0 });
    assert!(table(&[delivery]).contains("in 5s"));
}

#[test]
fn an_attempt_without_an_answer_has_no_status() {
    let text = table(&[samples::attempt()]);
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["1", "-", "-", "timed-out", "-", "1.5s", "no", "-"]);
}

#[test]
fn the_time_of_a_deletion_has_a_column_only_when_something_is_deleted() {
    let mut gone = samples::endpoint();
    gone.delete_time = gone.create_time;
    let text = table(&[samples::endpoint(), gone]);
    let ends: Vec<&str> = text.lines().map(|line| &line[line.len() - 7..]).collect();
    assert_eq!(ends[0], "DELETED");
    assert!(ends[1].ends_with(" -") && ends[2].ends_with(" ago"), "{text}");
}
