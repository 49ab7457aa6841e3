import { once } from "node:events";
import { WebSocket } from "ws";
import type { FoundEntry, FoundJournal } from "./found.ts";
import { SECRETS } from "./requests.ts";

export type Push = { method: string; params: FoundEntry & { sessionId: string; cursor: string } };
type Answer = { id: number; result?: { sessions: Record<string, string> }; error?: unknown };

const AT_ONCE = 200;

/** Reads the streams of sessions like a subscriber, from the first entry to the last. */
export async function readJournals(url: string, sessionIds: readonly string[]): Promise<FoundJournal[]> {
  const journals: FoundJournal[] = [];
  for (let n = 0; n < sessionIds.length; n += AT_ONCE)
    journals.push(...(await readSome(url, sessionIds.slice(n, n + AT_ONCE))));
  return journals;
}

async function readSome(url: string, sessionIds: readonly string[]): Promise<FoundJournal[]> {
  const headers = { authorization: `Bearer ${SECRETS.rpcToken}` };
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/rpc/ws`, { headers });
  const journals = new Map<string, FoundJournal>();
  const last = new Map<string, number>();
  const answers: Answer[] = [];
  let heard = () => {};
  let failure: Error | undefined;
  socket.on("message", (data) => {
    const message = JSON.parse(String(data)) as Push | Answer;
    if ("method" in message) note(journals, message);
    else answers.push(message);
    heard();
  });
  socket.on("close", (code) => {
    failure ??= new Error(`the socket was closed with ${code} while its streams were read`);
    heard();
  });
  const until = async <T>(find: () => T | undefined | false): Promise<T> => {
    for (;;) {
      const found = find();
      if (found !== undefined && found !== false) return found;
      if (failure) throw failure;
      await new Promise<void>((resolve) => (heard = resolve));
    }
  };
  const subscribe = async (id: number, sessions: object): Promise<Record<string, string>> => {
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method: "rpc.subscribe", params: { sessions } }));
    const { result, error } = await until(() => answers.find((answer) => answer.id === id));
    if (!result) throw new Error(`rpc.subscribe answered ${JSON.stringify(error)}`);
    return result.sessions;
  };
  try {
    await once(socket, "open");
    const ends = await subscribe(1, Object.fromEntries(sessionIds.map((id) => [id, null])));
    for (const [id, cursor] of Object.entries(ends)) {
      last.set(id, seqOf(cursor));
      journals.set(id, { sessionId: id, from: 1, entries: [] });
    }
    await subscribe(2, Object.fromEntries(Object.entries(ends).map(([id, cursor]) => [id, startOf(cursor)])));
    await until(() =>
      [...journals.values()].every(({ sessionId, entries, from }) => {
        const reached = entries.at(-1)?.seq ?? from - 1;
        return reached >= (last.get(sessionId) ?? 0);
      }),
    );
    return [...journals.values()];
  } finally {
    socket.terminate();
  }
}

function note(journals: Map<string, FoundJournal>, { method, params }: Push): void {
  const journal = journals.get(params.sessionId);
  if (!journal || method === "message.delta") return;
  if (method === "stream.reset") {
    journal.from = seqOf(params.cursor) + 1;
    journal.entries = [];
    return;
  }
  journal.entries.push(entryOf(method, params));
}

export function entryOf(name: string, { seq, turnId, messageId, attempt }: Push["params"]): FoundEntry {
  return {
    seq,
    name,
    ...(turnId !== undefined && { turnId }),
    ...(messageId !== undefined && { messageId }),
    ...(attempt !== undefined && { attempt }),
  };
}

// A cursor is opaque to clients. This one must start before the first entry, to which no client was subscribed.
const FORM = /^(s\..*\.)(\d+)$/;
function partsOf(cursor: string): [string, number] {
  const [, stream, seq] = FORM.exec(Buffer.from(cursor, "base64url").toString("latin1")) ?? [];
  if (stream === undefined) throw new Error(`${cursor} is no cursor of a session's stream`);
  return [stream, Number(seq)];
}
export function seqOf(cursor: string): number {
  return partsOf(cursor)[1];
}
function startOf(cursor: string): string {
  return Buffer.from(`${partsOf(cursor)[0]}0`).toString("base64url");
}
