//! One issuer of tokens: its keys, and the rules that its tokens must pass.

use super::{
    AUDIENCE, ISSUER, TokenKey,
    claims::{Claims, TimeRules},
    config::IssuerConfig,
    is_subject,
    jwks::{KeyCache, Lookup, Round},
    refusal::Refusal,
};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode};
use std::{collections::HashMap, time::Duration};
use turnbuckle_domain::{Caller, ResourceId, Role, Timestamp};

/// How far the clocks of our own processes may differ.
const OWN_LEEWAY: Duration = Duration::from_secs(10);

/// Longest key id looked up. Usual ones are hashes.
const KEY_ID_MAX: usize = 256;

/// Kinds of signed objects that are tokens for us; `at+jwt` is what OAuth calls access tokens.
const TOKEN_TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// What every tenant is called in mapped claims and in the configuration.
pub(super) const EVERY_TENANT: &str = "*";

/// Why there is no caller, yet or at all.
pub(super) enum Miss {
    /// It is refused.
    Refused(Refusal),
    /// It names a key that is not known. The issuer's keys are being read again: wait and retry.
    Waiting(Round),
}

impl From<Refusal> for Miss {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A role, for one tenant or for every.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) role: Role,
    pub(super) tenant: Option<ResourceId>,
}

/// How a token says that it is for every tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EveryTenant {
    /// By having no tenant. Only for tokens that we make ourselves.
    Absence,
    /// By the tenant `*`. A foreign issuer that knows nothing of tenants grants none.
    Star,
}

/// What a token's subject may do.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    pub(super) role_claim: String,
    pub(super) tenant_claim: String,
    pub(super) every_tenant: EveryTenant,
    /// Subjects whose claims are not asked.
    pub(super) subjects: HashMap<String, Grant>,
}

impl Mapping {
    fn grant(&self, subject: &str, claims: &Claims) -> Result<Grant, Refusal> {
        if let Some(grant) = self.subjects.get(subject) {
            return Ok(grant.clone());
        }
        let role = Role::parse(claims.text(&self.role_claim)?).ok_or(Refusal::Claims)?;
        let tenant = match (claims.optional_text(&self.tenant_claim)?, self.every_tenant) {
            (None, EveryTenant::Absence) | (Some(EVERY_TENANT), EveryTenant::Star) => None,
            (None, EveryTenant::Star) => return Err(Refusal::Claims),
            (Some(text), _) => Some(ResourceId::new(text).map_err(|_| Refusal::Claims)?),
        };
        Ok(Grant { role, tenant })
    }
}

enum Keys {
    /// The one that signs our own tokens.
    Own(TokenKey),
    /// Public ones, by the id that tokens name.
    Published(KeyCache),
}

/// An issuer and its rules.
pub(super) struct Issuer {
    name: String,
    algorithm: Algorithm,
    validation: Validation,
    keys: Keys,
    times: TimeRules,
    mapping: Mapping,
}

impl Issuer {
    /// Ourselves: tokens made with the token key.
    pub(super) fn own(key: TokenKey) -> Self {
        Self {
            name: ISSUER.to_owned(),
            algorithm: Algorithm::HS256,
            validation: validation(Algorithm::HS256, ISSUER, &[AUDIENCE]),
            keys: Keys::Own(key),
            // Their age is their maker's choice: whoever has the key is trusted with everything.
            times: TimeRules { leeway: OWN_LEEWAY, age_max: None },
            mapping: Mapping {
                role_claim: "role".to_owned(),
                tenant_claim: "tenant".to_owned(),
                every_tenant: EveryTenant::Absence,
                subjects: HashMap::new(),
            },
        }
    }

    /// Somebody else, as configured.
    pub(super) fn published(config: IssuerConfig, keys: KeyCache) -> Self {
        Self {
            validation: validation(config.algorithm, &config.issuer, &config.audiences),
            name: config.issuer,
            algorithm: config.algorithm,
            keys: Keys::Published(keys),
            times: config.times,
            mapping: config.mapping,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The caller that a token proves. The header is not trusted: its algorithm must be the
    /// configured one, its key id is a look-up in the issuer's own keys, and whatever key or
    /// address of keys it carries is not looked at.
    pub(super) fn check(
        &self,
        token: &str,
        header: &Header,
        now: Timestamp,
    ) -> Result<Caller, Miss> {
        if header.alg != self.algorithm || !self.takes_type(header.typ.as_deref()) {
            return Err(Refusal::Invalid.into());
        }
        match &self.keys {
            Keys::Own(key) => Ok(self.verify(token, key.checking(), now)?),
            Keys::Published(cache) => {
                let id = header.kid.as_deref().filter(|id| (1..=KEY_ID_MAX).contains(&id.len()));
                match cache.find(id.ok_or(Refusal::Key)?) {
                    Lookup::Found(key) => Ok(self.verify(token, &key, now)?),
                    Lookup::Reading(round) => Err(Miss::Waiting(round)),
                    Lookup::Absent => Err(Refusal::Key.into()),
                }
            }
        }
    }

    fn takes_type(&self, kind: Option<&str>) -> bool {
        let types = match self.keys {
            Keys::Own(_) => TOKEN_TYPES.get(..1).unwrap_or_default(),
            Keys::Published(_) => TOKEN_TYPES.as_slice(),
        };
        kind.is_none_or(|kind| types.iter().any(|known| known.eq_ignore_ascii_case(kind)))
    }

    fn verify(&self, token: &str, key: &DecodingKey, now: Timestamp) -> Result<Caller, Refusal> {
        let decoded =
            decode::<Claims>(token, key, &self.validation).map_err(|_| Refusal::Invalid)?;
        // The library lets the one critical header pass that it knows; we know none.
        if decoded.header.crit.is_some() {
            return Err(Refusal::Invalid);
        }
        let claims = decoded.claims;
        claims.check_times(now, &self.times)?;
        let subject = claims.text("sub")?;
        // The library would take a list with our issuer in it.
        if claims.text("iss")? != self.name || !is_subject(subject) {
            return Err(Refusal::Claims);
        }
        let Grant { role, tenant } = self.mapping.grant(subject, &claims)?;
        let (issuer, subject) = (self.name.clone(), subject.to_owned());
        Ok(Caller { issuer, subject, role, tenant })
    }
}

/// The algorithm is fixed here and never taken from a token.
fn validation<A: ToString>(algorithm: Algorithm, issuer: &str, audiences: &[A]) -> Validation {
    let mut validation = Validation::new(algorithm);
    // By default the library takes a token without these claims, even when values are set.
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.set_issuer(&[issuer]);
    validation.set_audience(audiences);
    // It would read the system's clock, and round a fractional time: see `Claims::check_times`.
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation
}
