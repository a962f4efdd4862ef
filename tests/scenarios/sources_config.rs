//! Sources on the command line, against a server for development.

use crate::cli::Person;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_set_up_rotated_and_removed_by_commands() -> anyhow::Result<()> {
    let person = or_skip!(Person::at_a_new_server().await?);
    std::fs::write(person.directory.path().join("secret"), "It's a Secret to Everybody\n")?;
    let made = person.json(&[
        "source",
        "create",
        "github",
        "--preset",
        "github",
        "--secret-file",
        "secret",
    ])?;
    let path = made["ingestPath"].as_str().unwrap_or_default().to_owned();
    assert!(path.starts_with("/in/"), "{made}");
    assert!(!made.to_string().contains("Everybody"), "the secret is shown");
    assert_eq!(made["weaknesses"][0], "SCHEME_WEAKNESS_NO_SIGNED_TIME");

    let listed = person.says(&["source", "list"])?;
    assert!(listed.contains("github") && listed.contains(&path), "{listed}");
    std::fs::write(
        person.directory.path().join("source.yaml"),
        "answers:\n  acceptedStatus: 204\nordering:\n  policy: ORDERING_POLICY_MARK\n  rules:\n  - \
         eventTypes: ['*']\n    subject: data.id\n    sequence: data.version\n",
    )?;
    let changed = person.json(&["source", "update", "github", "--file", "source.yaml"])?;
    assert_eq!(changed["answers"]["acceptedStatus"], 204);
    assert_eq!(changed["ordering"]["rules"][0]["subject"], "data.id");
    assert_eq!(changed["dedup"], made["dedup"]);

    let moved = person.json(&["source", "rotate-path", "github", "--overlap", "1h"])?;
    assert_eq!(moved["previousIngestPath"], path);

    let fresh = person.json(&["key", "stage", "--source", "github"])?;
    assert!(fresh["secret"].as_str().is_some_and(|secret| secret.len() > 30), "{fresh}");
    person.says(&["key", "activate", "--source", "github"])?;
    let status = person.says(&["key", "status", "--source", "github"])?;
    assert!(status.contains("active") && status.contains("retiring"), "{status}");
    let name = fresh["name"].as_str().unwrap_or_default();
    let id = name.rsplit('/').next().unwrap_or_default();
    person.says(&["key", "revoke", "--source", "github", id, "--reason", "leaked"])?;
    let (exit, _) =
        person.fails(&["key", "revoke", "--source", "github", id, "--reason", "again"])?;
    assert_eq!(exit, Some(4));

    let off = person.json(&["source", "disable", "github", "--reason", "they flood us"])?;
    assert_eq!(
        (&off["state"], &off["disableReason"]),
        (&"SOURCE_STATE_DISABLED".into(), &"they flood us".into())
    );
    assert!(person.says(&["source", "list"])?.to_lowercase().contains("disabled"));
    assert_eq!(person.json(&["source", "enable", "github"])?["state"], "SOURCE_STATE_ACTIVE");

    person.says(&["source", "delete", "github"])?;
    assert_eq!(person.fails(&["source", "get", "github"])?.0, Some(3));
    assert!(person.says(&["source", "list", "--show-deleted"])?.contains("github"));
    let back = person.json(&["source", "undelete", "github"])?;
    assert_eq!(back["ingestPath"], moved["ingestPath"]);
    person.says(&["source", "delete", "github"])?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn presets_are_shown_and_faults_are_told_by_field() -> anyhow::Result<()> {
    let person = or_skip!(Person::at_a_new_server().await?);
    let listed = person.says(&["source", "presets"])?;
    for preset in ["github", "stripe", "slack", "standard-webhooks"] {
        assert!(listed.contains(preset), "{preset} is not in {listed}");
    }
    let stripe = person.json(&["source", "presets", "stripe"])?;
    assert_eq!(stripe["name"], "sourcePresets/stripe");
    // A preset's scheme is the beginning of a scheme of one's own.
    let own = serde_json::json!({ "scheme": stripe["scheme"], "displayName": "Like Stripe" });
    std::fs::write(person.directory.path().join("own.json"), own.to_string())?;
    let made =
        person.json(&["source", "create", "own", "--file", "own.json", "--generate-secret"])?;
    assert!(made["verificationSecret"].as_str().is_some_and(|secret| secret.len() > 30));
    let again = person.json(&["source", "create", "own", "--file", "own.json", "--upsert"])?;
    assert_eq!(again["etag"], made["etag"], "the same again is a change");

    std::fs::write(
        person.directory.path().join("bad.yaml"),
        "dedup: {window: 10s}\nlimits: {maxBodyBytes: 1}\npublicUrl: nowhere\n",
    )?;
    let (exit, told) =
        person.fails(&["source", "create", "bad", "--preset", "stripe", "--file", "bad.yaml"])?;
    assert_eq!(exit, Some(2));
    for field in ["source.limits.max_body_bytes", "source.public_url", "source.dedup.window"] {
        assert!(told.contains(field), "{field} is not in {told}");
    }
    let (exit, told) = person.fails(&["source", "create", "bad", "--preset", "strype"])?;
    assert!(exit == Some(2) && told.contains("source.preset: is \"strype\""), "{told}");
    Ok(())
}
