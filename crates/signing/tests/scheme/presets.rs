//! The presets as a whole.

use turnbuckle_signing::scheme::{Evidence, Weakness, preset, presets};

#[test]
fn every_sender_of_the_list_has_a_preset() {
    assert!(presets().len() >= 70);
    for name in [
        "standard-webhooks",
        "svix",
        "turnbuckle",
        "hub",
        "github",
        "gitlab",
        "gitlab-token",
        "bitbucket",
        "stripe",
        "shopify",
        "slack",
        "twilio-form",
        "twilio-json",
        "sendgrid",
        "paypal",
        "square",
        "adyen",
        "adyen-platform",
        "zoom",
        "zendesk",
        "linear",
        "intercom",
        "hubspot-v1",
        "hubspot-v2",
        "hubspot-v3",
        "mailgun",
        "postmark",
        "paddle",
        "coinbase-commerce",
        "discord",
        "meta",
        "typeform",
        "calendly",
        "dropbox",
        "trello",
        "asana",
        "xero",
        "quickbooks",
        "docusign",
        "midtrans",
        "midtrans-iris",
        "xendit",
        "aws-sns",
        "twitch",
        "microsoft-graph",
        "box",
        "workos",
        "pagerduty",
        "bird",
        "notion",
        "x",
        "okta",
        "braintree",
        "line",
        "vercel",
        "telnyx",
        "plivo",
        "razorpay",
        "pusher",
        "gocardless",
        "circleci",
        "onfido",
    ] {
        assert!(preset(name).is_some(), "{name}");
    }
}

#[test]
fn what_is_weak_says_so() {
    let weak = |name: &str| preset(name).unwrap().scheme.weaknesses();
    assert_eq!(weak("standard-webhooks"), []);
    assert_eq!(weak("stripe"), []);
    assert_eq!(weak("bird"), []);
    assert_eq!(weak("github"), [Weakness::NoSignedTime, Weakness::IdNotSigned]);
    assert!(weak("gitlab-token").contains(&Weakness::TokenIsSent));
    for name in ["mailgun", "midtrans", "adyen", "plivo", "paypal", "xendit"] {
        assert!(weak(name).contains(&Weakness::BodyNotCovered), "{name}");
    }
    for name in ["gitlab-token", "postmark", "xendit", "okta", "microsoft-graph"] {
        assert!(weak(name).contains(&Weakness::TokenIsSent), "{name}");
    }
    for name in ["github", "shopify", "square"] {
        assert!(weak(name).contains(&Weakness::NoSignedTime), "{name}");
    }
    for name in ["github", "shopify", "linear"] {
        assert!(weak(name).contains(&Weakness::IdNotSigned), "{name}");
    }
    for name in ["twilio-form", "trello", "aws-sns-v1"] {
        assert!(weak(name).contains(&Weakness::OldHash), "{name}");
    }
    assert!(!weak("twilio-json").contains(&Weakness::BodyNotCovered));
}

/// The table of docs/receiving.md, so that it cannot fall behind.
#[test]
fn the_documentation_lists_every_preset() {
    let documented = include_str!("../../../../docs/receiving.md");
    for preset in presets() {
        let evidence = match preset.evidence {
            Evidence::Vector => "published example passes",
            Evidence::Vendor => "from its documents",
            Evidence::ThirdParty => "from others: try it first",
        };
        let row = format!("| `{}` | {} | {evidence} |", preset.name, preset.title);
        assert!(documented.contains(&row), "missing in docs/receiving.md:\n{row}");
    }
}
