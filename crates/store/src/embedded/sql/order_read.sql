-- The state of one subject: one probe of the primary key.
select last_sequence, last_due_us, is_final, held, forget_at_us from subject_order
where tenant_id = ?1 and source = ?2 and subject = ?3
