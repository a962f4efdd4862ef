//! Cumulative figures of all processes at one moment.

use crate::{
    clock,
    database::{Counters, Database},
    procfs,
    rig::Rig,
    server::Server,
};

/// CPU seconds and database counters so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// When the CPU times were read: the edge of the measured window.
    pub(crate) at_us: i64,
    pub(crate) server_cpu: f64,
    pub(crate) store_cpu: Option<f64>,
    pub(crate) publisher_cpu: f64,
    pub(crate) receiver_cpu: f64,
    pub(crate) counters: Option<Counters>,
    /// When the counters were read, a few milliseconds later.
    pub(crate) counters_at_us: i64,
}

impl Probe {
    pub(crate) async fn take(rig: &Rig) -> anyhow::Result<Self> {
        Self::of(&rig.server, rig.database.as_ref(), Some(rig.receiver.pid()?)).await
    }

    /// The same without a rig.
    pub(crate) async fn of(
        server: &Server,
        database: Option<&Database>,
        receiver: Option<u32>,
    ) -> anyhow::Result<Self> {
        let store_cpu = match database {
            Some(database) => database.cpu_seconds()?,
            None => None,
        };
        let mut probe = Self {
            at_us: clock::now_us(),
            server_cpu: procfs::cpu_seconds(server.pid()?)?,
            store_cpu,
            publisher_cpu: procfs::cpu_seconds(std::process::id())?,
            receiver_cpu: receiver.map_or(Ok(0.0), procfs::cpu_seconds)?,
            counters: None,
            counters_at_us: 0,
        };
        if let Some(database) = database {
            probe.counters = Some(database.counters().await?);
            probe.counters_at_us = clock::now_us();
        }
        Ok(probe)
    }
}
