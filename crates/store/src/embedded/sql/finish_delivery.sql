-- Removes a live delivery under its lease, when it still stands where the turn began.
delete from delivery
where tenant_id = ?1 and id = ?2 and attempts = ?3
returning endpoint_id, event_uid, format
