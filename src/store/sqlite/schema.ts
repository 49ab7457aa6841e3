/** The version of a new file; no earlier version was released. Each record is a row with the columns that queries need and the record as JSON. */
export const start = {
  version: 4,
  sql: `
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- Records that are held in memory whole: turns that have not ended, agents and their counts, beats, announcements, API keys, deleted sessions
-- whose journal is not erased yet. In the order in which each was first stored.
CREATE TABLE live (place INTEGER PRIMARY KEY, kind TEXT NOT NULL, id NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX live_by_id ON live (kind, id);

-- used: when it was used last; head: the bound from which on the head of its journal may be erased.
CREATE TABLE sessions (
  ordinal INTEGER PRIMARY KEY,
  session_id NOT NULL,
  agent NOT NULL,
  used INTEGER NOT NULL,
  head INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX sessions_by_id ON sessions (session_id);
CREATE INDEX sessions_by_agent ON sessions (agent, ordinal);

-- Entries that were appended in one batch, from first_seq on. The gateway's stream has the session 0.
CREATE TABLE journal (
  session INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (session, first_seq)
) WITHOUT ROWID;

CREATE TABLE summaries (session INTEGER PRIMARY KEY, body TEXT NOT NULL);

-- Turns that have ended, without their replies: the journal has these.
CREATE TABLE turns (turn_id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE events (
  ordinal INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL,
  agent NOT NULL,
  is_free INTEGER NOT NULL,
  ended_at INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX events_by_id ON events (event_id);
CREATE INDEX events_free ON events (agent, ordinal) WHERE is_free = 1;
CREATE INDEX events_ended ON events (ended_at, ordinal) WHERE ended_at IS NOT NULL;

CREATE TABLE deliveries (
  place INTEGER PRIMARY KEY,
  delivery_id TEXT NOT NULL,
  refused INTEGER NOT NULL,
  ended_order INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX deliveries_by_id ON deliveries (delivery_id);
CREATE INDEX deliveries_ended ON deliveries (refused, ended_order) WHERE ended_order IS NOT NULL;

CREATE TABLE idempotency_keys (key PRIMARY KEY, expires_at INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_end ON idempotency_keys (expires_at);

CREATE TABLE usage (counter PRIMARY KEY, hour INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX usage_by_hour ON usage (hour);
`,
};

/** Statements, in order, and never changed once released. The first upgrades a file from the version of `start` to the next. */
export const migrations: readonly string[] = [];
