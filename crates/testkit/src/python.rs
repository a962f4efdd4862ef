//! A Python with the gRPC packages, for examples in that language.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use turnbuckle_pg_harness::skip;

/// What the examples import, and what generates their messages.
const NEEDED: &str = "import grpc, grpc_tools";

/// The Python that `cargo xtask tools` made ready, else any on `PATH` that has the packages. Without one
/// the calling test is reported as skipped.
#[must_use]
pub fn with_grpc() -> Option<PathBuf> {
    let found = [installed(), Some("python3".into())].into_iter().flatten().find(|path| fits(path));
    if found.is_none() {
        skip::report("no Python with grpcio", "run `cargo xtask tools`");
    }
    found
}

/// Below the target directory of this test program, which lies in `debug/deps`.
fn installed() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(program.ancestors().nth(3)?.join("tools/venv/bin/python3"))
}

fn fits(python: &Path) -> bool {
    let mut look = Command::new(python);
    look.args(["-c", NEEDED]).stdout(Stdio::null()).stderr(Stdio::null());
    look.status().is_ok_and(|status| status.success())
}
