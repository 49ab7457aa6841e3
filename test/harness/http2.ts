import { once } from "node:events";
import { readFileSync } from "node:fs";
import {
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { join } from "node:path";
import { eventFaults, type Place, type StreamEvent } from "./contract.ts";
import type { SomeConfig } from "./gateway.ts";
import { noteFault, settling } from "./ledger.ts";
import { root } from "./process.ts";
import { checkHead, checkReply, type Reply } from "./rest.ts";
import { createEventReader } from "./sse.ts";

function tlsFile(name: string): string {
  return join(root, "test/config/tls", name);
}

/** A gateway that listens over TLS, with a certificate for localhost. */
export const OVER_TLS: SomeConfig = {
  gateway: { listeners: [{ port: 0, tls: { cert: tlsFile("cert.pem"), key: tlsFile("key.pem") } }] },
};

/** The certificate that a client of such a gateway trusts. */
export const CERTIFICATE = readFileSync(tlsFile("cert.pem"), "utf8");

type Http2Reply = { status: number; headers: Headers; text: string };

/** One HTTP/2 connection: over TLS by ALPN for an https address, else by prior knowledge. */
export async function openHttp2(url: string, options: SecureClientSessionOptions = {}) {
  const session = connect(url.replace("127.0.0.1", "localhost"), {
    ca: CERTIFICATE,
    ...options,
  });
  session.on("error", () => {});
  const closed = new Promise<void>((resolve) => session.once("close", resolve));
  await new Promise<void>((resolve, reject) => session.once("connect", () => resolve()).once("error", reject));

  /** Opens a stream and leaves it to the test. */
  const open = ({ method, path }: Place, headers: OutgoingHttpHeaders = {}): ClientHttp2Stream => {
    const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: false });
    stream.on("error", () => {});
    return stream;
  };
  /** One request and its unchanged reply. */
  const exchange = (place: Place, headers?: OutgoingHttpHeaders, body?: string | Uint8Array): Promise<Http2Reply> => {
    const stream = open(place, headers);
    stream.end(body);
    return readReply(stream);
  };
  return {
    session,
    /** Resolves when the connection has closed. */
    closed,
    open,
    exchange,
    /** The same, validated against the contract. */
    send: (place: Place, headers?: OutgoingHttpHeaders, body?: string | Uint8Array): Promise<Reply> =>
      settling(async () => {
        const { status, headers: received, text } = await exchange(place, headers, body);
        return checkReply(place, status, received, text);
      }),
    /** A reply with a stream of events: its head and each event are validated against the contract. */
    stream: (place: Place, headers?: OutgoingHttpHeaders, body?: string) =>
      settling(async () => {
        const stream = open(place, headers);
        stream.end(body);
        return await readEvents(place, stream);
      }),
    async [Symbol.asyncDispose]() {
      session.destroy();
      await closed;
    },
  };
}

export type Http2Client = Awaited<ReturnType<typeof openHttp2>>;

/** The complete reply of a stream. Throws if the stream ends without one, or in the middle. */
export function readReply(stream: ClientHttp2Stream): Promise<Http2Reply> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let headers = new Headers();
    const parts: Buffer[] = [];
    let isWhole = false;
    stream.on("response", (head) => {
      status = Number(head[":status"]);
      headers = headersOf(head);
    });
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.on("end", () => {
      isWhole = !stream.aborted && stream.rstCode === 0;
    });
    stream.on("close", () => {
      const text = Buffer.concat(parts).toString("utf8");
      if (status > 0 && isWhole) resolve({ status, headers, text });
      else
        reject(new Error(`the stream was closed with code ${stream.rstCode} after ${status} ${JSON.stringify(text)}`));
    });
  });
}

async function readEvents(place: Place, stream: ClientHttp2Stream) {
  const events: StreamEvent[] = [];
  const waiting = new Set<() => void>();
  const { push, end } = createEventReader((event) => {
    events.push(event);
    for (const fault of eventFaults(event)) noteFault(fault);
    for (const look of waiting) look();
  }, noteFault);
  const ended = new Promise<void>((resolve, reject) => {
    stream.on("end", () => !stream.aborted && stream.rstCode === 0 && resolve());
    stream.on("close", () => reject(new Error(`the stream was closed with code ${stream.rstCode}`)));
  });
  ended.then(end, () => {});
  const [head] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status": number }];
  stream.on("data", push);
  checkHead(place, head[":status"], headersOf(head));
  return {
    requestId: String(head["x-request-id"]),
    stream,
    events: events as readonly StreamEvent[],
    /** Resolves when this number of events has arrived. */
    arrived: (count: number) =>
      new Promise<void>((resolve) => {
        const look = () => events.length >= count && resolve();
        waiting.add(look);
        look();
      }),
    /** Resolves with all events after the regular end of the stream. */
    all: (): Promise<readonly StreamEvent[]> => ended.then(() => events),
  };
}

function headersOf(head: IncomingHttpHeaders): Headers {
  return new Headers(
    Object.entries(head).flatMap(([name, value]): [string, string][] =>
      name[0] === ":" ? [] : [[name, String(value)]],
    ),
  );
}
