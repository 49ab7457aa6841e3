import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { Subscribe, Subscribed } from "#generated/push-types.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Session, Store } from "#store/store.ts";
import type { DeliveryPushes } from "./delivery-pushes.ts";
import type { PushFrames } from "./pushes.ts";
import { placeOfCursor } from "./stream-cursors.ts";
import { StreamReader } from "./stream-reader.ts";
import type { GatewayStream, SessionStream } from "./streams.ts";
import type { Subscriber } from "./subscriber.ts";

export type SubscribeParts = {
  store: Store;
  gatewayStream: Pick<GatewayEntries, "epoch" | "place">;
  frames: PushFrames;
  gateway: GatewayStream;
  deliveries: DeliveryPushes;
  /** Throws where there is none of this name. */
  requireAgent(name: string): void;
  streamOf(sessionId: string): SessionStream;
  followAgent(subscriber: Subscriber, name: string): void;
  drop(subscriber: Subscriber, reader: StreamReader): void;
};

export const MOST_SESSIONS = 1_000;
const NO_ENTRIES = { firstSeq: 1, lastSeq: 0 };

/** Begins subscriptions or moves them to another place, all that one request names or none of it. */
export const createSubscribe = (parts: SubscribeParts) => {
  const { store, gatewayStream, frames, gateway, deliveries, requireAgent, streamOf, followAgent, drop } = parts;

  const check = (subscriber: Subscriber, { sessions = {}, agents = [], gateway: from, ...more }: Subscribe): void => {
    for (const name of agents) requireAgent(name);
    for (const [id, cursor] of Object.entries(sessions)) checkCursor(cursor, "session", `sessions["${id}"]`);
    checkCursor(from ?? null, "gateway", "gateway");
    if (more.deliveries && from === undefined && !subscriber.gateway)
      throw new GatewayError("invalid-params", "`deliveries` goes with the gateway's stream: ask for `gateway`, too.");
    const ids = new Set([...subscriber.named, ...Object.keys(sessions)]);
    if (ids.size > MOST_SESSIONS)
      throw new GatewayError("invalid-params", `\`sessions\`: at most ${MOST_SESSIONS} of them go on a connection.`);
  };

  /** One that is read already goes on where it is, unless it is told where. */
  const startSession = (
    subscriber: Subscriber,
    id: string,
    session: Session | undefined,
    from: string | null,
  ): void => {
    const reader = subscriber.readers.get(id);
    // Deleted since it was looked up.
    if (!reader) return;
    if (session) reader.stream.be({ ordinal: session.ordinal, agent: session.agent });
    subscriber.named.add(id);
    if (reader.sent !== undefined && from === null) return;
    const { ordinal } = reader.stream;
    const { firstSeq: first, lastSeq: last } = session ?? NO_ENTRIES;
    const place = from === null ? undefined : placeOfCursor(from);
    const isOfStream = place?.epoch === store.epoch && (place.ordinal === ordinal || place.ordinal === 0);
    const isKnown = isOfStream && place.seq + 1 >= first && place.seq <= last;
    // One that begins now begins behind what was told while it was looked up: a sender was told of that itself.
    if (!place) reader.start(Math.max(last, reader.heard), false);
    else reader.start(isKnown ? place.seq : last, !isKnown);
    subscriber.fallBehind(reader);
  };

  const startGateway = (
    subscriber: Subscriber,
    { first, last }: { first: number; last: number },
    from: string | null,
  ): void => {
    const reader = subscriber.gateway;
    if (!reader || (reader.sent !== undefined && from === null)) return;
    const place = from === null ? undefined : placeOfCursor(from);
    const isKnown = place?.epoch === gatewayStream.epoch && place.seq + 1 >= first && place.seq <= last;
    reader.start(place && isKnown ? place.seq : last, place !== undefined && !isKnown);
    subscriber.fallBehind(reader);
  };

  /** Readers that listen before it is looked up where their streams are, so that nothing falls between. */
  const addReaders = (subscriber: Subscriber, ids: string[], withGateway: boolean): StreamReader[] => {
    const added: StreamReader[] = [];
    for (const id of ids) if (!subscriber.readers.has(id)) added.push(subscriber.join(streamOf(id)));
    if (withGateway && !subscriber.gateway) {
      subscriber.gateway = new StreamReader(subscriber.sink, gateway);
      gateway.readers.add(subscriber.gateway);
      gateway.open();
      added.push(subscriber.gateway);
    }
    return added;
  };

  const begins = (subscriber: Subscriber, { sessions, gateway: from }: Subscribe): Subscribed => {
    const places = Object.keys(sessions ?? {}).flatMap((id) => {
      const reader = subscriber.readers.get(id);
      return reader ? [[id, frames.sessionCursor(reader.stream, reader.sent ?? 0)] as const] : [];
    });
    return {
      ...(sessions && { sessions: Object.fromEntries(places) }),
      ...(from !== undefined && { gateway: frames.gatewayCursor(subscriber.gateway?.sent ?? 0) }),
    };
  };

  return async (subscriber: Subscriber, request: Subscribe): Promise<Subscribed> => {
    check(subscriber, request);
    const wanted = Object.entries(request.sessions ?? {});
    const { gateway: from, agents = [] } = request;
    const added = addReaders(
      subscriber,
      wanted.map(([id]) => id),
      from !== undefined,
    );
    try {
      const found = await Promise.all(wanted.map(([id]) => store.getSession(id)));
      const missing = wanted.find(([, cursor], n) => cursor === null && !found[n]);
      if (missing) throw new GatewayError("session-not-found", `No session has the id \`${missing[0]}\`.`);
      const range = from === undefined ? undefined : await gatewayStream.place();
      const joined =
        request.deliveries && !subscriber.deliveries ? await deliveries.join(subscriber) : subscriber.deliveries;
      for (const [n, [id, cursor]] of wanted.entries()) startSession(subscriber, id, found[n], cursor);
      if (range) startGateway(subscriber, range, from ?? null);
      subscriber.deliveries = joined;
      // Of deliveries nothing can be gone on with: whoever goes on has to list them again.
      if (request.deliveries) joined?.start(typeof from === "string");
    } catch (error) {
      for (const reader of added) if (!reader.isOver) drop(subscriber, reader);
      throw error;
    }
    for (const name of agents) followAgent(subscriber, name);
    return begins(subscriber, request);
  };
};

const checkCursor = (cursor: string | null, kind: "session" | "gateway", name: string): void => {
  if (cursor !== null && placeOfCursor(cursor)?.kind !== kind)
    throw new GatewayError("invalid-params", `\`${name}\` is no cursor of such a stream.`);
};
