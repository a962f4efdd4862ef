-- Makes a live delivery due again under its lease, when it still stands where the turn began.
update delivery set attempts = ?4, due_at_us = ?5 where tenant_id = ?1 and id = ?2 and attempts = ?3
