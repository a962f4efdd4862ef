//! `source test`: what the pipeline makes of a sample or a captured request, told step by step.

use crate::unix_now;
use std::collections::BTreeMap;
use turnbuckle_proto::v1::{
    CapturedHeader, CapturedRequest, CreateSourceRequest, ListEventsRequest,
    ListSourcePresetsRequest, Source, SourcePreset, SourceTestOutcome, TestSourceRequest,
    TestSourceResponse, source::Verification, verification_scheme,
};
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{
    PATIENCE, Scene, Server, StoreKind, http_endpoint,
    sender::{self, SECRET, Sender, WRONG_SECRET},
};

on_both_stores!(a_sample_is_stored_only_when_it_is_meant);

/// The steps that stopped a request.
fn stopped(answer: &TestSourceResponse) -> Vec<&str> {
    let failed =
        |step: &&turnbuckle_proto::v1::SourceTestStep| step.outcome() == SourceTestOutcome::Failed;
    answer.steps.iter().filter(failed).map(|step| step.step.as_str()).collect()
}

fn detail<'a>(answer: &'a TestSourceResponse, step: &str) -> &'a str {
    answer.steps.iter().find(|found| found.step == step).map_or("", |found| found.detail.as_str())
}

async fn test(scene: &Scene, request: TestSourceRequest) -> anyhow::Result<TestSourceResponse> {
    Ok(scene.client.source_tests().test_source(request).await?.into_inner())
}

async fn a_sample_is_stored_only_when_it_is_meant(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let receiver = Receiver::start(Script::default()).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let stripe = Sender::of(&scene, &server, "stripe", SECRET).await?;
    let name = stripe.source.name.clone();
    let dry =
        test(&scene, TestSourceRequest { name: name.clone(), ..TestSourceRequest::default() })
            .await?;
    assert!(dry.accepted, "{dry:?}");
    assert_eq!(stopped(&dry), Vec::<&str>::new());
    assert_eq!((dry.http_status, dry.event.as_str()), (202, ""));
    assert!(detail(&dry, "signature").starts_with("the active key"), "{dry:?}");
    assert!(detail(&dry, "time").contains("300 s behind"), "{dry:?}");
    assert!(detail(&dry, "event").contains("type source.test"), "{dry:?}");
    assert!(dry.key.starts_with(&format!("{name}/keys/")), "{dry:?}");
    let list = ListEventsRequest { parent: scene.tenant.clone(), ..ListEventsRequest::default() };
    assert!(scene.client.events().list_events(list).await?.into_inner().events.is_empty());

    let deliver = TestSourceRequest { name, deliver: true, ..TestSourceRequest::default() };
    let meant = test(&scene, deliver).await?;
    assert!(meant.accepted && !meant.event.is_empty(), "{meant:?}");
    let received = receiver.wait_for(1, PATIENCE).await?;
    assert!(String::from_utf8_lossy(&received[0].body).contains("source.test"));
    Ok(())
}

/// What every preset needs, in one source.
fn source_of(preset: &SourcePreset) -> anyhow::Result<CreateSourceRequest> {
    let id = preset.name.trim_start_matches("sourcePresets/").to_owned();
    let texts = preset.scheme_settings.iter().map(|name| (name.clone(), format!("a-{name}")));
    Ok(CreateSourceRequest {
        source_id: id.clone(),
        source: Some(Source {
            verification: Some(Verification::Preset(id)),
            scheme_settings: texts.collect(),
            public_url: "https://hooks.example/in/theirs".to_owned(),
            ..Source::default()
        }),
        generate_secret: holds_a_secret(preset),
        ..CreateSourceRequest::default()
    })
}

/// Whether the source shares a secret with its sender.
fn holds_a_secret(preset: &SourcePreset) -> bool {
    let scheme = preset.scheme.clone().unwrap_or_default();
    let is_public = match scheme.proof {
        Some(verification_scheme::Proof::Signature(proof)) => {
            proof.algorithms.first().is_some_and(|rule| {
                let name = rule.algorithm().as_str_name();
                ["ED25519", "ECDSA", "RSA"].iter().any(|public| name.contains(public))
            })
        }
        Some(verification_scheme::Proof::Jwt(proof)) => {
            !proof.algorithm().as_str_name().contains("_HS")
        }
        None => false,
    };
    !is_public && scheme.key_source.is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sample_of_every_preset_becomes_an_event_or_says_why_there_is_none() -> anyhow::Result<()>
{
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let page = ListSourcePresetsRequest { page_size: 500, ..ListSourcePresetsRequest::default() };
    let presets = scene.client.sources().list_source_presets(page).await?.into_inner();
    assert!(presets.source_presets.len() >= 70, "{}", presets.source_presets.len());
    let mut wrong = BTreeMap::new();
    let mut sampled = 0;
    for preset in &presets.source_presets {
        let mut request = source_of(preset)?;
        request.parent.clone_from(&scene.tenant);
        let source = scene.client.sources().create_source(request).await?.into_inner();
        let request = TestSourceRequest { name: source.name, ..TestSourceRequest::default() };
        let answer = test(&scene, request).await?;
        if holds_a_secret(preset) {
            sampled += 1;
            if !answer.accepted {
                wrong.insert(preset.name.clone(), answer.summary);
            }
        } else {
            assert_eq!(stopped(&answer), ["sample"], "{}", preset.name);
            assert!(answer.summary.contains("captured"), "{}", answer.summary);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(sampled >= 60, "{sampled}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_captured_request_is_explained_without_its_sender() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let stripe = Sender::of(&scene, &server, "stripe", SECRET).await?;
    let body = r#"{"id":"evt_1","type":"charge.succeeded"}"#;
    let try_it = async |secret: &str, at: i64, body: &str, signed: &str| {
        let headers = sender::stripe(secret, at, signed)?;
        let headers = headers
            .into_iter()
            .map(|(name, value)| CapturedHeader { name: name.to_owned(), value });
        let request = CapturedRequest {
            headers: headers.collect(),
            body: body.as_bytes().to_vec(),
            ..CapturedRequest::default()
        };
        let name = stripe.source.name.clone();
        let request = Some(request);
        test(&scene, TestSourceRequest { name, request, ..TestSourceRequest::default() }).await
    };
    let now = unix_now();
    let good = try_it(SECRET, now, body, body).await?;
    assert!(good.accepted, "{good:?}");
    assert!(detail(&good, "event").contains("charge.succeeded"), "{good:?}");
    let old = try_it(SECRET, now - 3600, body, body).await?;
    assert_eq!((stopped(&old), old.http_status), (vec!["time"], 401), "{old:?}");
    assert!(detail(&old, "signature").contains("verifies"), "{old:?}");
    let wrong = try_it(WRONG_SECRET, now, body, body).await?;
    assert_eq!((stopped(&wrong), wrong.http_status), (vec!["signature"], 401), "{wrong:?}");
    let changed = try_it(SECRET, now, &body.replace("evt_1", "evt_2"), body).await?;
    assert_eq!(stopped(&changed), ["signature"], "{changed:?}");
    let untyped = r#"{"id":"evt_3"}"#;
    let untyped = try_it(SECRET, now, untyped, untyped).await?;
    assert_eq!(stopped(&untyped), ["event"], "{untyped:?}");
    // A repeat is told as one.
    stripe.post(&sender::stripe(SECRET, now, body)?, body).await?;
    let again = try_it(SECRET, now, body, body).await?;
    assert!(again.summary.contains("repeat") && again.http_status == 200, "{again:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_without_a_key_and_a_foreign_key_say_what_to_do() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let github = Sender::of(&scene, &server, "github", "").await?;
    let name = github.source.name.clone();
    let none =
        test(&scene, TestSourceRequest { name: name.clone(), ..TestSourceRequest::default() })
            .await?;
    assert_eq!(stopped(&none), ["sample"]);
    assert!(none.summary.contains("Stage one"), "{}", none.summary);
    let key = "tenants/other/sources/x/keys/key_00000000000000000000000000".to_owned();
    let foreign = TestSourceRequest { name, key, ..TestSourceRequest::default() };
    let refused = scene.client.source_tests().test_source(foreign).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    let missing = format!("{}/sources/nobody", scene.tenant);
    let missing = TestSourceRequest { name: missing, ..TestSourceRequest::default() };
    let refused = scene.client.source_tests().test_source(missing).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);
    Ok(())
}
