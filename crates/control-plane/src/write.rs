//! How rows are changed: etags, no-op writes, and races between writers.

use crate::{Dependencies, by::By};
use std::future::Future;
use turnbuckle_domain::{
    ApiToken, Endpoint, Error, EventType, EventTypeVersion, Meta, RetryPolicy, Revision, Source,
    Subscription, Tenant, Violation,
};

/// How often a change without etag is tried against other writers. Each failure means that somebody
/// else made progress; this many in a row on one row is a caller's loop, not bad luck.
pub(crate) const TRIES: usize = 5;

/// A row with times and a revision.
pub(crate) trait Row: Clone + PartialEq + Send {
    /// Its times and revision.
    fn meta(&self) -> &Meta;
    /// The same, to be changed.
    fn meta_mut(&mut self) -> &mut Meta;
}

macro_rules! rows {
    ($($row:ty),*) => {$(
        impl Row for $row {
            fn meta(&self) -> &Meta {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut Meta {
                &mut self.meta
            }
        }
    )*};
}

rows!(Tenant, EventType, EventTypeVersion, RetryPolicy, Endpoint, Subscription, Source, ApiToken);

/// Refuses an etag that is not current.
pub(crate) fn check_etag(
    sent: Option<Revision>,
    current: Revision,
    resource: &str,
) -> Result<(), Error> {
    match sent {
        Some(sent) if sent != current => {
            Err(Error::Stale { resource: resource.to_owned(), current: current.etag() })
        }
        Some(_) | None => Ok(()),
    }
}

/// Names the resource as the caller does: a store knows rows, not names.
pub(crate) fn named(error: Error, resource: &str) -> Error {
    let resource = resource.to_owned();
    match error {
        Error::NotFound { .. } => Error::NotFound { resource },
        Error::AlreadyExists { .. } => Error::AlreadyExists { resource },
        Error::Stale { current, .. } => Error::Stale { resource, current },
        Error::Precondition { kind, message, .. } => {
            Error::Precondition { kind, subject: resource, message }
        }
        other => other,
    }
}

/// An update, and what it makes when there is nothing to change.
#[derive(Debug, Clone)]
pub(crate) struct Upsert<U, C> {
    pub(crate) update: U,
    /// None: a missing row is an error. What is wrong with the creation is told when it is needed.
    pub(crate) create: Option<Result<C, Vec<Violation>>>,
}

/// Changes a row, or makes it. Of many callers that do so at the same time one makes it and the
/// others find it made. An etag says that the row was seen, so then it is not made again.
pub(crate) async fn upsert<'a, C, T, M, W>(
    change: &Change<'_>,
    wanted: Option<&'a Result<C, Vec<Violation>>>,
    update: impl Fn() -> M + Send + Sync,
    create: impl Fn(&'a C) -> W + Send + Sync,
) -> Result<T, Error>
where
    C: Sync,
    T: Send,
    M: Future<Output = Result<T, Error>> + Send,
    W: Future<Output = Result<T, Error>> + Send,
{
    let mut tries = 1;
    loop {
        let missing = match update().await {
            Err(Error::NotFound { resource }) if resource == change.resource => resource,
            done => return done,
        };
        let Some(wanted) = wanted.filter(|_| change.etag.is_none()) else {
            return Err(Error::NotFound { resource: missing });
        };
        let command = wanted.as_ref().map_err(|list| Error::Invalid(list.clone()))?;
        match create(command).await {
            // Another caller was faster.
            Err(Error::AlreadyExists { .. }) if tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

/// One change of one row.
pub(crate) struct Change<'a> {
    /// The row's name.
    pub(crate) resource: &'a str,
    /// The revision the caller has seen, when it insists on it.
    pub(crate) etag: Option<Revision>,
}

impl Dependencies {
    /// Stores a new row and waits until it is used.
    pub(crate) async fn create<T: Row>(
        &self,
        by: &By,
        resource: &str,
        write: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let mut row = write.await.map_err(|error| named(error, resource))?;
        if by.validates_only() {
            // The revision it would have had is somebody else's.
            row.meta_mut().revision = Revision::ZERO;
            return Ok(row);
        }
        self.propagation.applied(row.meta().revision).await;
        Ok(row)
    }

    /// Reads a row, changes it, and writes it back if that made a difference. Without an etag it
    /// begins again when another writer was faster.
    pub(crate) async fn update<T, R, W>(
        &self,
        by: &By,
        change: &Change<'_>,
        read: impl Fn() -> R + Send + Sync,
        modify: impl Fn(&mut T) -> Result<(), Error> + Send + Sync,
        write: impl Fn(T, Revision) -> W + Send + Sync,
    ) -> Result<T, Error>
    where
        T: Row,
        R: Future<Output = Result<T, Error>> + Send,
        W: Future<Output = Result<T, Error>> + Send,
    {
        let mut tries = 1;
        loop {
            let current = read().await?;
            let seen = current.meta().revision;
            check_etag(change.etag, seen, change.resource)?;
            let mut next = current.clone();
            modify(&mut next)?;
            if next == current {
                return Ok(current);
            }
            next.meta_mut().updated_at = self.clock.now();
            match write(next, seen).await {
                Ok(mut row) if by.validates_only() => {
                    row.meta_mut().revision = seen;
                    return Ok(row);
                }
                Ok(row) => {
                    self.propagation.applied(row.meta().revision).await;
                    return Ok(row);
                }
                Err(Error::Stale { .. }) if change.etag.is_none() && tries < TRIES => tries += 1,
                Err(error) => return Err(named(error, change.resource)),
            }
        }
    }

    /// Reads a row and deletes it. Without an etag it begins again when another writer was faster.
    pub(crate) async fn delete<T, R, W>(
        &self,
        change: &Change<'_>,
        read: impl Fn() -> R + Send + Sync,
        write: impl Fn(T) -> W + Send + Sync,
    ) -> Result<(), Error>
    where
        T: Row,
        R: Future<Output = Result<T, Error>> + Send,
        W: Future<Output = Result<Revision, Error>> + Send,
    {
        let mut tries = 1;
        loop {
            let current = read().await?;
            check_etag(change.etag, current.meta().revision, change.resource)?;
            match write(current).await {
                Ok(revision) => {
                    self.propagation.applied(revision).await;
                    return Ok(());
                }
                Err(Error::Stale { .. }) if change.etag.is_none() && tries < TRIES => tries += 1,
                Err(error) => return Err(named(error, change.resource)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::Precondition;

    #[test]
    fn only_a_sent_etag_must_be_current() {
        assert!(check_etag(None, Revision(7), "tenants/a").is_ok());
        assert!(check_etag(Some(Revision(7)), Revision(7), "tenants/a").is_ok());
        let error = check_etag(Some(Revision(6)), Revision(7), "tenants/a").unwrap_err();
        assert!(
            matches!(&error, Error::Stale { resource, current }
                if resource == "tenants/a" && current == "\"7\""),
            "{error}"
        );
    }

    #[test]
    fn errors_of_the_store_carry_the_callers_name() {
        let row = || "row 5".to_owned();
        for error in [
            Error::NotFound { resource: row() },
            Error::AlreadyExists { resource: row() },
            Error::Stale { resource: row(), current: "\"3\"".to_owned() },
        ] {
            let text = named(error, "tenants/a/endpoints/b").to_string();
            assert!(text.starts_with("tenants/a/endpoints/b "), "{text}");
        }
        let in_use = Error::Precondition {
            kind: Precondition::InUse,
            subject: row(),
            message: "is used".to_owned(),
        };
        assert!(
            matches!(named(in_use, "tenants/a"), Error::Precondition { subject, .. } if subject == "tenants/a")
        );
    }
}
