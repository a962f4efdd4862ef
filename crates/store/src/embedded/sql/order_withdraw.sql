-- Removes what order_file.sql has filed.
delete from delivery
where tenant_id = ?1 and id >= ?2 and id <= ?3 and event_uid = ?4 and due_at_us = ?5 and attempts = 0
