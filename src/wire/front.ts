import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "#core/clock.ts";
import { GatewayError } from "#core/errors.ts";
import type { Events } from "#observe/events.ts";
import type { Peer } from "./address.ts";
import { beginCall, failCall, type WireCall } from "./call.ts";

/** One of the gateway's doors: answers the call or throws what becomes its problem. */
export type Door = (call: WireCall) => void | Promise<void>;

/** A door and the paths that lead to it: the prefix itself and all below it. */
export type DoorAt = { prefix: string; door: Door };

export type FrontParts = {
  /** The doors of this listener, as they are now: a reload may open or close one. */
  doors: () => readonly DoorAt[];
  peerOf: (req: IncomingMessage) => Peer;
  guardHost: (req: IncomingMessage) => void;
  events: Events;
  clock: Clock;
};

const URL_LIMIT = 8 * 1024;

/** Where every request comes in: who sent it, which door is it for, and one answer for what goes wrong behind it. */
export const createFront = (parts: FrontParts) => {
  const { doors, peerOf, guardHost, events, clock } = parts;
  return (req: IncomingMessage, res: ServerResponse): void => {
    const url = req.url ?? "/";
    const query = url.indexOf("?");
    const path = query < 0 ? url : url.slice(0, query);
    const call = beginCall(req, res, { path, peer: peerOf(req), clock, events });
    const fail = (error: unknown) => failCall(call, error, events);
    try {
      if (url.length > URL_LIMIT)
        throw new GatewayError("uri-too-long", `A request target has at most ${URL_LIMIT} characters.`);
      const found = doors().find(({ prefix }) => leadsTo(path, prefix));
      if (!found) throw new GatewayError("not-found", "Nothing is served at this path.");
      if (!PROBES.has(path)) guardHost(req);
      found.door(call)?.catch(fail);
    } catch (error) {
      fail(error);
    }
  };
};

// Whoever probes for life comes by the address, not by a name.
const PROBES = new Set(["/healthz", "/readyz"]);

const leadsTo = (path: string, prefix: string): boolean =>
  path.startsWith(prefix) && (path.length === prefix.length || path.charCodeAt(prefix.length) === SLASH);
const SLASH = 47;
