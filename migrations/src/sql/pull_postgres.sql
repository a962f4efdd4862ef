-- Pull endpoints, and leases of their deliveries.

-- Set together for a pull endpoint, null for one with a URL.
alter table endpoint add column pull_lease_us bigint
  check (pull_lease_us between 5000000 and 600000000);
alter table endpoint add column pull_max_outstanding integer
  check (pull_max_outstanding between 1 and 1000);
alter table endpoint add column pull_ordered smallint check (pull_ordered in (0, 1));
alter table endpoint add constraint endpoint_pull_check check (
  (pull_lease_us is null) = (pull_max_outstanding is null)
  and (pull_lease_us is null) = (pull_ordered is null)
);

-- A leased delivery is due when its lease ends, so the queue's own index hides it until then. Every claim
-- gives a greater token; 0 means that no consumer ever had it. The index has only rows that some
-- consumer had: what is out or was given back, never the backlog and never a row of an HTTP endpoint.
alter table delivery add column lease_token bigint not null default 0;
alter table delivery add column leased_at_us bigint;
create index delivery_pulled on delivery (endpoint_id) where lease_token > 0;

-- A consumer's acknowledgement is a delivery without a status code. The check becomes wider, so what is
-- there need not be read again.
alter table attempt drop constraint attempt_check;
alter table attempt add constraint attempt_status_fits check (
  (outcome <> 'refused' or status is not null)
  and (status is null or outcome in ('delivered', 'refused'))
) not valid;
