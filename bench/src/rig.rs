//! The processes of one run.

use crate::{
    args::{DeliverArgs, StoreKind},
    database::Database,
    receiver::ReceiverProcess,
    server::{Server, find_program},
    setup,
    targets::Targets,
};

/// Everything that runs besides the publisher.
pub(crate) struct Rig {
    pub(crate) targets: Targets,
    /// `tenants/{tenant}` that events are published to.
    pub(crate) parent: String,
    // Stopped in this order: the server before its database.
    pub(crate) server: Server,
    pub(crate) receiver: ReceiverProcess,
    pub(crate) database: Option<Database>,
}

impl Rig {
    /// Starts what the run needs and registers its endpoints.
    pub(crate) async fn start(args: &DeliverArgs) -> anyhow::Result<Self> {
        args.check()?;
        let program = find_program(args.server_bin.as_ref())?;
        let targets = Targets { endpoints: args.endpoints, hang: args.hang, fan_out: args.fan_out };
        let database = match args.store {
            StoreKind::Postgres => Some(Database::prepare(args.database_url.as_ref()).await?),
            StoreKind::Embedded => None,
        };
        let receiver = ReceiverProcess::start(args.endpoints, args.hang).await?;
        let server = Server::start(&program, database.as_ref().map(Database::url)).await?;
        // A database may see several runs, so each has a tenant of its own.
        let tenant = format!("bench-{}", uuid::Uuid::now_v7().simple());
        let parent = setup::register(
            server.url(),
            &tenant,
            targets,
            receiver.ports(),
            args.endpoint_in_flight,
        )
        .await?;
        Ok(Self { targets, parent, server, receiver, database })
    }
}
