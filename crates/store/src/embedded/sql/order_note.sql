-- Notes with an event how it stood to the order of its subject: one probe of the primary key.
update event set event_order = ?3 where tenant_id = ?1 and uid = ?2
