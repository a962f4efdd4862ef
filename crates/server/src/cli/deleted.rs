//! Arguments about deleted resources.

use super::common::{DryRun, GuardedTarget, ListArgs};

/// The resource to show.
#[derive(Clone, Debug, clap::Args)]
pub struct FindTarget {
    /// Name, short (`orders-hook`) or full (`tenants/acme/…/orders-hook`).
    pub name: String,
    /// Show the one of this name that was deleted last when none lives.
    #[arg(long)]
    pub show_deleted: bool,
}

/// The resources to show.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FindArgs {
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
    /// Show deleted ones too: they can be undeleted for 30 days.
    #[arg(long)]
    pub show_deleted: bool,
}

/// The deleted resource to bring back.
#[derive(Clone, Debug, clap::Args)]
pub struct UndeleteArgs {
    /// Which one; of several deleted ones of a name, the last.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// Which of several deleted ones, by its uid.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub uid: String,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}
