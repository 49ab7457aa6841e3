import { buildClient, buildServer } from "./builds.ts";
import { nextMessage, startChild, stopChild } from "./children.ts";
import type { TokenReport, TokenWish } from "./clients/token-streams.ts";
import { REST_KEY, type Started } from "./gateways.ts";
import { type Cost, requireOwnMachine, withCost } from "./load.ts";
import { CLIENT_CORE, pinned } from "./machine.ts";
import { AT_ONCE_WORD, type StandInWish } from "./stand-in-words.ts";

/** A model, and an agent's service, that stand in for what the gateway would ask (servers/stand-in.ts), on the client's core. */
export const startStandIn = async (wish: StandInWish): Promise<Started> => {
  const args = [await buildServer("stand-in"), JSON.stringify(wish)];
  const child = startChild(...pinned(CLIENT_CORE, process.execPath, args), {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const { port } = await nextMessage<{ port: number }>(child);
  const dispose = () => stopChild(child);
  return { url: `http://127.0.0.1:${port}`, pid: child.pid as number, child, [Symbol.asyncDispose]: dispose };
};

type Door = Pick<TokenWish, "path" | "headers" | "body" | "event" | "text" | "end">;

const JSON_TYPE = { "content-type": "application/json" };
const QUESTION = "What changed since yesterday? #{stream}";

/** A turn of the gateway, read as its events. */
export const GATEWAY: Door = {
  path: "/api/v1/chat/send",
  headers: { ...JSON_TYPE, authorization: `Bearer ${REST_KEY}` },
  body: JSON.stringify({ message: QUESTION, stream: true }),
  event: "event: message.delta",
  text: '"text":"',
  end: "event: turn.completed",
};

/** A turn that is answered at once, also by a stand-in that has a pace. */
export const QUICK: Door = { ...GATEWAY, body: JSON.stringify({ message: `Answer ${AT_ONCE_WORD}.`, stream: true }) };

/** The same asked of the stand-in itself. */
export const MODEL: Door = {
  path: "/v1/chat/completions",
  headers: JSON_TYPE,
  body: JSON.stringify({ model: "stand-in", messages: [{ role: "user", content: QUESTION }], stream: true }),
  event: '"delta":{"content":"',
  text: '"content":"',
  end: "data: [DONE]",
};
export type TokenLoad = TokenReport & Cost;

/** Reads streams from a server on this machine. What they cost it is told by the piece. */
export const readStreams = async (
  { url, pid }: Pick<Started, "url" | "pid">,
  door: Door,
  wish: Pick<TokenWish, "streams" | "turns" | "pieces" | "rampMs" | "perSecond">,
): Promise<TokenLoad> => {
  requireOwnMachine(url);
  const all: TokenWish = { ...door, ...wish, url, isNamed: wish.perSecond !== undefined };
  const child = startChild(
    ...pinned(CLIENT_CORE, process.execPath, [await buildClient("token-streams"), JSON.stringify(all)]),
    { stdio: ["ignore", "ignore", "inherit", "ipc"] },
  );
  try {
    await nextMessage(child);
    const { requests: _, ...load } = await withCost(pid, async () => {
      const report = nextMessage<TokenReport>(child);
      child.send("go");
      const found = await report;
      return { ...found, requests: found.pieces };
    });
    return load;
  } finally {
    await stopChild(child);
  }
};

/** Throws when a stream was not what it should have been: nothing else about it counts then. */
export const requireWhole = ({ wrong, pieces }: TokenReport, expected: number, what: string): void => {
  if (wrong > 0 || pieces !== expected)
    throw new Error(`${what}: ${wrong} streams or pieces were wrong, ${pieces} of ${expected} pieces came`);
};
