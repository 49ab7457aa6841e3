import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import type { Clock } from "#kit/clock.ts";
import { HOPS_HEADER } from "#kit/hops.ts";
import { createLookup, LINK_LOCAL, LINK_LOCAL_WORDS } from "#kit/lookup.ts";
import { retryAfterOf } from "#kit/retry-after.ts";
import { LONGEST_CALL_MS, type Outcome } from "./channel.ts";

/** Until the connection stands: the name looked up, TLS agreed on. */
const CONNECT_MS = 5_000;
/** From then until the answer's head is there. */
const ANSWER_MS = 15_000;
/** From then until its end. So long, and so many bytes, it is read, so that its sender can finish it. */
const REST_MS = LONGEST_CALL_MS - CONNECT_MS - ANSWER_MS;
const ANSWER_BYTES = 16 * 1024;
const HEAD_BYTES = 16 * 1024;
/** More heads that are no answer yet (100, 102, 103) are taken for an answer without an end. */
const INTERIM_HEADS = 20;

type Posting = {
  url: URL;
  headers: Record<string, string>;
  /** JSON. */
  body: Buffer;
  hops: number;
};

/** Makes one call and says what came of it; never rejects. */
export type Post = (posting: Posting, signal: AbortSignal) => Promise<Outcome>;

/** An address that can be posted to; throws for any other. */
export const postable = (address: string): URL => {
  const url = new URL(address);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new TypeError("channels are posted to by http(s) only");
  return url;
};

/**
 * The one way out of the gateway. The address is the configuration's, and may be one inside; nobody else can choose one, as no redirect
 * is followed and no variable of the environment sets a proxy. A connection of its own for each call, its name looked up once. An
 * answer is its status: what comes after the head is thrown away.
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
      /** What the receiver said. Nothing that happens afterwards changes it. */
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
