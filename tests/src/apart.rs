//! Roles in processes of their own: a control plane, and nodes that follow it through a link which
//! can be cut.

use crate::{Home, Scene, Server, StoreKind, eventually};
use std::{path::Path, sync::Arc};
use turnbuckle_client::Client;
use turnbuckle_proto::v1::{ListNodesRequest, ListNodesResponse, Node};
use turnbuckle_testkit::{process::Process, proxy::Proxy};

/// Workers of these scenarios are replaced quickly.
const LEASE: [&str; 2] = ["--lease", "2s"];

/// A control plane on a database, and the link that its nodes use.
#[derive(Debug)]
pub struct Apart {
    /// The store.
    pub home: Arc<Home>,
    /// The control plane.
    pub control: Server,
    /// Between the nodes and the control plane.
    pub link: Proxy,
}

impl Apart {
    /// Starts a control plane; none where there is no Postgres.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start() -> anyhow::Result<Option<Self>> {
        match Home::new(StoreKind::Postgres).await? {
            Some(home) => Ok(Some(Self::start_in(&home).await?)),
            None => Ok(None),
        }
    }

    /// Starts a control plane on a store that exists.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start_in(home: &Arc<Home>) -> anyhow::Result<Self> {
        let control = control(home).await?;
        let link = Proxy::start(control.api).await?;
        Ok(Self { home: Arc::clone(home), control, link })
    }

    /// Starts another control plane in the place of the one before.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn restart_control(&mut self) -> anyhow::Result<()> {
        self.control = control(&self.home).await?;
        self.link.lead_to(self.control.api);
        Ok(())
    }

    /// Starts one more control plane; nobody is led to it.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn another_control(&self) -> anyhow::Result<Server> {
        control(&self.home).await
    }

    /// Starts a node that follows through the link.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn node(&self, role: &str, name: &str) -> anyhow::Result<Server> {
        let options = self.node_options(role, name)?;
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        Server::start_in(&self.home, &options).await
    }

    /// Starts a node and waits for nothing.
    ///
    /// # Errors
    /// When there is no program.
    pub fn spawn_node(&self, role: &str, name: &str) -> anyhow::Result<Process> {
        let options = self.node_options(role, name)?;
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        Server::spawn(&self.home, &[&crate::server::ALLOW_LOOPBACK, options.as_slice()].concat())
    }

    /// The options of a node; its directory and its token are its own.
    ///
    /// # Errors
    /// When its token cannot be made.
    pub fn node_options(&self, role: &str, name: &str) -> anyhow::Result<Vec<String>> {
        let directory = self.home.directory(name);
        std::fs::create_dir_all(&directory)?;
        let token = directory.join("node.token");
        std::fs::write(&token, self.home.token_of(&format!("{role}/{name}"), "node", None)?)?;
        let url = format!("http://{}", self.link.address());
        let text = |path: &Path| path.display().to_string();
        let mut options: Vec<String> = LEASE.map(str::to_owned).into();
        for (option, value) in [
            ("--roles", role.to_owned()),
            ("--control-plane-url", url),
            ("--node-name", name.to_owned()),
            ("--node-token-file", text(&token)),
            ("--data-dir", text(&directory)),
        ] {
            options.extend([option.to_owned(), value]);
        }
        Ok(options)
    }

    /// What the control plane knows of nodes.
    ///
    /// # Errors
    /// The server's.
    pub async fn nodes(&self) -> anyhow::Result<ListNodesResponse> {
        nodes(&self.control.client().await?).await
    }

    /// What it knows of one.
    ///
    /// # Errors
    /// When it knows none of that name.
    pub async fn node_of(&self, name: &str) -> anyhow::Result<Option<Node>> {
        let name = format!("nodes/{name}");
        Ok(self.nodes().await?.nodes.into_iter().find(|node| node.name == name))
    }

    /// Waits until this many live nodes work by everything there is.
    ///
    /// # Errors
    /// When they do not.
    pub async fn applied(&self, count: usize) -> anyhow::Result<()> {
        let client = self.control.client().await?;
        let revision = nodes(&client).await?.revision;
        eventually(&format!("{count} nodes work by revision {revision}"), async || {
            let list = nodes(&client).await?;
            let has = |node: &&Node| {
                node.live && node.epoch == list.epoch && node.applied_revision >= revision
            };
            Ok((list.nodes.iter().filter(has).count() >= count).then_some(()))
        })
        .await
    }

    /// The tenant of the scenario, as the control plane sees it.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn scene(&self) -> anyhow::Result<Scene> {
        Scene::set(&self.control).await
    }
}

async fn control(home: &Arc<Home>) -> anyhow::Result<Server> {
    Server::start_in(home, &["--roles", "control-plane"]).await
}

async fn nodes(client: &Client) -> anyhow::Result<ListNodesResponse> {
    Ok(client.nodes().list_nodes(ListNodesRequest::default()).await?.into_inner())
}
