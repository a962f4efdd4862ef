-- One entry in one tree; ids grow with time, so it lands at a tenant's end.
insert into event (tenant_id, uid, source, event_id, event_type, event_version, subject, sequence,
                   content_type, occurred_at_us, accepted_at_us, data, channels)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
