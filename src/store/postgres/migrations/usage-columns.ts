/** Of what was used: tokens that models had read before, those of their reasoning, and costs in billionths. Most have none of them. */
export const USAGE_COLUMNS = /* sql */ `
-- The three in this order; null where all of them are 0.
alter table turns add column more bigint[];
alter table sessions add column more bigint[];
-- Of a turn's end: [more, the model that answered where it is not the one that was asked for]; null where there is neither.
alter table entries add column used json;
alter table usage_counts
  add column cached bigint not null default 0,
  add column reasoning bigint not null default 0,
  add column cost bigint not null default 0;
`;
