//! What a request comes to, once it is known what became of each of its items.
//!
//! One rule stands above all others: an answer that lets the sender forget the request hides no item
//! that is kept nowhere.

use super::taking::{Refused, Tally};
use crate::{
    answer::{Answer, Problem, accepted, duplicate},
    metrics::Outcome,
};
use turnbuckle_domain::{ReceiptDecision, SourceSettings, UnknownVersionMode, Unprocessable};

/// Answer and receipt of a request.
pub(super) struct Verdict {
    pub(super) answer: Answer,
    pub(super) decision: ReceiptDecision,
    pub(super) outcome: Outcome,
    /// The answer waits until the body is durable as a dead letter: it is all that is left of some item.
    pub(super) keeps: bool,
}

impl Tally {
    /// Whether every item is accounted for.
    pub(super) fn is_whole(&self) -> bool {
        let known = self.accepted + self.duplicates + self.anomalies + self.refused.len();
        self.unknown == 0 && known == self.events
    }

    pub(super) fn verdict(&self, settings: &SourceSettings) -> Verdict {
        let (answer, decision, outcome) = if self.accepted > 0 || self.events == 0 {
            (accepted(&settings.answers), ReceiptDecision::Accepted, Outcome::Accepted)
        } else if self.anomalies > 0 {
            // Answered as a repeat: who sent it learns nothing.
            (self.repeat(settings), ReceiptDecision::Anomaly, Outcome::Anomaly)
        } else if self.duplicates > 0 {
            (self.repeat(settings), ReceiptDecision::Duplicate, Outcome::Duplicate)
        } else {
            return self.unusable(settings);
        };
        // Of a batch the good items decide on the answer, so the bad ones are kept whatever the source
        // says: their sender will not send them again.
        match self.refused.is_empty() {
            true => Verdict { answer, decision, outcome, keeps: false },
            false => {
                Verdict { answer, decision: ReceiptDecision::DeadLetter, outcome, keeps: true }
            }
        }
    }

    fn repeat(&self, settings: &SourceSettings) -> Answer {
        duplicate(&settings.answers, self.first.map(|(_, at)| at))
    }

    /// None of it is an event: refused, or kept, as the source says.
    fn unusable(&self, settings: &SourceSettings) -> Verdict {
        let keeps = self.refused.iter().any(|refused| match refused {
            Refused::Version(_) => settings.event.unknown_version == UnknownVersionMode::DeadLetter,
            Refused::MediaType(_) | Refused::Unusable(_) => {
                settings.unprocessable == Unprocessable::DeadLetter
            }
        });
        if keeps {
            return Verdict {
                answer: accepted(&settings.answers),
                decision: ReceiptDecision::DeadLetter,
                outcome: Outcome::DeadLetter,
                keeps: true,
            };
        }
        let all = |is: fn(&Refused) -> bool| self.refused.iter().all(is);
        let (problem, outcome) = if all(|refused| matches!(refused, Refused::Version(_))) {
            (Problem::UnknownVersion, Outcome::UnknownVersion)
        } else if all(|refused| matches!(refused, Refused::MediaType(_))) {
            (Problem::Unsupported, Outcome::Unsupported)
        } else {
            (Problem::Malformed, Outcome::Unusable)
        };
        let (answer, decision) = (problem.answer(), ReceiptDecision::Refused);
        Verdict { answer, decision, outcome, keeps: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::{Answers, DuplicateAnswer};

    const MODES: [(UnknownVersionMode, Unprocessable); 4] = [
        (UnknownVersionMode::Refuse, Unprocessable::Refuse),
        (UnknownVersionMode::Refuse, Unprocessable::DeadLetter),
        (UnknownVersionMode::DeadLetter, Unprocessable::Refuse),
        (UnknownVersionMode::DeadLetter, Unprocessable::DeadLetter),
    ];

    fn settings((version, unprocessable): (UnknownVersionMode, Unprocessable)) -> SourceSettings {
        let mut settings = SourceSettings { unprocessable, ..SourceSettings::default() };
        settings.event.unknown_version = version;
        settings
    }

    /// Zero to two of each kind.
    fn tallies() -> impl Iterator<Item = Tally> {
        (0..3_usize.pow(6)).map(|number| {
            let count = |place: u32| number / 3_usize.pow(place) % 3;
            let mut tally = Tally {
                accepted: count(0),
                duplicates: count(1),
                anomalies: count(2),
                ..Tally::default()
            };
            let refused: [fn() -> Refused; 3] = [
                || Refused::Version("v"),
                || Refused::MediaType("m"),
                || Refused::Unusable("u".to_owned()),
            ];
            for (place, make) in refused.iter().enumerate() {
                let many = count(3 + place as u32);
                tally.refused.extend(std::iter::repeat_with(make).take(many));
            }
            tally.events =
                tally.accepted + tally.duplicates + tally.anomalies + tally.refused.len();
            tally
        })
    }

    #[test]
    fn no_answer_that_ends_it_hides_an_item_that_is_kept_nowhere() {
        for mode in MODES {
            for answer in [DuplicateAnswer::Ok, DuplicateAnswer::Conflict] {
                let answers = Answers { duplicate: answer, ..Answers::default() };
                let settings = SourceSettings { answers, ..settings(mode) };
                for tally in tallies() {
                    assert!(tally.is_whole());
                    let verdict = tally.verdict(&settings);
                    let status = verdict.answer.status().as_u16();
                    let is_final = matches!(status, 200..=299 | 409);
                    let refused = tally.refused.len();
                    assert_eq!(verdict.keeps, is_final && refused > 0, "{status} {refused}");
                    let is_letter = verdict.decision == ReceiptDecision::DeadLetter;
                    assert_eq!(verdict.keeps, is_letter);
                }
            }
        }
    }

    #[test]
    fn what_is_no_event_is_kept_or_refused_as_the_source_says() {
        let of = |refused: Refused, mode| {
            let tally = Tally { events: 1, refused: vec![refused], ..Tally::default() };
            tally.verdict(&settings(mode)).answer.status().as_u16()
        };
        assert_eq!(MODES.map(|mode| of(Refused::Version("v"), mode)), [422, 422, 202, 202]);
        assert_eq!(MODES.map(|mode| of(Refused::MediaType("m"), mode)), [415, 202, 415, 202]);
        let unusable = MODES.map(|mode| of(Refused::Unusable("u".into()), mode));
        assert_eq!(unusable, [400, 202, 400, 202]);
    }

    #[test]
    fn an_item_that_nobody_speaks_of_is_not_accounted_for() {
        let tally = Tally { events: 2, accepted: 1, ..Tally::default() };
        assert!(!tally.is_whole());
    }
}
