//! Kept requests once more: through the mapping and into the log, past signature, time and dedup.

use crate::{
    config::Compiled,
    event::{Message, NoEvent},
    verify::MessageId,
};
use async_trait::async_trait;
use std::sync::Arc;
use turnbuckle_domain::{
    Error, EventIntake, IntakeRefusal, Receipt, ReceiptReplay, ReplayContext, Reserved, Source,
    Taken,
};
use turnbuckle_signing::{HeaderSource, scheme::Request};
use url::form_urlencoded;

/// Where the parameters of a kept request stand; nothing reads the rest of it.
const URL: &str = "https://ingress.invalid/";

/// Takes kept requests again.
pub struct Replays(pub Arc<dyn EventIntake>);

/// The headers that were kept.
struct Kept<'a>(&'a [(String, String)]);

impl HeaderSource for Kept<'_> {
    fn get_all(&self, name: &str) -> Vec<&[u8]> {
        let own = self.0.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        own.map(|(_, value)| value.as_bytes()).collect()
    }
}

#[async_trait]
impl ReceiptReplay for Replays {
    async fn replay(
        &self,
        source: &Source,
        receipt: &Receipt,
        only_new: bool,
    ) -> Result<Vec<Taken>, Error> {
        let compiled = Compiled::of(source.clone()).map_err(Error::internal)?;
        let items = match map(&compiled, receipt) {
            Ok(items) => items,
            Err(fault) => return Ok(vec![refused(fault)]),
        };
        let mut events = Vec::new();
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            answers.push(item.map_err(refused).map(|mapped| {
                let mut event = mapped.event;
                event.dedup = event.dedup.filter(|_| only_new);
                events.push(event);
            }));
        }
        let mut taken = match events.is_empty() {
            true => Vec::new(),
            false => self.0.take(source.tenant, events, Reserved::default()).await?,
        }
        .into_iter();
        let answer = |item: Result<(), Taken>| match item {
            Ok(()) => taken.next().unwrap_or(Taken::Unknown),
            Err(refused) => refused,
        };
        Ok(answers.into_iter().map(answer).collect())
    }
}

type Items = Vec<Result<crate::event::Mapped, NoEvent>>;

fn map(compiled: &Compiled, receipt: &Receipt) -> Result<Items, NoEvent> {
    let nothing = ReplayContext::default();
    let context = receipt.context.as_ref().unwrap_or(&nothing);
    let body = receipt.payload.clone().unwrap_or_default();
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(&context.query);
    let url = format!("{URL}?{}", query.finish());
    let request =
        Request { method: "POST", url: &url, headers: &Kept(&context.headers), body: &body };
    let signed = receipt.event_id_signed.unwrap_or(false);
    let message_id = context.message_id.clone().map(|text| MessageId { text, signed });
    let message = Message {
        request: &request,
        body: &body,
        content_type: &context.content_type,
        message_id: message_id.as_ref(),
    };
    compiled.mapping.events(&compiled.source, &message)
}

fn refused(fault: NoEvent) -> Taken {
    Taken::Refused(match fault {
        NoEvent::UnknownVersion => IntakeRefusal::UnknownVersion,
        // Its media type did not keep it from being read.
        NoEvent::MediaType => IntakeRefusal::Unusable { fields: "content type".to_owned() },
        NoEvent::Unusable(reason) => IntakeRefusal::Unusable { fields: reason.to_owned() },
    })
}
