/** An id as it fits a narrow place: both ends, and a sign for what lies between. */
export function shortId(id: string, most = 18): string {
  if (id.length <= most) return id;
  const tail = 4;
  return `${id.slice(0, most - tail - 1)}…${id.slice(-tail)}`;
}

const KINDS = { dlv: "delivery", turn: "turn", evt: "event", msg: "message", req: "request", key: "key" } as const;
type IdKind = (typeof KINDS)[keyof typeof KINDS] | "notification";
/** The id of an event that is notified, and with a dot and its endpoint the id of a notification. */
const NOTIFICATION = /^ntf_[\w-]+(?:\.\S+)?$/;

/** The kind of thing that an id of ours names; undefined for any other text. */
export function kindOfId(text: string): IdKind | undefined {
  if (NOTIFICATION.test(text)) return "notification";
  const [, prefix = ""] = /^([a-z]+)_[0-9A-HJKMNP-TV-Z]{20,}$/.exec(text) ?? [];
  return Object.hasOwn(KINDS, prefix) ? KINDS[prefix as keyof typeof KINDS] : undefined;
}

/** Says if a text can be an id: of ours, of a session, or one that a sender gave. */
export function looksLikeId(text: string): boolean {
  return (
    text.length >= 6 &&
    text.length <= 256 &&
    !/\s/.test(text) &&
    (kindOfId(text) !== undefined || /[:_\-\d]/.test(text))
  );
}

/** The session of the console with an agent, and a new one. Both start with their first message. */
export function consoleSession(agent: string): string {
  return `agent:${agent}:console:console`;
}
export function newConsoleSession(agent: string, now = Date.now()): string {
  return `console:${agent}:${now.toString(36)}`;
}

/** The agent of a session of the console that may not exist yet; undefined for any other session. */
export function agentOfNew(sessionId: string): string | undefined {
  const [, named, other] = /^(?:agent:([^:]+):console:console|console:([^:]+):[\w-]+)$/.exec(sessionId) ?? [];
  return named ?? other;
}
