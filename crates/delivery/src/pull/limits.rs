//! Bounds and timings of pulling.

use std::time::Duration;

/// Streams of one process. Each is a task, a connection's stream, and a look at the store now and then.
pub(crate) const STREAMS_MAX: usize = 512;
/// Streams of one endpoint in one process: more consumers than that share them through further processes.
pub(crate) const ENDPOINT_STREAMS_MAX: usize = 64;
/// Payload bytes that one stream holds at once, when the consumer asks for no other number.
pub(crate) const BYTES_DEFAULT: usize = 16 * 1024 * 1024;
/// The same, at most.
pub(crate) const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Payload bytes on their way to consumers in one process. Past it a stream takes one delivery at a time.
pub(crate) const PROCESS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Deliveries of one claim: the largest payloads make 64 MiB.
pub(crate) const CLAIM_ROWS: usize = 16;
/// Claims under way in one process, so that idle consumers do not take the connections of publishers.
pub(crate) const CLAIMS_AT_ONCE: usize = 2;
/// An endpoint is looked at this often when nothing was heard: for what is due again, and for what another
/// process published and could not tell.
pub(crate) const POLL: Duration = Duration::from_secs(1);
/// A claim begins at the first due delivery again after this: something may have come due behind the last.
pub(crate) const FROM_START: Duration = Duration::from_secs(1);
/// Payload bytes of one message to a consumer; a message has one delivery at least. Common clients refuse
/// messages above 4 MiB.
pub(crate) const MESSAGE_BYTES: usize = 1024 * 1024;
/// Messages that wait for a consumer that does not read. Past it nothing it says is heard.
pub(crate) const OUTBOX_MAX: usize = 64;
/// A stream takes nothing more after this, up to half as much again, and ends when all that it holds is
/// done: a caller whose token was revoked does not come in again.
pub(crate) const STREAM_AGE: Duration = Duration::from_mins(10);
/// Time for a consumer that does not read to take the last messages of its stream.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);
/// Actions of one message.
pub(crate) const ACTIONS_MAX: usize = 1_000;
/// Writes of one stream that may wait for their answer: it listens and claims while there are at most
/// [`ACTIONS_MAX`]; one message, one claim, and all that it holds at its end may come on top.
pub(crate) const UNANSWERED_MAX: usize = 4 * ACTIONS_MAX;
/// Longest message of a consumer: that many tokens with room.
pub(crate) const REQUEST_BYTES: usize = 256 * 1024;
/// Shortest time by which a lease can be prolonged.
pub(crate) const EXTENSION_MIN: Duration = Duration::from_secs(1);
/// Results of one settle transaction.
pub(crate) const SETTLE_BATCH: usize = 500;
/// First and longest wait before a failed call of the store is repeated.
pub(crate) const STORE_RETRY: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(2));
