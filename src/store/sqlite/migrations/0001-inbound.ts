/** What comes in. Free text that the driver would spoil goes as bytes (see `text.ts`); what is JSON needs no such care. */
export const inbound = `
-- state: 0 waits, or a turn works on it (that is the turn's to say), 1 handled, 2 dead. body: what never changes, as JSON, as reason is.
CREATE TABLE events (
  ordinal INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL,
  agent TEXT NOT NULL,
  state INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER,
  turn_id TEXT,
  reason TEXT,
  delivery_id TEXT,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX events_by_id ON events (event_id);
CREATE INDEX events_waiting ON events (agent, ordinal) WHERE state = 0;
CREATE INDEX events_ended ON events (ended_at) WHERE ended_at IS NOT NULL;

-- Entries of the gateway's stream that were appended together; their seqs end with last_seq. first_seq: the oldest that was kept then.
CREATE TABLE gateway_entries (last_seq INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, body TEXT NOT NULL);

-- The recorder's ring. kind: 0 of a turn, 1 of an event, others by their answer. info: what a list shows; more: headers and steps.
CREATE TABLE deliveries (
  place INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  info TEXT NOT NULL,
  more TEXT NOT NULL,
  body
);

-- In the order in which they were kept, which is that of their ends.
CREATE TABLE idempotency_keys (
  place INTEGER PRIMARY KEY,
  key NOT NULL,
  hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  turn_id TEXT,
  event_id TEXT
);
CREATE UNIQUE INDEX idempotency_keys_by_key ON idempotency_keys (key);

-- due and lease_ends are monotonic times, to which the wall clock as the process began is added.
-- told_at: when, by the wall clock, it is or was to begin.
CREATE TABLE beats (
  agent TEXT PRIMARY KEY,
  due REAL,
  told_at REAL,
  asked INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  node TEXT NOT NULL DEFAULT '',
  fence INTEGER NOT NULL DEFAULT 0,
  lease_ends REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- state: 0 can be claimed, 1 claimed, 2 waits until it is due.
CREATE TABLE announcements (
  place INTEGER PRIMARY KEY,
  turn_id TEXT NOT NULL,
  session INTEGER NOT NULL,
  channel NOT NULL,
  state INTEGER NOT NULL DEFAULT 0,
  due REAL NOT NULL DEFAULT 0,
  node TEXT NOT NULL DEFAULT '',
  fence INTEGER NOT NULL DEFAULT 0,
  lease_ends REAL NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX announcements_by_turn ON announcements (turn_id);
CREATE INDEX announcements_by_session ON announcements (session);
CREATE INDEX announcements_ready ON announcements (channel, place) WHERE state = 0;
CREATE INDEX announcements_delayed ON announcements (due) WHERE state = 2;
CREATE INDEX announcements_claimed ON announcements (lease_ends) WHERE state = 1;

CREATE TABLE usage_counters (
  hour INTEGER NOT NULL,
  agent NOT NULL,
  model NOT NULL,
  surface TEXT NOT NULL,
  caller NOT NULL,
  messages INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  latency_ms REAL NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  PRIMARY KEY (hour, agent, model, surface, caller)
) WITHOUT ROWID;

CREATE TABLE api_keys (place INTEGER PRIMARY KEY, key_id TEXT NOT NULL UNIQUE, last_used_at INTEGER, body TEXT NOT NULL);
`;
