//! Where a rotation stands, in plain words, and whether the key before may go.

mod incoming;

use crate::{
    EndpointId, Key, KeyId, KeyRing, KeyState, KeyTraffic, RefusedResource, ResourceKind, Revision,
    RingUsage, Signers, StepAnswers, Timestamp, node_limits, rotation_limits,
};
use async_trait::async_trait;

/// The configuration that one process uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeApplied {
    /// What the process is called.
    pub node: String,
    /// The revision that it uses.
    pub revision: Revision,
    /// When it said so.
    pub at: Timestamp,
    /// What it could not take over up to there.
    pub refused: Vec<RefusedResource>,
}

impl NodeApplied {
    /// The same without the names of processes, for callers who may not know how the platform is
    /// built (I12): a tenant sees how many do not have its keys yet, and not which.
    #[must_use]
    pub fn numbered(nodes: Vec<Self>) -> Vec<Self> {
        let node = |number: usize| format!("delivery node {}", number + 1);
        let nodes = nodes.into_iter().enumerate();
        nodes.map(|(number, applied)| Self { node: node(number), ..applied }).collect()
    }

    /// Whether it spoke not long ago.
    #[must_use]
    pub fn is_alive(&self, now: Timestamp) -> bool {
        now.since(self.at) < rotation_limits::NODE_ALIVE
    }

    /// Why it goes on with an earlier state of the ring of this endpoint, whatever its revision; none
    /// when it does not.
    #[must_use]
    pub fn refuses_ring(&self, owner: EndpointId) -> Option<String> {
        let uid = owner.to_string();
        let is_ring = |refused: &&RefusedResource| {
            refused.kind == ResourceKind::KeyRing.as_str() && refused.uid == uid
        };
        if let Some(refused) = self.refused.iter().find(is_ring) {
            return Some(refused.reason.clone());
        }
        let is_full = self.refused.len() >= node_limits::REFUSED_MAX;
        is_full.then(|| {
            "it refuses more than a report holds, so that the ring may be among it".to_owned()
        })
    }

    /// Whether it is alive and does not use this revision yet.
    #[must_use]
    pub fn lags(&self, revision: Revision, now: Timestamp) -> bool {
        self.revision < revision && self.is_alive(now)
    }
}

/// Which processes use which revision. A process knows at least about itself.
#[async_trait]
pub trait AppliedRevisions: Send + Sync + 'static {
    /// The data planes that are known; none when this process hears of no data plane.
    async fn applied_revisions(&self) -> Result<Vec<NodeApplied>, crate::StoreError>;

    /// How many reports came to this process. Others may come to other processes.
    fn reports_heard(&self) -> u64 {
        0
    }

    /// Waits until more reports than that have come; for ever where none come here.
    async fn heard_more_than(&self, count: u64) {
        let _ = count;
        std::future::pending::<()>().await;
    }
}

/// What is known besides the ring itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// How its keys were used.
    pub usage: RingUsage,
    /// Which data planes use which revision.
    pub nodes: Vec<NodeApplied>,
    /// Those that are alive and refuse the ring, each with its reason.
    pub refusing: Vec<(String, String)>,
}

/// Where a rotation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationStage {
    /// One key signs, and none is on its way.
    Idle,
    /// A key waits for its activation.
    Staged,
    /// The new key signs first and the one before signs too.
    Overlap,
    /// The same, and the one before does so until somebody has decided.
    Paused,
    /// Nothing signs: deliveries wait.
    NoSigner,
}

/// What a key does in a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStanding {
    /// The key.
    pub key: KeyId,
    /// Its state now.
    pub state: KeyState,
    /// What it was used for; none when never.
    pub traffic: Option<KeyTraffic>,
    /// Of 1,000 requests signed under the present signing keys, how many it signed too.
    pub share_per_mille: u64,
}

/// Whether the retiring key may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetireVerdict {
    /// There is none.
    NothingRetires,
    /// It may.
    Safe,
    /// It may not, or nothing is known.
    NotSafe,
}

/// Where a rotation stands, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// In one word.
    pub stage: RotationStage,
    /// In plain words.
    pub summary: String,
    /// Each key, in the ring's order.
    pub keys: Vec<KeyStanding>,
    /// Answers before and after the last step; none while nothing signs.
    pub step: Option<StepAnswers>,
    /// Whether the retiring key may go.
    pub verdict: RetireVerdict,
    /// Why, or why not; each reason a sentence.
    pub reasons: Vec<String>,
    /// What to do next; each a sentence.
    pub next: Vec<String>,
}

impl KeyRing {
    /// The keys that sign now, as counts are kept of them.
    #[must_use]
    pub fn signers(&self, now: Timestamp) -> Option<Signers> {
        let keys: Vec<KeyId> = self.signing(now).into_iter().map(|key| key.id).collect();
        Signers::of(&keys)
    }
}

/// The ring with what is known of it, at one time.
struct Look<'a> {
    ring: &'a KeyRing,
    evidence: &'a Evidence,
    now: Timestamp,
    step: Option<StepAnswers>,
}

impl Standing {
    /// Looks at a ring.
    #[must_use]
    pub fn of(ring: &KeyRing, evidence: &Evidence, now: Timestamp) -> Self {
        let step = ring.signers(now).map(|signers| StepAnswers::last(&evidence.usage, signers));
        let look = Look { ring, evidence, now, step };
        let reasons = look.objections();
        let verdict = match (look.key(KeyState::Retiring), reasons.is_empty()) {
            (None, _) => RetireVerdict::NothingRetires,
            (Some(_), true) => RetireVerdict::Safe,
            (Some(_), false) => RetireVerdict::NotSafe,
        };
        let reasons = match verdict {
            RetireVerdict::NothingRetires => vec!["No key is retiring.".to_owned()],
            RetireVerdict::Safe => vec![look.assurance()],
            RetireVerdict::NotSafe => reasons,
        };
        Self {
            stage: look.stage(),
            summary: look.summary(),
            keys: ring.keys.iter().map(|key| look.key_standing(key)).collect(),
            next: look.next(verdict),
            step,
            verdict,
            reasons,
        }
    }
}

impl Look<'_> {
    fn key(&self, state: KeyState) -> Option<&Key> {
        self.ring.keys.iter().find(|key| key.state_at(self.now) == state)
    }

    fn stage(&self) -> RotationStage {
        if self.step.is_none() {
            return RotationStage::NoSigner;
        }
        match (self.key(KeyState::Retiring), self.key(KeyState::Staged)) {
            (Some(_), _) if self.ring.is_paused() => RotationStage::Paused,
            (Some(_), _) => RotationStage::Overlap,
            (None, Some(_)) => RotationStage::Staged,
            (None, None) => RotationStage::Idle,
        }
    }

    fn summary(&self) -> String {
        let mut text = self.ring.words(self.now);
        match &self.ring.pause {
            Some(pause) if pause.resumed_at.is_none() => {
                let at = pause.at.rfc3339();
                text += &format!(" The rotation is paused since {at}: {}.", pause.reason);
            }
            Some(pause) => {
                let at = pause.resumed_at.map(Timestamp::rfc3339).unwrap_or_default();
                text += &format!(" It was paused, and resumed at {at}: {}.", pause.reason);
            }
            None => {}
        }
        text
    }

    fn key_standing(&self, key: &Key) -> KeyStanding {
        let signs = self.step.is_some_and(|step| step.after_signers.keys().any(|id| id == key.id));
        let carried = self.step.is_some_and(|step| step.after.total() > 0);
        KeyStanding {
            key: key.id,
            state: key.state_at(self.now),
            traffic: self.evidence.usage.of(key.id).cloned(),
            share_per_mille: if signs && carried { 1_000 } else { 0 },
        }
    }

    /// Whether the receiver took a request signed with this key alone.
    fn is_proven(&self, key: &Key) -> bool {
        let traffic = self.evidence.usage.of(key.id);
        let last_test = traffic.and_then(|traffic| traffic.last_test.as_ref());
        last_test.is_some_and(|test| test.is_accepted() && test.at >= key.created_at)
    }

    fn lagging(&self) -> impl Iterator<Item = &NodeApplied> {
        self.evidence.nodes.iter().filter(|node| node.revision < self.ring.revision)
    }

    /// What speaks against retiring the key before.
    fn objections(&self) -> Vec<String> {
        let mut list = Vec::new();
        if self.ring.is_paused() {
            list.push("The rotation is paused: resume it or roll back first.".to_owned());
        }
        if let Some(jump) = self.step.and_then(|step| step.jump()) {
            list.push(format!("Denials jumped: {jump}."));
        }
        for (node, reason) in &self.evidence.refusing {
            list.push(format!("{node} refuses the present state of the ring: {reason}."));
        }
        for node in self.lagging() {
            list.push(match node.is_alive(self.now) {
                true => format!("{} does not use the present state of the ring yet.", node.node),
                // It may deliver on without a word, for as long as it likes.
                false => format!(
                    "{} did not use the present state of the ring when it was last heard of, at {}: \
                     make sure that it is gone.",
                    node.node,
                    node.at.rfc3339()
                ),
            });
        }
        match self.key(KeyState::Active) {
            None => list.push("No other key is active: nothing would sign.".to_owned()),
            Some(active) if !self.is_proven(active) => list.push(format!(
                "Nothing proves that the receiver knows {}: while two keys sign it may check either, \
                 and no test signed with it alone was accepted.",
                active.words()
            )),
            Some(_) => {}
        }
        if self.step.is_none_or(|step| step.after.accepted == 0) {
            list.push("No delivery was accepted since the last step.".to_owned());
        }
        list
    }

    fn assurance(&self) -> String {
        let accepted = self.step.map_or(0, |step| step.after.accepted);
        let nodes = match self.evidence.nodes.len() {
            0 => "no data plane is known here that lags behind".to_owned(),
            1 => "the data plane uses the present state".to_owned(),
            count => format!("all {count} data planes use the present state"),
        };
        format!(
            "The receiver accepted a test signed with the new key alone and {accepted} deliveries \
             since the last step, denials did not jump, and {nodes}."
        )
    }

    fn next(&self, verdict: RetireVerdict) -> Vec<String> {
        let mut list = Vec::new();
        let staged = self.key(KeyState::Staged);
        let retiring = self.key(KeyState::Retiring);
        match (self.stage(), staged) {
            (RotationStage::NoSigner, None) => list.push(
                "Stage a key and activate it, or rotate: deliveries wait until then.".to_owned(),
            ),
            (RotationStage::NoSigner, Some(_)) => {
                list.push("Activate the staged key: deliveries wait until then.".to_owned());
            }
            (RotationStage::Paused, _) => list.push(
                "Ask the receiver which keys it checks. Then roll back, or resume the rotation."
                    .to_owned(),
            ),
            (RotationStage::Overlap, _) => self.next_in_overlap(verdict, retiring, &mut list),
            (RotationStage::Staged, Some(key)) if self.is_proven(key) => list.push(
                "Activate the staged key: the receiver accepted a test signed with it.".to_owned(),
            ),
            (RotationStage::Staged, _) => list.push(
                "Give the staged key to the receiver and test it; activate it once the test is \
                 accepted."
                    .to_owned(),
            ),
            (RotationStage::Idle, _) => self.next_when_idle(&mut list),
        }
        list
    }

    fn next_in_overlap(
        &self,
        verdict: RetireVerdict,
        retiring: Option<&Key>,
        list: &mut Vec<String>,
    ) {
        let end = retiring.and_then(|key| key.retire_at).map(Timestamp::rfc3339);
        let end = end.unwrap_or_default();
        match (verdict, self.step.and_then(|step| step.jump())) {
            (_, Some(_)) => list.push(format!(
                "Pause the rotation or roll back before {end}, and ask the receiver which keys it \
                 checks."
            )),
            (RetireVerdict::Safe, None) => list.push(format!(
                "Nothing: the old key retires by itself at {end}. Revoke it to end it now."
            )),
            (RetireVerdict::NotSafe | RetireVerdict::NothingRetires, None) => list.push(format!(
                "Test the active key alone before {end}; pause the rotation if that is too soon."
            )),
        }
    }

    fn next_when_idle(&self, list: &mut Vec<String>) {
        list.push(match self.step.and_then(|step| step.jump()) {
            Some(jump) => format!("Roll back unless the receiver is to blame: {jump}."),
            None => "Nothing.".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests;
