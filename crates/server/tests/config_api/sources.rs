//! Sources and their keys over gRPC.

use super::*;

sentences!(
    a_source_is_made_from_a_preset_changed_and_deleted,
    presets_are_listed_and_shown,
    a_fresh_secret_is_shown_once_and_a_given_one_never,
    a_scheme_of_ones_own_is_checked_as_a_whole,
    an_upsert_of_a_source_creates_once_and_then_changes_nothing,
    the_keys_of_a_source_are_staged_activated_and_revoked,
    keys_that_do_not_fit_the_scheme_are_refused,
    a_scheme_that_the_keys_do_not_fit_is_refused,
    a_path_changes_with_an_overlap,
    only_those_who_may_change_sources_do,
    the_record_of_a_source_shows_no_secret,
);

impl Scene {
    fn source(&self, id: &str) -> String {
        format!("{}/sources/{id}", self.parent)
    }

    async fn create_source(
        &self,
        id: &str,
        source: v1::Source,
        secret: &str,
    ) -> Result<v1::Source, tonic::Status> {
        let request = v1::CreateSourceRequest {
            parent: self.parent.clone(),
            source_id: id.to_owned(),
            source: Some(source),
            secret: secret.to_owned(),
            ..Default::default()
        };
        Ok(self.client.sources().create_source(request).await?.into_inner())
    }

    async fn source_ring(&self, id: &str) -> v1::KeyRing {
        let name = format!("{}/keyRing", self.source(id));
        let request = v1::GetKeyRingRequest { name };
        self.client.keys().get_key_ring(request).await.unwrap().into_inner()
    }

    async fn stage(&self, id: &str, secret: &str) -> Result<v1::Key, tonic::Status> {
        let request = v1::StageKeyRequest {
            parent: self.source(id),
            etag: self.source_ring(id).await.etag,
            secret: secret.to_owned(),
            ..Default::default()
        };
        Ok(self.client.keys().stage_key(request).await?.into_inner())
    }
}

fn preset(name: &str) -> v1::Source {
    v1::Source {
        verification: Some(v1::source::Verification::Preset(name.to_owned())),
        ..Default::default()
    }
}

/// A scheme with one algorithm over the body.
fn own(algorithm: v1::VerificationAlgorithm, key: v1::KeyEncoding) -> v1::Source {
    let token = v1::template_part::Part::Token(v1::TemplateToken::Body.into());
    signed(algorithm, key, vec![v1::TemplatePart { part: Some(token) }])
}

/// A scheme with one algorithm over these parts.
fn signed(
    algorithm: v1::VerificationAlgorithm,
    key: v1::KeyEncoding,
    template: Vec<v1::TemplatePart>,
) -> v1::Source {
    let header = v1::locator::At::Header("x-acme-signature".to_owned());
    let key = v1::KeyRule { encoding: key.into(), min_bytes: 16, ..Default::default() };
    let proof = v1::SignatureProof {
        sources: vec![v1::Locator { at: Some(header) }],
        encoding: v1::SignatureEncoding::Base64.into(),
        algorithms: vec![v1::AlgorithmRule {
            algorithm: algorithm.into(),
            key: Some(key),
            ..Default::default()
        }],
        template,
        ..Default::default()
    };
    let scheme = v1::VerificationScheme {
        proof: Some(v1::verification_scheme::Proof::Signature(proof)),
        ..Default::default()
    };
    v1::Source {
        verification: Some(v1::source::Verification::Scheme(scheme)),
        ..Default::default()
    }
}

fn states(ring: &v1::KeyRing) -> Vec<v1::KeyState> {
    ring.keys.iter().map(v1::Key::state).collect()
}

mod scenes {
    use super::*;

    pub(super) async fn a_source_is_made_from_a_preset_changed_and_deleted(scene: &Scene) {
        let made = scene.create_source("github", preset("github"), "hunter2hunter2").await.unwrap();
        assert_eq!(made.name, scene.source("github"));
        assert!(made.ingest_path.starts_with("/in/") && made.ingest_path.len() == 30);
        assert_eq!(made.verification_secret, "");
        let part = made.event.as_ref().unwrap().event_type[0].parts[0].part.clone();
        assert_eq!(part, Some(v1::value_part::Part::Header("x-github-event".to_owned())));
        let dedup = made.dedup.clone().unwrap();
        assert_eq!(dedup.window.unwrap().seconds, 3 * 86_400);

        let mut sources = scene.client.sources();
        let read = v1::GetSourceRequest { name: made.name.clone(), ..Default::default() };
        assert_eq!(sources.get_source(read.clone()).await.unwrap().into_inner(), made);
        let list = v1::ListSourcesRequest { parent: scene.parent.clone(), ..Default::default() };
        let listed = sources.list_sources(list).await.unwrap().into_inner();
        assert_eq!(listed.sources, std::slice::from_ref(&made));

        let answers = v1::AnswerSettings { accepted_status: 204, ..Default::default() };
        let change = v1::UpdateSourceRequest {
            source: Some(v1::Source {
                name: made.name.clone(),
                etag: made.etag.clone(),
                answers: Some(answers),
                ..Default::default()
            }),
            ..Default::default()
        };
        let changed = sources.update_source(change.clone()).await.unwrap().into_inner();
        assert_eq!(changed.answers.unwrap().accepted_status, 204);
        assert_eq!((changed.dedup, changed.ingest_path), (Some(dedup), made.ingest_path));
        assert_eq!(sources.update_source(change).await.unwrap_err().code(), Code::Aborted);

        let tenant = v1::DeleteTenantRequest { name: scene.parent.clone(), etag: String::new() };
        let refused = scene.client.tenants().delete_tenant(tenant).await.unwrap_err();
        assert_eq!(ApiError::new(&refused).reason.as_deref(), Some("RESOURCE_IN_USE"));
        let delete = v1::DeleteSourceRequest { name: made.name, etag: changed.etag };
        sources.delete_source(delete).await.unwrap();
        assert_eq!(sources.get_source(read).await.unwrap_err().code(), Code::NotFound);
    }

    pub(super) async fn presets_are_listed_and_shown(scene: &Scene) {
        let mut sources = scene.client.sources();
        let (mut names, mut page_token) = (Vec::new(), String::new());
        loop {
            let request = v1::ListSourcePresetsRequest { page_size: 20, page_token };
            let page = sources.list_source_presets(request).await.unwrap().into_inner();
            assert!(page.source_presets.len() <= 20);
            names.extend(page.source_presets.into_iter().map(|preset| preset.name));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        assert!(names.len() >= 40 && names.is_sorted(), "{names:?}");
        for name in names {
            let request = v1::GetSourcePresetRequest { name: name.clone() };
            let shown = sources.get_source_preset(request).await.unwrap().into_inner();
            assert!(shown.scheme.is_some() && !shown.title.is_empty(), "{name}");
            // What is shown can be used: the scheme, the groups and all.
            let id = name.strip_prefix("sourcePresets/").unwrap();
            let texts = shown.scheme_settings.into_iter().map(|name| (name, "x".to_owned()));
            let by_scheme = v1::Source {
                verification: shown.scheme.map(v1::source::Verification::Scheme),
                scheme_settings: texts.collect(),
                event: shown.event,
                dedup: shown.dedup,
                answers: shown.answers,
                ..Default::default()
            };
            let made = scene.create_source(&format!("own-{id}"), by_scheme.clone(), "").await;
            let made = made.unwrap();
            let by_name = v1::Source { scheme_settings: by_scheme.scheme_settings, ..preset(id) };
            let by_name = scene.create_source(&format!("by-{id}"), by_name, "").await.unwrap();
            assert_eq!((made.event, made.dedup), (by_name.event, by_name.dedup), "{name}");
            assert_eq!(made.weaknesses, by_name.weaknesses);
        }
        let request = v1::GetSourcePresetRequest { name: "sourcePresets/nobody".to_owned() };
        assert_eq!(sources.get_source_preset(request).await.unwrap_err().code(), Code::NotFound);
    }

    pub(super) async fn a_fresh_secret_is_shown_once_and_a_given_one_never(scene: &Scene) {
        let request = v1::CreateSourceRequest {
            parent: scene.parent.clone(),
            source_id: "standard".to_owned(),
            source: Some(preset("standard-webhooks")),
            generate_secret: true,
            ..Default::default()
        };
        let dry = v1::CreateSourceRequest { validate_only: true, ..request.clone() };
        let dry = scene.client.sources().create_source(dry).await.unwrap().into_inner();
        assert_eq!((dry.verification_secret, dry.ingest_path), (String::new(), String::new()));
        let made = scene.client.sources().create_source(request).await.unwrap().into_inner();
        assert!(made.verification_secret.starts_with("whsec_"), "{}", made.verification_secret);
        let read = v1::GetSourceRequest { name: made.name.clone(), ..Default::default() };
        let shown = scene.client.sources().get_source(read).await.unwrap().into_inner();
        assert_eq!(shown.verification_secret, "");
        let ring = scene.source_ring("standard").await;
        assert_eq!(states(&ring), [v1::KeyState::Active]);
        assert_eq!(ring.keys[0].algorithm(), v1::KeyAlgorithm::SharedSecret);
        assert!(!format!("{ring:?}").contains(&made.verification_secret));
        // The same text is the same key.
        let again = scene.stage("standard", &made.verification_secret).await.unwrap_err();
        assert!(again.message().contains("already on the ring"), "{again}");
    }

    pub(super) async fn a_scheme_of_ones_own_is_checked_as_a_whole(scene: &Scene) {
        use v1::{KeyEncoding, VerificationAlgorithm as Algorithm};
        let good = own(Algorithm::HmacSha256, KeyEncoding::Utf8);
        let made = scene.create_source("own", good, "").await.unwrap();
        let unsaid = v1::BodyForm::Unspecified as i32;
        assert!(matches!(
            made.verification,
            Some(v1::source::Verification::Scheme(scheme)) if scheme.body_form == unsaid
        ));
        let mut bad = signed(Algorithm::HmacSha256, KeyEncoding::Utf8, Vec::new());
        bad.public_url = "nowhere".to_owned();
        let refused = scene.create_source("bad", bad, "").await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        let fields: Vec<String> =
            ApiError::new(&refused).violations.into_iter().map(|found| found.field).collect();
        assert!(fields.iter().any(|field| field.starts_with("source.scheme.signature.template")));
        assert!(fields.contains(&"source.public_url".to_owned()), "{fields:?}");
    }

    pub(super) async fn an_upsert_of_a_source_creates_once_and_then_changes_nothing(scene: &Scene) {
        let wanted = v1::Source { name: scene.source("shop"), ..preset("shopify") };
        let request = v1::UpdateSourceRequest {
            source: Some(wanted),
            update_mask: Some(prost_types::FieldMask { paths: vec!["*".to_owned()] }),
            allow_missing: true,
            ..Default::default()
        };
        let made =
            scene.client.sources().update_source(request.clone()).await.unwrap().into_inner();
        let entries = scene.head().await.count;
        for _ in 0..3 {
            let again = scene.client.sources().update_source(request.clone()).await;
            assert_eq!(again.unwrap().into_inner(), made);
        }
        assert_eq!(scene.head().await.count, entries);
        assert!(scene.source_ring("shop").await.keys.is_empty());
    }

    pub(super) async fn the_keys_of_a_source_are_staged_activated_and_revoked(scene: &Scene) {
        use v1::KeyState::{Active, Retiring, Revoked, Staged};
        scene.create_source("github", preset("github"), "first-secret-of-16").await.unwrap();
        let parent = scene.source("github");
        let mut keys = scene.client.keys();
        let staged = scene.stage("github", "second-secret-of-16").await.unwrap();
        assert_eq!(staged.secret, "", "who gave a secret knows it");
        assert_eq!(states(&scene.source_ring("github").await), [Staged, Active]);
        let etag = scene.source_ring("github").await.etag;
        let stale = v1::ActivateKeyRequest {
            parent: parent.clone(),
            etag: "\"1\"".to_owned(),
            ..Default::default()
        };
        assert_eq!(keys.activate_key(stale.clone()).await.unwrap_err().code(), Code::Aborted);
        let ring = keys.activate_key(v1::ActivateKeyRequest { etag, ..stale }).await.unwrap();
        let ring = ring.into_inner();
        assert_eq!(states(&ring), [Active, Retiring]);
        let retires = ring.keys[1].retire_time.unwrap().seconds;
        let active = ring.keys[0].activate_time.unwrap().seconds;
        assert_eq!(retires - active, 72 * 3600);
        let rotate = v1::RotateKeyRequest {
            parent: parent.clone(),
            etag: ring.etag,
            force: true,
            ..Default::default()
        };
        let fresh = keys.rotate_key(rotate).await.unwrap().into_inner();
        assert!(fresh.secret.len() >= 32, "a fresh secret is shown");
        let ring = scene.source_ring("github").await;
        let revoke = v1::RevokeKeyRequest {
            name: fresh.name,
            etag: ring.etag,
            reason: "leaked".to_owned(),
            ..Default::default()
        };
        let ring = keys.revoke_key(revoke).await.unwrap().into_inner();
        assert!(states(&ring).contains(&Revoked) && !states(&ring).contains(&Active));
        let rollback = v1::RollbackKeyRequest { parent, etag: ring.etag, ..Default::default() };
        let ring = keys.rollback_key(rollback).await.unwrap().into_inner();
        assert_eq!(states(&ring)[0], Active);
    }

    pub(super) async fn keys_that_do_not_fit_the_scheme_are_refused(scene: &Scene) {
        use v1::{KeyEncoding, VerificationAlgorithm as Algorithm};
        let source = own(Algorithm::EcdsaP256Sha256, KeyEncoding::SpkiBase64);
        scene.create_source("public", source, "").await.unwrap();
        for (bad, why) in [("hunter2!", "not"), ("aHVudGVyMg==", "no usable public key")] {
            let refused = scene.stage("public", bad).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument);
            let text = format!("{refused:?}");
            assert!(text.contains(why) && !text.contains(bad), "{text}");
        }
        let refused = scene.stage("public", "").await.unwrap_err();
        assert!(refused.message().contains("public key"), "{refused}");
        let spki = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1fl\
                    pVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==";
        let staged = scene.stage("public", spki).await.unwrap();
        assert_eq!(staged.algorithm(), v1::KeyAlgorithm::PublicKey);
        assert_eq!(staged.public_key, spki);
        let request = v1::StageKeyRequest {
            parent: scene.source("public"),
            etag: scene.source_ring("public").await.etag,
            algorithm: v1::KeyAlgorithm::HmacSha256.into(),
            ..Default::default()
        };
        let refused = scene.client.keys().stage_key(request).await.unwrap_err();
        assert!(refused.message().contains("is for endpoints"), "{refused}");
    }

    pub(super) async fn a_scheme_that_the_keys_do_not_fit_is_refused(scene: &Scene) {
        use v1::{KeyEncoding, VerificationAlgorithm as Algorithm};
        let made = own(Algorithm::HmacSha256, KeyEncoding::Utf8);
        scene.create_source("own", made, "no hex, but long enough").await.unwrap();
        let change = |source: v1::Source| v1::UpdateSourceRequest {
            source: Some(v1::Source { name: scene.source("own"), ..source }),
            ..Default::default()
        };
        let mut sources = scene.client.sources();
        let hex = change(own(Algorithm::HmacSha256, KeyEncoding::Hex));
        let refused = sources.update_source(hex).await.unwrap_err();
        let reason = ApiError::new(&refused).reason;
        assert_eq!(reason.as_deref(), Some("VERIFICATION_SCHEME_MISMATCH"));
        let text = change(own(Algorithm::HmacSha512, KeyEncoding::Utf8));
        sources.update_source(text).await.unwrap();
    }

    pub(super) async fn a_path_changes_with_an_overlap(scene: &Scene) {
        let made = scene.create_source("github", preset("github"), "").await.unwrap();
        let mut sources = scene.client.sources();
        let request = v1::RotateIngestPathRequest { name: made.name, ..Default::default() };
        let rotated = sources.rotate_ingest_path(request.clone()).await.unwrap().into_inner();
        assert_ne!(rotated.ingest_path, made.ingest_path);
        assert_eq!(rotated.previous_ingest_path, made.ingest_path);
        assert!(rotated.previous_ingest_path_expire_time.is_some());
        let overlap = Some(prost_types::Duration::default());
        let at_once = v1::RotateIngestPathRequest { overlap, ..request };
        let at_once = sources.rotate_ingest_path(at_once).await.unwrap().into_inner();
        assert_ne!(at_once.ingest_path, rotated.ingest_path);
        assert_eq!(at_once.previous_ingest_path, "");
    }

    pub(super) async fn only_those_who_may_change_sources_do(scene: &Scene) {
        let made = scene.create_source("github", preset("github"), "").await.unwrap();
        let read = v1::GetSourceRequest { name: made.name.clone(), ..Default::default() };
        let rotate = v1::RotateIngestPathRequest { name: made.name, ..Default::default() };
        let stage = v1::StageKeyRequest {
            parent: scene.source("github"),
            etag: made.etag,
            ..Default::default()
        };
        for (role, tenant, may_read) in [
            (Role::Viewer, scene.tenant, true),
            (Role::Publisher, scene.tenant, true),
            (Role::Operator, "elsewhere", false),
        ] {
            let other = scene.as_other(role, tenant).await;
            let seen = other.sources().get_source(read.clone()).await;
            assert_eq!(seen.is_ok(), may_read, "{role:?}");
            let rotated = other.sources().rotate_ingest_path(rotate.clone()).await.unwrap_err();
            let staged = other.keys().stage_key(stage.clone()).await.unwrap_err();
            for refused in [rotated, staged] {
                assert_eq!(refused.code(), Code::PermissionDenied, "{role:?}");
            }
        }
    }

    pub(super) async fn the_record_of_a_source_shows_no_secret(scene: &Scene) {
        let source = v1::Source {
            public_url: "https://in.test/?k=marker-url".to_owned(),
            ..preset("square")
        };
        let made = scene.create_source("square", source, "marker-secret-of-16").await.unwrap();
        scene.stage("square", "marker-second-of-16").await.unwrap();
        let record = scene.record().await;
        assert_eq!(record[0].resource, format!("{}/keyRing", made.name));
        assert_eq!(record[1].method, "turnbuckle.v1.Sources/CreateSource");
        let text = format!("{record:?}");
        let token = made.ingest_path.strip_prefix("/in/").unwrap();
        assert!(!text.contains("marker-") && !text.contains(token), "{text}");
    }
}
