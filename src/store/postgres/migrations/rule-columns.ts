/** What the rules ask of records: when the head of a journal may be erased. */
export const RULE_COLUMNS = /* sql */ `
-- Null: not before the next compaction. What is there is looked at once.
alter table sessions add column head_due bigint default 0;
create index sessions_by_use on sessions (least(updated_at, head_due));
create index turns_due on turns (ready_at) where ready_order is null and ready_at is not null;
`;
