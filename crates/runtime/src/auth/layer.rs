//! The tower layer in front of every gRPC service.

use super::{
    Authenticator, Denials, PolicyError,
    issuer::Miss,
    jwks::Round,
    policy::Policy,
    refusal::Refusal,
    watch::{Watch, Watched, method},
};
use crate::grpc;
use http::{HeaderMap, Request, Response, Uri, header::AUTHORIZATION};
use metrics::counter;
use std::{
    future::{Ready, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio_util::either::Either;
use tonic::Status;
use tower::{Layer, Service};
use turnbuckle_domain::{Caller, DenialReason, Error, Role};

/// Services that anyone may call: they tell nothing about tenants.
const OPEN: [&str; 2] = ["/grpc.health.v1.", "/grpc.reflection."];

/// Subject of callers without a token in development.
const DEV_SUBJECT: &str = "dev";

/// How callers are known.
#[derive(Debug, Clone)]
pub enum AuthMode {
    /// By a valid token, always.
    Required(Authenticator),
    /// For development only: a call without a token is the fallback caller's. A token that is sent
    /// must be valid even so, so that clients with a broken token do not work by accident.
    Dev {
        /// Checks tokens that are sent.
        authenticator: Authenticator,
        /// Who calls without one.
        fallback: Caller,
    },
}

impl AuthMode {
    /// Development: without a token everyone is an administrator.
    #[must_use]
    pub fn dev(authenticator: Authenticator) -> Self {
        let fallback = Caller {
            issuer: String::new(),
            subject: DEV_SUBJECT.to_owned(),
            role: Role::Admin,
            tenant: None,
        };
        Self::Dev { authenticator, fallback }
    }

    fn caller(&self, headers: &HeaderMap) -> Result<Caller, Miss> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        match (values.next(), values.next(), self) {
            (
                Some(value),
                None,
                Self::Required(authenticator) | Self::Dev { authenticator, .. },
            ) => authenticator.check(value),
            (None, _, Self::Dev { fallback, .. }) => Ok(fallback.clone()),
            (None, _, Self::Required(_)) => Err(Refusal::Missing.into()),
            // Two headers: whoever reads the other one would see another caller.
            (Some(_), Some(_), _) => Err(Refusal::Scheme.into()),
        }
    }
}

struct Gate {
    policy: Policy,
    mode: AuthMode,
    denials: Option<Denials>,
}

/// What becomes of a request.
enum Passage {
    /// Goes on without a caller.
    Open,
    /// Goes on with its caller.
    Known(Caller),
    /// Is judged again when the caller's issuer has told its keys.
    Waits(Round),
    /// Is answered here.
    Refused(Status),
}

impl Gate {
    fn judge(&self, path: &str, headers: &HeaderMap) -> Passage {
        if OPEN.iter().any(|prefix| path.starts_with(prefix)) {
            return Passage::Open;
        }
        let Some(demand) = self.policy.demand(path) else {
            // The answer a router would give, given here: a service that was added to the router
            // but is missing in the descriptors must not be open to everyone.
            return Passage::Refused(Status::unimplemented("there is no such method"));
        };
        let caller = match self.mode.caller(headers) {
            Ok(caller) => caller,
            Err(Miss::Waiting(round)) => return Passage::Waits(round),
            Err(Miss::Refused(refusal)) => return Passage::Refused(refused(refusal)),
        };
        match caller.require(demand) {
            Ok(()) => Passage::Known(caller),
            Err(error) => {
                if let Some(denials) = &self.denials {
                    denials.note(&caller, method(path), DenialReason::Role);
                }
                Passage::Refused(denied(&error))
            }
        }
    }

    /// Who looks at the answer to a call that goes on.
    fn watch(&self, caller: &Caller, uri: &Uri) -> Option<Watch> {
        let denials = self.denials.clone()?;
        Some(Watch { denials, caller: caller.clone(), uri: uri.clone() })
    }
}

fn refused(refusal: Refusal) -> Status {
    grpc::status(&refusal.into_error())
}

fn denied(error: &Error) -> Status {
    counter!("turnbuckle_auth_refusals_total", "reason" => "role").increment(1);
    grpc::status(error)
}

/// Puts authentication and the proto's permissions in front of gRPC services.
#[derive(Clone)]
pub struct AuthLayer(Arc<Gate>);

impl AuthLayer {
    /// Reads every method's permission from an encoded `FileDescriptorSet`.
    ///
    /// # Errors
    /// When a method of the API has no permission, or one that is not known here. The server must
    /// not start then.
    pub fn new(descriptors: &[u8], mode: AuthMode) -> Result<Self, PolicyError> {
        Self::with_denials(descriptors, mode, None)
    }

    /// The same, and notes what is denied to known callers.
    ///
    /// # Errors
    /// As [`AuthLayer::new`].
    pub fn recording(
        descriptors: &[u8],
        mode: AuthMode,
        denials: Denials,
    ) -> Result<Self, PolicyError> {
        Self::with_denials(descriptors, mode, Some(denials))
    }

    fn with_denials(
        descriptors: &[u8],
        mode: AuthMode,
        denials: Option<Denials>,
    ) -> Result<Self, PolicyError> {
        Ok(Self(Arc::new(Gate { policy: Policy::read(descriptors)?, mode, denials })))
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService { inner, gate: Arc::clone(&self.0) }
    }
}

/// A service behind an [`AuthLayer`].
#[derive(Clone)]
pub struct AuthService<S> {
    inner: S,
    gate: Arc<Gate>,
}

impl<S, B, R> Service<Request<B>> for AuthService<S>
where
    S: Service<Request<B>, Response = Response<R>, Error: Send, Future: Send>
        + Clone
        + Send
        + 'static,
    B: Send + 'static,
    R: Default + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Either<
        Ready<Result<Response<R>, S::Error>>,
        Either<Watched<S::Future>, Later<Response<R>, S::Error>>,
    >;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.gate.judge(request.uri().path(), request.headers()) {
            Passage::Open => {
                Either::Right(Either::Left(Watched::new(self.inner.call(request), None)))
            }
            Passage::Known(caller) => {
                let watch = self.gate.watch(&caller, request.uri());
                request.extensions_mut().insert(caller);
                Either::Right(Either::Left(Watched::new(self.inner.call(request), watch)))
            }
            Passage::Waits(round) => {
                // The service that is ready is the one here, not its clone.
                let clone = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, clone);
                let later = judged_later(ready, Arc::clone(&self.gate), request, round);
                Either::Right(Either::Right(Box::pin(later)))
            }
            Passage::Refused(status) => Either::Left(ready(Ok(status.into_http()))),
        }
    }
}

/// The rare call that has to wait.
type Later<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

async fn judged_later<S, B, R>(
    mut inner: S,
    gate: Arc<Gate>,
    mut request: Request<B>,
    round: Round,
) -> Result<Response<R>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Default,
{
    round.ended().await;
    match gate.judge(request.uri().path(), request.headers()) {
        Passage::Open => inner.call(request).await,
        Passage::Known(caller) => {
            let watch = gate.watch(&caller, request.uri());
            request.extensions_mut().insert(caller);
            Watched::new(inner.call(request), watch).await
        }
        // Nobody waits twice.
        Passage::Waits(_) => Ok(refused(Refusal::Key).into_http()),
        Passage::Refused(status) => Ok(status.into_http()),
    }
}
