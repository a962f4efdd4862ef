-- Counts an attempt whose delivery was finished while it ran, so that the numbers of a later round have
-- no gap and no repeat.
update delivery_done set attempts = ?4 where tenant_id = ?1 and id = ?2 and attempts = ?3
