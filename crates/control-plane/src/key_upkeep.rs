//! What is to be done with keys now and then, without a caller: rotations that went wrong are paused,
//! and a re-wrap that was cut short goes on.

use crate::{Dependencies, keyring::KeyEncryption};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    AuditId, ChangeContext, EndpointId, Error, Role, StepAnswers, TenantId, Timestamp,
};

/// Rotations looked at between two reads of their list.
const PAGE: u16 = 500;
/// A re-wrap that nobody has moved on for this long has lost its runner.
const ABANDONED: Duration = Duration::from_secs(30);
/// Who pauses, in the record.
const SUBJECT: &str = "turnbuckle";
/// As what, in the record.
const METHOD: &str = "turnbuckle.v1.KeyRings/PauseRotation";

/// Does it. Any number of processes may.
pub struct KeyUpkeep(Arc<Dependencies>);

impl KeyUpkeep {
    pub(crate) const fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(dependencies)
    }

    /// Pauses every open rotation whose last step was followed by a jump of denials; one that was
    /// paused and resumed is left alone. Answers how many were paused.
    ///
    /// # Errors
    /// When the store does not answer; the next round makes up for it.
    pub async fn judge_rotations(&self) -> Result<usize, Error> {
        let now = self.0.clock.now();
        let (mut after, mut paused) = (None, 0);
        loop {
            let page = self.0.key_usage.open_rotations(now, after, PAGE).await?;
            for (tenant, endpoint) in &page {
                match self.judge(*tenant, *endpoint).await {
                    Ok(was_paused) => paused += usize::from(was_paused),
                    Err(error @ Error::Unavailable { .. }) => return Err(error),
                    // A ring that nobody can read must not keep those behind it from being judged.
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::error!(error, endpoint.id = %endpoint, "a rotation is not judged");
                    }
                }
            }
            match page.last() {
                Some((_, last)) if page.len() == usize::from(PAGE) => after = Some(*last),
                Some(_) | None => return Ok(paused),
            }
        }
    }

    async fn judge(&self, tenant: TenantId, endpoint: EndpointId) -> Result<bool, Error> {
        let mut ring = match self.0.store.key_ring(tenant, endpoint.into()).await {
            Err(Error::NotFound { .. }) => return Ok(false),
            ring => ring?,
        };
        let now = self.0.clock.now();
        let Some(signers) = ring.signers(now).filter(|_| ring.pause.is_none()) else {
            return Ok(false);
        };
        let usage = self.0.key_usage.ring_usage(tenant, endpoint).await?;
        let Some(reason) = StepAnswers::last(&usage, signers).jump() else { return Ok(false) };
        let seen = ring.revision;
        if ring.pause(&reason, now).is_err() {
            // Its time ran out meanwhile.
            return Ok(false);
        }
        let by = self.change(reason, now);
        match self.0.store.update_key_ring(tenant, endpoint.into(), ring, seen, &by).await {
            Ok(ring) => {
                tracing::warn!(endpoint.id = %endpoint, reason = %by.reason, "rotation paused");
                self.0.propagation.applied(ring.revision).await;
                Ok(true)
            }
            // Somebody was faster, and knows what they do.
            Err(Error::Stale { .. } | Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn change(&self, reason: String, now: Timestamp) -> ChangeContext {
        ChangeContext {
            id: AuditId::from_uuid(self.0.ids.uuid()),
            at: now,
            subject: SUBJECT.to_owned(),
            role: Role::Node,
            method: METHOD.to_owned(),
            request_id: self.0.ids.uuid().to_string(),
            reason,
            validate_only: false,
            request: None,
        }
    }

    /// Moves a re-wrap on whose runner has gone. Answers whether there was one.
    ///
    /// # Errors
    /// When the store does not answer; the next round makes up for it.
    pub async fn continue_rewrap(&self) -> Result<bool, Error> {
        let open = self.0.sealed.rewrap_progress().await?;
        let now = self.0.clock.now();
        let primary = self.0.rewrapper.primary_key_id();
        let abandoned = open.is_some_and(|open| {
            open.finished_at.is_none()
                && open.to == primary
                && now.since(open.updated_at) > ABANDONED
        });
        if abandoned {
            KeyEncryption(Arc::clone(&self.0)).run(None).await?;
        }
        Ok(abandoned)
    }
}
