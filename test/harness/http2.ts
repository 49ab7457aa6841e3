import { once } from "node:events";
import { readFileSync } from "node:fs";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { join } from "node:path";
import { eventFaults, type Place, type StreamEvent } from "./contract.ts";
import type { SomeConfig } from "./gateway.ts";
import { countSent, countSettled, noteFault } from "./ledger.ts";
import { root } from "./process.ts";
import { checkHead, checkReply, type Reply } from "./rest.ts";
import { createEventReader } from "./sse.ts";

const tlsFile = (name: string): string => join(root, "test/config/tls", name);

/** A gateway that listens over TLS, with a certificate for localhost. */
export const OVER_TLS: SomeConfig = {
  gateway: { listeners: [{ port: 0, tls: { cert: tlsFile("cert.pem"), key: tlsFile("key.pem") } }] },
};

/** The certificate that a client of such a gateway trusts. */
export const CERTIFICATE = readFileSync(tlsFile("cert.pem"), "utf8");

export type Http2Reply = { status: number; headers: Headers; text: string };

/** One connection that speaks HTTP/2: over TLS by ALPN where the address says https, else by prior knowledge. */
export type Http2Client = AsyncDisposable & {
  readonly session: ClientHttp2Session;
  /** Resolves when the connection has gone. */
  readonly closed: Promise<void>;
  /** Opens a stream and leaves it to the test. */
  open(place: Place, headers?: OutgoingHttpHeaders): ClientHttp2Stream;
  /** One request and its reply, as it came. */
  exchange(place: Place, headers?: OutgoingHttpHeaders, body?: string | Uint8Array): Promise<Http2Reply>;
  /** The same, held to the contract. */
  send(place: Place, headers?: OutgoingHttpHeaders, body?: string | Uint8Array): Promise<Reply>;
  /** A reply that is a stream of events: its head and each event are held to the contract. */
  stream(place: Place, headers?: OutgoingHttpHeaders, body?: string): Promise<Http2Events>;
};

export type Http2Events = {
  requestId: string;
  stream: ClientHttp2Stream;
  events: readonly StreamEvent[];
  /** Resolves when so many have come. */
  arrived(count: number): Promise<void>;
  /** Resolves with all of them when the stream has ended well. */
  all(): Promise<readonly StreamEvent[]>;
};

export const openHttp2 = async (url: string, options: SecureClientSessionOptions = {}): Promise<Http2Client> => {
  const session = connect(url.replace("127.0.0.1", "localhost"), {
    ca: CERTIFICATE,
    ...options,
  });
  session.on("error", () => {});
  const closed = new Promise<void>((resolve) => session.once("close", resolve));
  await new Promise<void>((resolve, reject) => session.once("connect", () => resolve()).once("error", reject));

  const open = ({ method, path }: Place, headers: OutgoingHttpHeaders = {}): ClientHttp2Stream => {
    const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: false });
    stream.on("error", () => {});
    return stream;
  };
  const exchange: Http2Client["exchange"] = (place, headers, body) => {
    const stream = open(place, headers);
    stream.end(body);
    return readReply(stream);
  };
  return {
    session,
    closed,
    open,
    exchange,
    async send(place, headers, body) {
      countSent();
      try {
        const { status, headers: received, text } = await exchange(place, headers, body);
        return checkReply(place, status, received, text);
      } finally {
        countSettled();
      }
    },
    async stream(place, headers, body) {
      countSent();
      try {
        const stream = open(place, headers);
        stream.end(body);
        return await readEvents(place, stream);
      } finally {
        countSettled();
      }
    },
    async [Symbol.asyncDispose]() {
      session.destroy();
      await closed;
    },
  };
};

/** The whole reply of a stream. Throws when the stream ends without one, or in the middle of it. */
export const readReply = (stream: ClientHttp2Stream): Promise<Http2Reply> =>
  new Promise((resolve, reject) => {
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

const readEvents = async (place: Place, stream: ClientHttp2Stream): Promise<Http2Events> => {
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
    events,
    arrived: (count) =>
      new Promise((resolve) => {
        const look = () => events.length >= count && resolve();
        waiting.add(look);
        look();
      }),
    all: () => ended.then(() => events),
  };
};

const headersOf = (head: IncomingHttpHeaders): Headers =>
  new Headers(
    Object.entries(head).flatMap(([name, value]): [string, string][] =>
      name[0] === ":" ? [] : [[name, String(value)]],
    ),
  );
