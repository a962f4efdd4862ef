-- Nodes and the epoch of the configuration; see nodes_postgres.sql for the reasons.

alter table config_revision add column epoch blob check (length(epoch) = 16);
update config_revision set epoch = randomblob(16);

create table node (
  role              text    not null check (role in ('delivery', 'ingress')),
  name              text    not null check (length(name) between 1 and 63),
  epoch             blob    not null check (length(epoch) = 16),
  applied           integer not null check (applied >= 0),
  reported_at_us    integer not null,
  started_at_us     integer not null,
  version           text    not null check (length(version) <= 63),
  staleness_us      integer not null check (staleness_us >= 0),
  refused           text    not null,
  held_epoch        blob    check (length(held_epoch) = 16),
  held_revision     integer,
  held_present      integer,
  held_removed      integer,
  accepted_epoch    blob    check (length(accepted_epoch) = 16),
  accepted_revision integer,
  primary key (role, name)
) strict, without rowid;
