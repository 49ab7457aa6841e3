import { migrations as known } from "#store/sqlite/schema.ts";

export { OLDEST, start } from "#store/sqlite/schema.ts";

/** Migrates a file to a future version: a column with a default, a table, an index. */
export const step = `
ALTER TABLE sessions ADD COLUMN label TEXT NOT NULL DEFAULT 'none';
CREATE TABLE labels (label TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO labels SELECT DISTINCT label FROM sessions;
CREATE INDEX sessions_by_label ON sessions (label);
`;

export const migrations: readonly string[] = [...known, step];
