//! Subscriptions that are confirmed by fetching an address: AWS SNS.

use super::json;
use super::json_path::JsonPath;
use super::limits::MAX_URL_BYTES;
use super::model::KeySource;
use super::refusal::{Refusal, Role};
use super::request::Request;
use super::verifier::Verifier;
use super::wanted;

impl Verifier {
    /// The address to fetch when a verified request asks for it: `SubscribeURL` of a request of
    /// type `SubscriptionConfirmation`, for schemes whose key comes from a certificate. Nothing for
    /// other requests and schemes.
    ///
    /// Ask only after [`verify`](Self::verify): otherwise anyone could have addresses fetched.
    ///
    /// # Errors
    /// When the address is missing, or not on a host that the scheme trusts with certificates.
    pub fn confirmation_url(&self, request: &Request<'_>) -> Result<Option<String>, Refusal> {
        let KeySource::Certificate { hosts, .. } = &self.scheme().key_source else {
            return Ok(None);
        };
        let Some(kind) = member(request, "Type") else { return Ok(None) };
        if kind != "SubscriptionConfirmation" {
            return Ok(None);
        }
        let url = member(request, "SubscribeURL").ok_or(Refusal::Missing(Role::Handshake))?;
        let bare = url.split_once('?').map_or(url.as_str(), |(before, _)| before);
        let plain = url.len() <= MAX_URL_BYTES && url.bytes().all(|byte| byte.is_ascii_graphic());
        let trusted = plain && wanted::trusted_host(bare, hosts, "").is_some();
        if trusted { Ok(Some(url)) } else { Err(Refusal::KeyAddress) }
    }
}

fn member(request: &Request<'_>, name: &str) -> Option<String> {
    let path = JsonPath::parse(name).ok()?;
    let value = json::scalar(request.body, &path).ok()??;
    String::from_utf8(value.into_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(preset: &str, body: &str) -> Result<Option<String>, Refusal> {
        let scheme = crate::scheme::preset(preset).unwrap().scheme.clone();
        let headers: [(&str, &str); 0] = [];
        let (method, url) = ("POST", "https://hooks.example/in");
        let request = Request { method, url, headers: &headers, body: body.as_bytes() };
        Verifier::new(scheme).unwrap().confirmation_url(&request)
    }

    #[test]
    fn only_confirmations_to_listed_hosts_are_fetched() {
        let body = |kind: &str, url: &str| format!(r#"{{"Type":"{kind}","SubscribeURL":"{url}"}}"#);
        let url = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=2336412f";
        let confirmation = body("SubscriptionConfirmation", url);
        assert_eq!(asked("aws-sns", &confirmation), Ok(Some(url.to_owned())));
        assert_eq!(asked("github", &confirmation), Ok(None));
        assert_eq!(asked("aws-sns", &body("Notification", url)), Ok(None));
        assert_eq!(asked("aws-sns", "{"), Ok(None));
        let missing = r#"{"Type":"SubscriptionConfirmation"}"#;
        assert_eq!(asked("aws-sns", missing), Err(Refusal::Missing(Role::Handshake)));
        for url in [
            "http://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
            "https://evil.example/?https://sns.eu-west-1.amazonaws.com/",
            "https://sns.eu-west-1.amazonaws.com@evil.example/",
            "https://169.254.169.254/?x",
            "https://sns.eu-west-1.amazonaws.com?Action=ConfirmSubscription",
            "https://sns.eu-west-1.amazonaws.com/ x",
        ] {
            let refused = asked("aws-sns", &body("SubscriptionConfirmation", url));
            assert_eq!(refused, Err(Refusal::KeyAddress), "{url}");
        }
    }
}
