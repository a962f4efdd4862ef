-- Subjects of deliveries that consumers of an endpoint have or gave back: nothing else of them may go out.
-- One range of delivery_pulled, two primary keys per row.
select e.subject from delivery d
join event e on e.tenant_id = d.tenant_id and e.uid = d.event_uid
where d.endpoint_id = ?1 and d.lease_token > 0 and e.subject is not null
