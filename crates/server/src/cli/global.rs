//! Options of every command, and the session they open.

use super::{
    names,
    output::{Format, Output},
    values::Span,
};
use anyhow::Context as _;
use std::{ffi::OsString, path::PathBuf};
use turnbuckle_client::{Client, ClientOptions, TokenSource};

/// Where a server with an embedded store, started in the same directory, leaves its admin token.
const DEFAULT_TOKEN_FILE: &str = "turnbuckle-data/admin.token";

/// Options of every command that talks to a server.
#[derive(Clone, clap::Args)]
pub struct GlobalArgs {
    /// URL of the server's gRPC port.
    #[arg(
        long,
        global = true,
        env = "TURNBUCKLE_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:7420",
        help_heading = "Connection"
    )]
    pub server: String,
    /// Bearer token [env: TURNBUCKLE_TOKEN]. Other users of this machine can see it: prefer
    /// --token-file.
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        conflicts_with = "token_file",
        help_heading = "Connection"
    )]
    pub token: Option<String>,
    /// File with the bearer token [env: TURNBUCKLE_TOKEN_FILE] [default:
    /// ./turnbuckle-data/admin.token if it is there].
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub token_file: Option<PathBuf>,
    /// PEM file with certificate authorities that the server's certificate may come from, besides the
    /// public ones.
    #[arg(
        long,
        global = true,
        env = "TURNBUCKLE_CA_FILE",
        value_name = "FILE",
        help_heading = "Connection"
    )]
    pub ca_file: Option<PathBuf>,
    /// Tenant that short names belong to.
    #[arg(
        long,
        global = true,
        env = "TURNBUCKLE_TENANT",
        value_name = "TENANT",
        default_value = "default",
        help_heading = "Connection"
    )]
    pub tenant: String,
    /// Longest time for one call.
    #[arg(
        long,
        global = true,
        value_name = "DURATION",
        default_value = "10s",
        help_heading = "Connection"
    )]
    pub timeout: Span,
    /// How data is written to stdout. Notes go to stderr.
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    pub output: Format,
}

impl std::fmt::Debug for GlobalArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GlobalArgs")
            .field("server", &self.server)
            .field("token_file", &self.token_file)
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}

/// A connected client, the tenant, and where to write.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// `tenants/{tenant}`.
    pub(crate) parent: String,
    pub(crate) output: Output,
}

impl Session {
    pub(crate) async fn open(args: &GlobalArgs) -> anyhow::Result<Self> {
        let parent = names::tenant(&args.tenant)?;
        let client = Client::connect(ClientOptions {
            token: args.token_source(),
            deadline: args.timeout.0,
            ca_pem: args.ca_pem()?,
            ..ClientOptions::new(args.server.clone())
        })
        .await?;
        Ok(Self { client, parent, output: Output::standard(args.output)? })
    }
}

/// Whether a server's URL names this machine.
fn is_loopback(server: &str) -> bool {
    let uri: Option<http::Uri> = server.parse().ok();
    let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default();
    let address: Option<std::net::IpAddr> =
        host.trim_start_matches('[').trim_end_matches(']').parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

impl GlobalArgs {
    fn ca_pem(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(path) = &self.ca_file else { return Ok(None) };
        let pem = std::fs::read(path);
        Ok(Some(pem.with_context(|| format!("cannot read --ca-file {}", path.display()))?))
    }

    /// The environment is read here and not by the parser, which would take a token in the
    /// environment and a file in the arguments for a conflict.
    fn token_source(&self) -> Option<TokenSource> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        self.given_token(set("TURNBUCKLE_TOKEN"), set("TURNBUCKLE_TOKEN_FILE")).or_else(|| {
            let default = PathBuf::from(DEFAULT_TOKEN_FILE);
            // It opens the server of this machine, and is nothing for others to see.
            let is_local = is_loopback(&self.server) && default.is_file();
            is_local.then_some(TokenSource::File(default))
        })
    }

    fn given_token(&self, token: Option<OsString>, file: Option<OsString>) -> Option<TokenSource> {
        let text = |token: OsString| TokenSource::Text(token.to_string_lossy().into_owned());
        let argument = self.token.clone().map(TokenSource::Text);
        argument
            .or_else(|| self.token_file.clone().map(TokenSource::File))
            .or_else(|| token.map(text))
            .or_else(|| file.map(|path| TokenSource::File(path.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Root {
        #[command(flatten)]
        global: GlobalArgs,
    }

    #[test]
    fn arguments_win_over_the_environment_and_a_token_over_a_file() {
        let given = |line: &str, token: Option<&str>, file: Option<&str>| {
            let root = Root::try_parse_from(line.split(' ')).unwrap();
            root.global.given_token(token.map(Into::into), file.map(Into::into))
        };
        let (text, file) =
            (|t: &str| TokenSource::Text(t.into()), |f: &str| TokenSource::File(f.into()));
        assert_eq!(given("x --token-file f", Some("t"), None), Some(file("f")));
        assert_eq!(given("x --token a", Some("t"), Some("f")), Some(text("a")));
        assert_eq!(given("x", Some("t"), Some("f")), Some(text("t")));
        assert_eq!(given("x", None, Some("f")), Some(file("f")));
        assert_eq!(given("x", None, None), None);
    }
}
