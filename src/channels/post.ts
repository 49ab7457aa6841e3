import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import type { Clock } from "#kit/clock.ts";
import { HOPS_HEADER } from "#kit/hops.ts";
import { createLookup, LINK_LOCAL, LINK_LOCAL_WORDS } from "#kit/lookup.ts";
import { retryAfterOf } from "#kit/retry-after.ts";
import { LONGEST_CALL_MS, type Outcome } from "./channel.ts";

/** The time until the connection stands: with the name looked up and TLS agreed on. */
const CONNECT_MS = 5_000;
/** The time from then until the answer's head. */
const ANSWER_MS = 15_000;
/**
 * The time from then until the answer's end. The answer is read within this time and the next size, so that its sender can finish
 * it.
 */
const REST_MS = LONGEST_CALL_MS - CONNECT_MS - ANSWER_MS;
const ANSWER_BYTES = 16 * 1024;
const HEAD_BYTES = 16 * 1024;
/** The number of interim heads (100, 102, 103). More of them count as an answer without an end. */
const INTERIM_HEADS = 20;

type Posting = {
  url: URL;
  headers: Record<string, string>;
  /** JSON. */
  body: Buffer;
  hops: number;
};

/** Makes one call and returns its outcome; never rejects. */
export type Post = (posting: Posting, signal: AbortSignal) => Promise<Outcome>;

/** Parses an address for a POST; throws if it cannot be used. */
export const postable = (address: string): URL => {
  const url = new URL(address);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new TypeError("channels are posted to by http(s) only");
  return url;
};

/**
 * The one way out of the gateway. The address is the configuration's, and may be an internal one. Nobody else can choose one,
 * because no redirect is followed and no environment variable sets a proxy. Each call has its own connection, and its name is
 * looked up once. Only the head of an answer counts: the data after it is thrown away.
 */
export const createPost = ({ clock, ca }: { clock: Clock; ca?: string | undefined }): Post => {
  const lookup = createLookup();
  return ({ url, headers, body, hops }, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve(STOPPED);
      const isTls = url.protocol === "https:";
      const req = (isTls ? overHttps : overHttp)(url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "content-length": body.length,
          "user-agent": "agent-gateway",
          [HOPS_HEADER]: hops,
          ...headers,
        },
        ...{ agent: false, lookup, maxHeaderSize: HEAD_BYTES },
        ...{ rejectUnauthorized: true, minVersion: "TLSv1.2", ca },
      });
      let isOver = false;
      /** The outcome from the receiver's answer. Later events do not change it. */
      let said: Outcome | undefined;
      const end = (outcome: Outcome) => {
        if (isOver) return;
        isOver = true;
        stopWaiting();
        signal.removeEventListener("abort", stop);
        req.destroy();
        resolve(said ?? outcome);
      };
      const stop = () => end(STOPPED);
      const wait = (ms: number, missed: string) =>
        clock.after(ms, () => end(failed(`${missed} within ${ms / 1_000} s`)));
      let stopWaiting = wait(CONNECT_MS, "no connection");
      signal.addEventListener("abort", stop, { once: true });

      const onConnect = () => {
        stopWaiting();
        stopWaiting = wait(ANSWER_MS, "no answer");
      };
      req.on("socket", (socket) => socket.once(isTls ? "secureConnect" : "connect", onConnect));
      let interim = 0;
      req.on("information", () => {
        if (++interim > INTERIM_HEADS) end(failed("its answer has no end"));
      });
      req.on("response", (res) => {
        said = outcomeOf(res, clock.now());
        stopWaiting();
        stopWaiting = clock.after(REST_MS, stop);
        let bytes = 0;
        res.on("data", (part: Buffer) => {
          bytes += part.length;
          if (bytes > ANSWER_BYTES) stop();
        });
        res.on("end", stop).on("error", stop).on("close", stop);
      });
      // Without a listener Node drops the connection, and the status with it.
      req.on("upgrade", (res) => end(outcomeOf(res, clock.now())));
      req.on("error", (error) => end(failed(wordsOf(error))));
      req.end(body);
    });
};

const failed = (reason: string): Outcome => ({ kind: "failed", code: undefined, reason, retryAfterMs: undefined });

const STOPPED = failed("the gateway stopped");

const outcomeOf = ({ statusCode: code = 0, headers }: IncomingMessage, now: number): Outcome => {
  if (code >= 200 && code < 300) return { kind: "delivered", code };
  if (code === 410) return { kind: "refused", code, reason: "it answered 410, gone" };
  const redirected = code >= 300 && code < 400 ? ", and redirects are not followed" : "";
  const retryAfterMs = retryAfterOf(headers["retry-after"], now);
  return { kind: "failed", code, reason: `it answered ${code}${redirected}`, retryAfterMs };
};

/** An error by its code: its message may hold the address, which may be a secret. */
const wordsOf = ({ code, name }: NodeJS.ErrnoException): string =>
  code === LINK_LOCAL ? LINK_LOCAL_WORDS : `the connection failed (${code ?? name})`;
