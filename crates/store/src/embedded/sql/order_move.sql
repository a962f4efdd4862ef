-- Moves the deliveries of an event that waited, where they still stand as they were left: one that was
-- cancelled has no row any more, one that was retried is due at another time, one that was tried has
-- attempts. Cost: a narrow range of the primary key, and delivery_due for each delivery.
update delivery set due_at_us = ?6
where tenant_id = ?1 and id >= ?2 and id <= ?3 and event_uid = ?4 and due_at_us = ?5 and attempts = 0
returning endpoint_id
