-- Ends a lease that still holds: the delivery waits again.
update delivery set attempts = ?5, due_at_us = ?6, leased_at_us = null
where tenant_id = ?1 and id = ?2 and attempts = ?3 and lease_token = ?4 and leased_at_us is not null
