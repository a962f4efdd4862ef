//! `turnbuckle key status` and `turnbuckle key test`.

use super::{
    error::printable,
    global::Session,
    key::{RingArgs, TestArgs},
    names::{self, Collection},
    output::Format,
};
use turnbuckle_proto::v1;

pub(super) async fn show(args: RingArgs, session: &mut Session) -> anyhow::Result<()> {
    let parent = args.owner.name(&session.parent)?;
    let request = v1::GetKeyRingStatusRequest { name: format!("{parent}/keyRing") };
    let status = session.client.key_rings().get_key_ring_status(request).await?.into_inner();
    match session.output.format() {
        Format::Name => session.output.many(&status.keys),
        Format::Json | Format::Yaml => session.output.one(&status),
        Format::Table => {
            session.output.many(&status.keys)?;
            session.output.raw(words(&status).as_bytes())
        }
    }
}

pub(super) async fn test(args: TestArgs, session: &mut Session) -> anyhow::Result<()> {
    let parent = Collection::Endpoints.name(&session.parent, &args.endpoint)?;
    let key = args.key.map(|key| names::key(&parent, &key)).transpose()?.unwrap_or_default();
    let request = v1::TestKeyRequest { parent, key };
    let answer = session.client.key_tests().test_key(request).await?.into_inner();
    session.output.one(&answer)?;
    anyhow::ensure!(answer.accepted, "the test was not accepted: {}", printable(&answer.summary));
    Ok(())
}

/// What the status says, a line each. Reasons of pauses are words of people: shown harmlessly.
fn words(status: &v1::KeyRingStatus) -> String {
    let mut lines = vec![String::new(), status.summary.clone()];
    if let Some(step) = &status.step {
        let counts = |counts: Option<v1::AnswerCounts>| {
            let v1::AnswerCounts { accepted, denied, other } = counts.unwrap_or_default();
            format!("{accepted} accepted, {denied} denied (401, 403), {other} other")
        };
        lines.push(format!("Answers since the last step: {}.", counts(step.after)));
        lines.push(format!("Answers on the days before it: {}.", counts(step.before)));
    }
    for node in &status.nodes {
        lines.push(format!("In use: revision {} on {}.", node.applied_revision, node.node));
    }
    let safe = if status.safe_to_retire { "yes" } else { "no" };
    lines.push(format!("Safe to retire the old key: {safe}."));
    lines.extend(status.safe_to_retire_reasons.iter().map(|reason| format!("  {reason}")));
    lines.push("Next:".to_owned());
    lines.extend(status.next_steps.iter().map(|step| format!("  {step}")));
    lines.iter().map(|line| format!("{}\n", printable(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_from_top_to_bottom_and_shows_no_control_characters() {
        let status = v1::KeyRingStatus {
            summary: "key_1 signs\u{1b}[31m alone.".to_owned(),
            step: Some(v1::StepAnswers {
                after: Some(v1::AnswerCounts { accepted: 4, denied: 1, other: 2 }),
                ..Default::default()
            }),
            safe_to_retire_reasons: vec!["No key is retiring.".to_owned()],
            next_steps: vec!["Nothing.".to_owned()],
            ..Default::default()
        };
        let text = words(&status);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        for line in [
            "Answers since the last step: 4 accepted, 1 denied (401, 403), 2 other.",
            "Answers on the days before it: 0 accepted, 0 denied (401, 403), 0 other.",
            "Safe to retire the old key: no.\n  No key is retiring.\nNext:\n  Nothing.\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
