-- The tables of a SQLite file of version 1.
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

-- Incoming work. Free text that the driver would spoil goes as bytes (see `text.ts`); JSON needs no such care.
-- Events that were queued together, each with an ordinal of its own from first on. head: ids, agents and deliveries, body: what each holds;
-- both are JSON, with an empty place for one that is gone. top: the greatest id in it and in those before it.
CREATE TABLE events (first INTEGER PRIMARY KEY, top TEXT NOT NULL, head TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX events_by_top ON events (top);

-- How they are, run by run: of each its length, its state (1 handled, 2 dead, 3 gone), and what goes with that; the length alone where they
-- wait as they came. (A turn works on one: that is the turn's to say.) open: those that have not ended; ended: when the first of the others did.
CREATE TABLE event_states (first INTEGER PRIMARY KEY, open INTEGER NOT NULL, ended INTEGER, body TEXT NOT NULL);
CREATE INDEX event_states_ended ON event_states (ended) WHERE ended IS NOT NULL;

-- Where events are whose ids do not come in order.
CREATE TABLE event_places (event_id TEXT PRIMARY KEY, first INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX event_places_by_first ON event_places (first);

-- Entries of the gateway's stream that were appended together; their seqs end with last_seq. first_seq: the oldest that was kept then.
CREATE TABLE gateway_entries (last_seq INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, body TEXT NOT NULL);

-- The recorder's ring: deliveries that were recorded together, each with a place of its own from first on. head: their ids, kinds and
-- weights, body: each as JSON, or 0.
CREATE TABLE deliveries (first INTEGER PRIMARY KEY, head TEXT NOT NULL, body TEXT NOT NULL);

-- Places of those that were let go before the others.
CREATE TABLE deliveries_gone (first INTEGER PRIMARY KEY, places TEXT NOT NULL);

-- All steps of one to which some were added.
CREATE TABLE delivery_steps (place INTEGER PRIMARY KEY, steps TEXT NOT NULL);

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
