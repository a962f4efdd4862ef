//! Who asks for a change, and what the record will say of the call.

use crate::Dependencies;
use turnbuckle_domain::{AuditId, Caller, ChangeContext, RequestKey, audit_limits};

/// Who asks for a change, and how it is recorded.
#[derive(Debug, Clone)]
pub(crate) struct By {
    pub(crate) caller: Caller,
    pub(crate) change: ChangeContext,
}

/// What a transport knows of a call besides its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Service and method.
    pub(crate) method: String,
    /// The caller's id of the request.
    pub(crate) request_id: Option<String>,
    /// Why, where the request says it.
    pub(crate) reason: String,
    /// Check everything and change nothing.
    pub(crate) validate_only: bool,
    /// The request itself, where it has an id of its own.
    pub(crate) request: Option<RequestKey>,
}

impl By {
    /// Whether the change is only checked.
    pub(crate) const fn validates_only(&self) -> bool {
        self.change.validate_only
    }
}

impl Dependencies {
    /// Notes who calls, when, and under which ids.
    pub(crate) fn by(&self, caller: Caller, call: Call) -> By {
        let id = AuditId::from_uuid(self.ids.uuid());
        let own = call.request.map(|request| request.id.to_string());
        let request_id = own.or(call.request_id).filter(|given| is_request_id(given));
        let change = ChangeContext {
            id,
            at: self.clock.now(),
            subject: caller.subject.clone(),
            role: caller.role,
            method: call.method,
            request_id: request_id.unwrap_or_else(|| self.ids.uuid().to_string()),
            reason: call.reason,
            validate_only: call.validate_only,
            request: call.request,
        };
        By { caller, change }
    }
}

/// A request id goes into records and back out to people: visible ASCII of bounded length. Any other
/// is replaced, not refused: it is a help for tracing, and no reason to fail a call.
fn is_request_id(text: &str) -> bool {
    (1..=audit_limits::REQUEST_ID_CHARS).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_are_short_and_visible() {
        let longest = "r".repeat(audit_limits::REQUEST_ID_CHARS);
        for good in ["1", "3f1c9e6a-req_7", longest.as_str()] {
            assert!(is_request_id(good), "{good}");
        }
        let long = format!("{longest}r");
        for bad in ["", "a b", "a\n", "ä", long.as_str()] {
            assert!(!is_request_id(bad), "{bad:?}");
        }
    }
}
