import { newBareId } from "./ids.ts";

/** What a caller says of the session it wants. */
export type SessionWish = {
  agent: string;
  sessionId?: string | undefined;
  channel?: string | undefined;
  userId?: string | undefined;
};

export type SessionPlace = { sessionId: string; agent: string; channel: string; userId: string };

/** `agent:<agent>:<channel>:<userId>`, every part percent-encoded, so that no two places share an id. */
export const placeOf = (wish: SessionWish, channelOfSurface: string, caller: string): SessionPlace => {
  const { agent, channel = channelOfSurface, userId = caller } = wish;
  const sessionId = wish.sessionId ?? `agent:${encode(agent)}:${encode(channel)}:${encode(userId)}`;
  return { sessionId, agent, channel, userId };
};

/** A chat that names neither session nor user is a conversation of its own. */
export const placeOfChat = (wish: SessionWish, caller: string, now: number): SessionPlace =>
  wish.sessionId === undefined && wish.userId === undefined
    ? { sessionId: `chat:${newBareId(now)}`, agent: wish.agent, channel: "rest", userId: caller }
    : placeOf(wish, "rest", caller);

/** Where heartbeats run. */
export const mainSessionOf = (agent: string): string => `agent:${encode(agent)}:main`;

// toWellFormed: encodeURIComponent throws on half a surrogate pair.
const encode = (part: string): string => (isPlain(part) ? part : encodeURIComponent(toWellFormed(part)));
const isPlain = (part: string): boolean => /^[A-Za-z0-9_.~-]*$/.test(part);
const toWellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, "\ufffd");
