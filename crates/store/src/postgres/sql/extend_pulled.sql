-- Moves the ends of leases that still hold; answers their deliveries.
-- $1 tenants, $2 deliveries, $3 tokens, $4 the new ends. Cost: one non-HOT update per lease.
update delivery d set due_at_us = i.until_us
from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[])
  as i (tenant_id, id, lease_token, until_us)
where d.tenant_id = i.tenant_id and d.id = i.id and d.lease_token = i.lease_token
  and d.leased_at_us is not null
returning d.id
