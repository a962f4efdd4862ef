//! Whether a step of a rotation went wrong: answers before and after it, compared.

use crate::{AnswerCounts, RingUsage, Signers};

/// Thresholds of [`StepAnswers::jump`], each with its reason.
pub mod rotation_limits {
    /// Denials that mean something: fewer may be one client's retries.
    pub const DENIED_MIN: u64 = 5;
    /// The least share of denials that counts, of 1,000: below it a receiver is having its usual day.
    pub const DENIED_PER_MILLE: u64 = 50;
    /// By how much of 1,000 the share must have grown, so that a receiver that always denies some
    /// does not stop its own rotations.
    pub const RISE_PER_MILLE: u64 = 50;
    /// And how many times as large it must be.
    pub const RISE_FACTOR: u64 = 2;
    /// Judged answers that make a share before the step: fewer say nothing about it.
    pub const BEFORE_MIN: u64 = 20;
    /// How long a data plane counts as alive after its last word: far longer than it is silent by
    /// itself, so that one which is gone stops no rotation for long.
    pub const NODE_ALIVE: std::time::Duration = std::time::Duration::from_secs(60);
    /// Days with traffic before the step that count: what was long ago is not how the receiver is.
    pub const BEFORE_DAYS: usize = 2;
}

/// Answers before and after the last change of what signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepAnswers {
    /// What signed before; none when nothing is known.
    pub before_signers: Option<Signers>,
    /// Answers of its last days.
    pub before: AnswerCounts,
    /// What signs since.
    pub after_signers: Signers,
    /// Answers since.
    pub after: AnswerCounts,
}

impl StepAnswers {
    /// The last step to what signs now. Changes of the ring that left the signing keys as they were
    /// are no steps.
    #[must_use]
    pub fn last(usage: &RingUsage, now: Signers) -> Self {
        let since = usage.answers.iter().rposition(|row| row.signers != now).map_or(0, |at| at + 1);
        let (earlier, later) = usage.answers.split_at(since);
        let mut step = Self {
            before_signers: earlier.last().map(|row| row.signers),
            before: AnswerCounts::default(),
            after_signers: now,
            after: AnswerCounts::default(),
        };
        for row in later {
            step.after += row.answers;
        }
        let mut days = Vec::with_capacity(rotation_limits::BEFORE_DAYS);
        let same = earlier.iter().rev().take_while(|row| Some(row.signers) == step.before_signers);
        for row in same {
            if !days.contains(&row.day) {
                if days.len() == rotation_limits::BEFORE_DAYS {
                    break;
                }
                days.push(row.day);
            }
            step.before += row.answers;
        }
        step
    }

    /// In words, when denials jumped with the step; none when they did not.
    ///
    /// A jump is at least 5 denials, at least 5 % of judged answers, at least 5 points more than
    /// before, and at least twice the share before. A share before needs 20 judged answers, else it
    /// counts as none.
    #[must_use]
    pub fn jump(&self) -> Option<String> {
        use rotation_limits as limits;
        let known = self.before.judged() >= limits::BEFORE_MIN;
        let before = if known { self.before.denied_per_mille() } else { 0 };
        let after = self.after.denied_per_mille();
        let jumped = self.after.denied >= limits::DENIED_MIN
            && after >= limits::DENIED_PER_MILLE
            && after >= before + limits::RISE_PER_MILLE
            && after >= before * limits::RISE_FACTOR;
        jumped.then(|| {
            let before = match known {
                true => format!("{} before", percent(before)),
                false => "too few to compare with before".to_owned(),
            };
            format!(
                "{} of {} answers were 401 or 403 since the last step ({}), {before}",
                self.after.denied,
                self.after.judged(),
                percent(after)
            )
        })
    }
}

/// A share of 1,000 as people write it.
pub(crate) fn percent(per_mille: u64) -> String {
    match per_mille % 10 {
        0 => format!("{} %", per_mille / 10),
        tenth => format!("{}.{tenth} %", per_mille / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyId, Revision, SignedAnswers, Timestamp};
    use uuid::Uuid;

    fn signers(first: u128, second: Option<u128>) -> Signers {
        let id = |number| KeyId::from_uuid(Uuid::from_u128(number));
        Signers { first: id(first), second: second.map(id) }
    }

    fn answers(accepted: u64, denied: u64) -> AnswerCounts {
        AnswerCounts { accepted, denied, other: 3 }
    }

    fn row(revision: i64, signers: Signers, day: i64, answers: AnswerCounts) -> SignedAnswers {
        let last_used_at = Timestamp::EPOCH;
        SignedAnswers { revision: Revision(revision), signers, day, answers, last_used_at }
    }

    fn step(before: (u64, u64), after: (u64, u64)) -> StepAnswers {
        StepAnswers {
            before_signers: None,
            before: answers(before.0, before.1),
            after_signers: signers(2, Some(1)),
            after: answers(after.0, after.1),
        }
    }

    #[test]
    fn a_jump_of_denials_is_told_from_the_usual_and_from_the_rare() {
        for (before, after, jumps) in [
            // All was well, and still is.
            ((1_000, 0), (1_000, 0), false),
            // The receiver does not know the new key, and takes nothing.
            ((1_000, 0), (0, 5), true),
            // Too few to mean something.
            ((1_000, 0), (0, 4), false),
            // Exactly at and just below the least share.
            ((1_000, 0), (95, 5), true),
            ((1_000, 0), (96, 5), false),
            // It always denied some.
            ((900, 100), (900, 100), false),
            ((900, 100), (820, 180), false),
            ((900, 100), (800, 200), true),
            // It denied nearly everything: twice that is impossible, so nothing is proven.
            ((100, 900), (0, 100), false),
            // Nothing is known of before.
            ((0, 0), (10, 5), true),
            ((0, 19), (10, 5), true),
            ((0, 20), (10, 5), false),
            // It got better.
            ((500, 500), (900, 100), false),
            // Nothing was answered since.
            ((1_000, 0), (0, 0), false),
        ] {
            assert_eq!(step(before, after).jump().is_some(), jumps, "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_jump_is_told_with_its_figures() {
        let text = step((1_000, 0), (95, 5)).jump().unwrap();
        let expected = "5 of 100 answers were 401 or 403 since the last step (5 %), 0 % before";
        assert_eq!(text, expected);
        let text = step((0, 0), (0, 7)).jump().unwrap();
        assert!(text.ends_with("(100 %), too few to compare with before"), "{text}");
        assert_eq!(percent(125), "12.5 %");
    }

    #[test]
    fn a_step_is_a_change_of_what_signs_and_before_it_only_its_last_days_count() {
        let (old, both) = (signers(1, None), signers(2, Some(1)));
        let usage = RingUsage {
            keys: Vec::new(),
            answers: vec![
                row(1, both, 6, answers(7, 7)),
                row(2, old, 7, answers(0, 1_000)),
                row(2, old, 8, answers(50, 1)),
                row(2, old, 9, answers(40, 0)),
                // A key was staged: the same key signs on.
                row(3, old, 9, answers(2, 0)),
                row(4, both, 9, answers(9, 1)),
                // A verb that changed nothing of what signs.
                row(5, both, 10, answers(0, 4)),
            ],
        };
        let step = StepAnswers::last(&usage, both);
        assert_eq!(step.before_signers, Some(old));
        assert_eq!((step.before.accepted, step.before.denied), (92, 1));
        assert_eq!((step.after.accepted, step.after.denied), (9, 5));
        // Nothing was sent since the overlap ended: what it ended is what came before.
        let alone = StepAnswers::last(&usage, signers(2, None));
        assert_eq!(alone.before_signers, Some(both));
        assert_eq!((alone.before.denied, alone.after), (5, AnswerCounts::default()));
        let unknown = StepAnswers::last(&RingUsage::default(), old);
        assert_eq!((unknown.before_signers, unknown.jump()), (None, None));
    }
}
