-- Moves the end of a lease that still holds.
update delivery set due_at_us = ?4
where tenant_id = ?1 and id = ?2 and lease_token = ?3 and leased_at_us is not null
