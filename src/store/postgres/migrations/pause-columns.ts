/** Since when an agent is paused, by the wall clock; null where it is not. Beside its beat, which every gateway looks at. */
export const PAUSE_COLUMNS = /* sql */ `
alter table beats add column paused_at bigint;
`;
