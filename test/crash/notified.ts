import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import { type Broken, breach } from "./breaches.ts";
import type { Fleet } from "./fleet.ts";
import { bearer, createCaller, SECRETS } from "./requests.ts";

const SETTLED_MS = 120_000;
const LOOK_MS = 250;
const PAGE = 500;

type Event = { type: string; data: { turnId: string; status: string } };
type EndedTurn = { turn_id: string; status: string };

/**
 * An endpoint of `notify` that checks each request with the package `standardwebhooks`. While `isSilent()`, requests get no answer: their gateway is
 * killed between the end of a turn and the acceptance of its event.
 */
export async function startEndpoint() {
  const webhook = new Webhook(SECRETS.notify);
  /** The event ids of each turn, and the type of the event. */
  const ids = new Map<string, Set<string>>();
  const types = new Map<string, string>();
  const broken: Broken[] = [];
  let repeats = 0;
  let isSilent = false;
  let arrived = () => {};

  const receive = (body: string, headers: IncomingHttpHeaders): void => {
    const id = String(headers["webhook-id"]);
    try {
      const { type, data } = webhook.verify(body, headers as Record<string, string>) as Event;
      const known = ids.get(data.turnId) ?? new Set();
      if (known.has(id)) repeats++;
      ids.set(data.turnId, known.add(id));
      types.set(data.turnId, type);
      if (type !== `turn.${data.status}`) broken.push(breach("each end is notified", `${type} of ${data.status}`, id));
    } catch (error) {
      broken.push(breach("each end is notified", `an event is not verified: ${error}`, id));
    }
  };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      receive(Buffer.concat(parts).toString(), request.headers);
      arrived();
      if (!isSilent) response.writeHead(204).end();
    });
    request.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    config: { notify: { crash: { url: `http://127.0.0.1:${port}/`, secret: SECRETS.notify, events: ["turn.*"] } } },
    /** Resolves when the next event arrives, which then stays without an answer. */
    async stall(): Promise<void> {
      isSilent = true;
      await new Promise<void>((resolve) => {
        arrived = resolve;
      });
    },
    answer(): void {
      isSilent = false;
    },
    counts: () => ({ turns: ids.size, repeats }),
    /** Waits until every ended turn has its event; returns the turns without one, those with several ids, and those with another type. */
    async verify({ urls }: Fleet): Promise<Broken[]> {
      const end = performance.now() + SETTLED_MS;
      let turns = await readTurns(urls[0] as string);
      while (turns.some(({ turn_id }) => !ids.has(turn_id)) && performance.now() < end) {
        await pause(LOOK_MS);
        turns = await readTurns(urls[0] as string);
      }
      return [
        ...broken,
        ...turns.flatMap(({ turn_id, status }) => {
          if (types.get(turn_id) !== `turn.${status}`)
            return [breach("each end is notified", `${status}, notified as ${types.get(turn_id)}`, turn_id)];
          const found = ids.get(turn_id) ?? new Set();
          return found.size === 1 ? [] : [breach("each end is notified", "several ids", turn_id, ...found)];
        }),
      ];
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Every stored turn that has ended. */
async function readTurns(url: string): Promise<EndedTurn[]> {
  const caller = createCaller(60_000);
  const turns: EndedTurn[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `&cursor=${cursor}`;
    const { text } = await caller.ask(`${url}/api/v1/turns?limit=${PAGE}${query}`, "GET", bearer(SECRETS.key));
    const page = JSON.parse(text) as { turns: EndedTurn[]; next_cursor: string | null };
    turns.push(...page.turns);
    cursor = page.next_cursor;
  } while (cursor !== null);
  caller.close();
  return turns.filter(({ status }) => status !== "queued" && status !== "running");
}
