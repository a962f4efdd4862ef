-- The next events of a tenant in the order of their ids, without payloads.
-- $1 tenant, $2 first and $3 last id, $4 most rows. Cost: one walk of the primary key over the rows
-- answered.
select /* columns */ from event
where tenant_id = $1 and uid >= $2 and uid <= $3
order by uid
limit $4
