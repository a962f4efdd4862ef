-- Leases a delivery to a consumer.
update delivery set due_at_us = ?3, leased_at_us = ?4, lease_token = ?5
where tenant_id = ?1 and id = ?2
