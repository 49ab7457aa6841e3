/** Of what counters count: tokens that models had read before, those of their reasoning, and costs in billionths. */
export const usage = `
ALTER TABLE usage_counters ADD COLUMN cached INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_counters ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_counters ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
`;
