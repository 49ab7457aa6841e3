import { createHash } from "node:crypto";
import { GatewayError } from "#kit/errors.ts";
import { newBareId } from "#kit/ids.ts";

/** A caller's description of the session it wants. */
type SessionRequest = {
  agent: string;
  sessionId?: string | undefined;
  channel?: string | undefined;
  userId?: string | undefined;
};

export type SessionPlace = { sessionId: string; agent: string; channel: string; userId: string };

const ID_LIMIT = 256;

/**
 * `agent:<agent>:<channel>:<userId>`, every part percent-encoded, so that two places never share an id. If the id would be too long,
 * the user is replaced by a hash, and if necessary the channel too.
 */
export function placeOf(request: SessionRequest, channelOfSurface: string, caller: string): SessionPlace {
  const { agent, channel = channelOfSurface, userId = caller } = request;
  return { sessionId: request.sessionId ?? idOf(agent, channel, userId), agent, channel, userId };
}

function idOf(agent: string, channel: string, userId: string): string {
  const ofChannel = `agent:${encode(agent)}:${encode(channel)}`;
  const id = `${ofChannel}:${encode(userId)}`;
  if (id.length <= ID_LIMIT) return id;
  const hashed = `${ofChannel}:${hash(userId)}`;
  return hashed.length <= ID_LIMIT ? hashed : `agent:${encode(agent)}:${hash(channel)}:${hash(userId)}`;
}

/** The session of a chat request. Without a session and a user, it is a new session. */
export function placeOfChat(request: SessionRequest, caller: string, now: number): SessionPlace {
  return request.sessionId === undefined && request.userId === undefined
    ? { sessionId: `chat:${newBareId(now)}`, agent: request.agent, channel: request.channel ?? "rest", userId: caller }
    : placeOf(request, "rest", caller);
}

/** The session of an agent's heartbeats. */
export function mainSessionOf(agent: string): string {
  return `agent:${encode(agent)}:main`;
}

/** The part of a session id that names its agent; undefined for an id that names none. */
export function agentPartOf(sessionId: string): string | undefined {
  return /^agent:([^:]*)/.exec(sessionId)?.[1];
}
export function isPartOf(agent: string, part: string): boolean {
  return encode(agent) === part;
}

// A leading tilde is encoded, because it marks a hash. `toWellFormed` is needed because encodeURIComponent throws on a lone surrogate.
function encode(part: string): string {
  return encodeURIComponent(part.toWellFormed()).replace(/^~/, "%7E");
}
function hash(part: string): string {
  return `~${createHash("sha256").update(part).digest("base64url")}`;
}

/**
 * Creates a check that rejects names from a caller (of a session, a user, a model or a channel) that contain a secret of the configuration. Names
 * are stored unchanged, because later calls find sessions and turns by them. `hide` returns a text without such secrets.
 */
export function createNameCheck(hide: (text: string) => string) {
  return (error: "invalid-request" | "invalid-params", names: Record<string, string | null | undefined>): void => {
    for (const field in names) {
      const name = names[field];
      if (name == null || hide(name) === name) continue;
      const message = `contains the value of a variable of the gateway's configuration, which must not be stored in names`;
      const remedy =
        "Use another name. If the value is not a secret, write it into the configuration in place of the variable.";
      const errors = [{ pointer: `/${field}`, message: `${message}.` }];
      throw new GatewayError(error, `\`${field}\` ${message}. ${remedy}`, { errors });
    }
  };
}
