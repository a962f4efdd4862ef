//! The name resolution port and the system's resolver behind it.

use async_trait::async_trait;
use std::{io, net::IpAddr};

/// Resolves names to addresses. The guard bounds its time and judges its answers.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of the name, of both families.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Asks the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        // The port is not part of the question; the call wants one.
        let answers = tokio::net::lookup_host((name, 0)).await?;
        Ok(answers.map(|answer| answer.ip()).collect())
    }
}
