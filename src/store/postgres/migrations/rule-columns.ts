/** What the rules ask of records: when the head of a journal may be erased, and in which order deliveries have ended. */
export const RULE_COLUMNS = /* sql */ `
-- Null: not before the next compaction. What is there is looked at once.
alter table sessions add column head_due bigint default 0;
create index sessions_by_use on sessions (least(updated_at, head_due));
alter table deliveries add column ended_order bigint;
create index deliveries_ended on deliveries ((kept = 'refused'), ended_order) where ended_order is not null;
create index turns_due on turns (ready_at) where ready_order is null and ready_at is not null;
`;
