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

/** Replaces the `events` of a beat's turn with a task, and the lease of a running beat with its turn. A running beat without a turn becomes due. */
const BEATS_AS_TURNS = `
UPDATE live SET body = json_remove(
  json_set(body, '$.open.task', json_set(json_extract(body, '$.open.events'), '$.kind', 'beat')), '$.open.events')
WHERE kind = 'turn' AND json_extract(body, '$.open.events') IS NOT NULL;

CREATE TEMP TABLE runs AS SELECT json_extract(body, '$.turn.agent') AS agent, max(id) AS turn_id, json_object(
  'began', unixepoch() * 1000,
  'through', coalesce((SELECT json_extract(value, '$.numbers.event') FROM meta WHERE name = 'state'), 0),
  'after', coalesce((SELECT max(ordinal) FROM events WHERE event_id IN (SELECT value FROM json_each(live.body, '$.open.task.ids'))), 0),
  'events', json_array_length(body, '$.open.task.ids'),
  'returned', 0,
  'turnIds', json_array(id),
  'openTurnId', id,
  'dead', json_array(),
  'isLast', json('false')) AS run
FROM live WHERE kind = 'turn' AND json_extract(body, '$.open.task') IS NOT NULL GROUP BY agent;
UPDATE live SET body = json_remove(json_set(body, '$.run', json((SELECT run FROM runs WHERE agent = id))), '$.lease', '$.fence')
WHERE kind = 'beat' AND json_extract(body, '$.lease') IS NOT NULL AND id IN (SELECT agent FROM runs);
UPDATE live SET body = json_remove(json_set(body, '$.dueAt', 0), '$.lease')
WHERE kind = 'beat' AND json_extract(body, '$.lease') IS NOT NULL;
UPDATE live SET body = json_remove(body, '$.fence') WHERE kind = 'beat';
DROP TABLE runs;

-- A kind has the name of its table.
UPDATE live SET kind = CASE kind WHEN 'turn' THEN 'open_turns' WHEN 'agent' THEN 'agents' WHEN 'counts' THEN 'agent_counts' WHEN 'beat' THEN 'beats'
  WHEN 'announcement' THEN 'announcements' WHEN 'key' THEN 'api_keys' WHEN 'erasure' THEN 'erasures' ELSE 'late_attempts' END;

UPDATE live SET body = json_object('agent', body ->> '$.agent', 'queued', ifnull(body ->> '$.counts.queued', 0), 'running', ifnull(body ->> '$.counts.running', 0),
  'compactions', 0, 'waitingEvents', ifnull(body ->> '$.counts.waitingEvents', 0), 'openEvents', ifnull(body ->> '$.counts.openEvents', 0),
  'deadEvents', ifnull(body ->> '$.counts.deadEvents', 0)) WHERE kind = 'agent_counts';
UPDATE live SET body = '{"key":' || body || ',"place":' || (place - 1 - (SELECT max(place) FROM live)) || '}' WHERE kind = 'api_keys';

-- The content of a delivery. A size is counted in characters of the text that JSON escapes, as the text itself may have a NUL.
CREATE TABLE contents (place INTEGER PRIMARY KEY, body TEXT NOT NULL);
INSERT INTO contents SELECT place, '{"place":' || place || ',"headers":' || (body -> '$.delivery.headers') ||
  ifnull(',"body":' || (body -> '$.delivery.body'), '') || '}' FROM deliveries;
UPDATE deliveries SET body = json_set(json_remove(body, '$.delivery.headers', '$.delivery.body'),
  '$.contentBytes', length(replace(escaped, '\\', '')) - 2 * (length(escaped) - length(replace(escaped, '\\u', ''))),
  '$.delivery.showsWords', json(ifnull(body -> '$.delivery.showsWords', iif(body -> '$.delivery.body' IS NULL, 'false', 'true'))))
FROM (SELECT at, replace(substr(headers, 2, length(headers) - 2) || substr(content, 2, length(content) - 2), '\\\\', 'x') AS escaped FROM
  (SELECT place AS at, body -> '$.delivery.headers' AS headers, ifnull(body -> '$.delivery.body', '""') AS content FROM deliveries))
WHERE at = place;

DROP INDEX usage_by_hour;
ALTER TABLE usage DROP COLUMN hour;

UPDATE meta SET value = json_remove(json_set(value, '$.version', 0, '$.open', (SELECT json_object('queued', ifnull(sum(body ->> '$.queued'), 0),
  'running', ifnull(sum(body ->> '$.running'), 0), 'compactions', 0, 'waitingEvents', ifnull(sum(body ->> '$.waitingEvents'), 0), 'openEvents', ifnull(sum(body ->> '$.openEvents'), 0),
  'deadEvents', ifnull(sum(body ->> '$.deadEvents'), 0)) FROM live WHERE kind = 'agent_counts'),
  '$.announcements', (SELECT count(*) FROM live WHERE kind = 'announcements')), '$.bookmarks') WHERE name = 'state';
`;

/** Statements, in order, and never changed once released. The first upgrades a file from the version of `start` to the next. */
export const migrations: readonly string[] = [BEATS_AS_TURNS];
