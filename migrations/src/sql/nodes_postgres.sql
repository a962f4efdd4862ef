-- Names the history that revisions belong to. Random, so that a store made anew, or set back, is
-- told from the one before: revisions of two histories cannot be compared.
alter table config_revision add column epoch uuid;
update config_revision set epoch = gen_random_uuid();

-- What each process that works by the configuration last said of itself. One row for each node and
-- role; rows of nodes that are silent for long are deleted.
create table node (
  role              text   not null check (role in ('delivery', 'ingress')),
  name              text   collate "C" not null check (length(name) between 1 and 63),
  epoch             uuid   not null,
  -- The revision that is in use there.
  applied           bigint not null check (applied >= 0),
  -- By the control plane's clock.
  reported_at_us    bigint not null,
  started_at_us     bigint not null,
  version           text   not null check (length(version) <= 63),
  -- How long ago it was last proved there that nothing newer is committed.
  staleness_us      bigint not null check (staleness_us >= 0),
  -- JSON: [{"kind", "uid", "revision", "reason"}].
  refused           text   not null,
  -- A snapshot that the node holds back, all or none.
  held_epoch        uuid,
  held_revision     bigint,
  held_present      bigint,
  held_removed      bigint,
  -- The snapshot that an operator lets it apply; both or none. A report leaves them as they are.
  accepted_epoch    uuid,
  accepted_revision bigint,
  primary key (role, name)
);
