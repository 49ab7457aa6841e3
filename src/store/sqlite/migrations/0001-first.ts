/** Numbers of a turn or a session that change are in `body`, as JSON in the order in which its codec writes them. */
export const first = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE agents (agent TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE sessions (
  ordinal INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL,
  agent TEXT NOT NULL,
  -- Of a webhook's session 1: these have a retention of their own.
  webhook INTEGER NOT NULL,
  -- The minute in which it was used last, and that at which the head of its journal may be cut.
  used INTEGER NOT NULL,
  head INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX sessions_by_id ON sessions (session_id);
CREATE INDEX sessions_by_agent ON sessions (agent, ordinal);
CREATE INDEX sessions_by_use ON sessions (webhook, used);
CREATE INDEX sessions_by_head ON sessions (webhook, head) WHERE head IS NOT NULL;

-- Entries that were appended together; their seqs end with last_seq.
CREATE TABLE journal (
  session INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (session, last_seq)
) WITHOUT ROWID;

-- Sessions that are gone and of which some of the journal is left.
CREATE TABLE erasing (session INTEGER PRIMARY KEY);

CREATE TABLE summaries (session INTEGER PRIMARY KEY, body TEXT NOT NULL);

-- Turns that have not ended, in the order of their coming.
CREATE TABLE open_turns (place INTEGER PRIMARY KEY, session INTEGER NOT NULL, body TEXT NOT NULL);

-- Turns that have ended.
CREATE TABLE turns (turn_id TEXT PRIMARY KEY, session INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
`;
