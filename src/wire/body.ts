import type { IncomingMessage } from "node:http";
import { GatewayError } from "#core/errors.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const NOTHING = Buffer.alloc(0);

/** The whole body, up to `limit` bytes. Reading stops at the limit; what was announced to be larger is not read at all. */
export const readBody = (req: IncomingMessage, limit: number): Promise<Buffer> => {
  const announced = Number(req.headers["content-length"] ?? 0);
  if (announced > limit) return Promise.reject(tooLarge(limit));
  if (announced === 0 && req.headers["transfer-encoding"] === undefined) return Promise.resolve(NOTHING);
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    req.on("data", (part: Buffer) => {
      size += part.length;
      if (size > limit) {
        req.removeAllListeners("data");
        req.pause();
        reject(tooLarge(limit));
      } else {
        parts.push(part);
      }
    });
    req.on("end", () => resolve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, size)));
    req.on("error", (cause) => reject(new GatewayError("request-timeout", "the body did not arrive whole", { cause })));
    req.on("close", () => reject(new GatewayError("request-timeout", "the body did not arrive whole")));
  });
};

const tooLarge = (limit: number): GatewayError =>
  new GatewayError("too-large", `the body is larger than ${limit} bytes`);

const DEPTH_LIMIT = 64;

/** The JSON value in a body: UTF-8 to the letter, and not nested deeper than anything we write back could be. */
export const parseJson = (body: Buffer): unknown => {
  let text: string;
  try {
    text = decoder.decode(body);
  } catch {
    throw new GatewayError("parse-error", "the body is not UTF-8");
  }
  if (isTooDeep(text))
    throw new GatewayError("invalid-request", `the body is nested deeper than ${DEPTH_LIMIT} levels`);
  try {
    return JSON.parse(text);
  } catch {
    throw new GatewayError("parse-error", text.trim() === "" ? "the body is empty" : "the body is not JSON");
  }
};

const QUOTE = 34;
const BACKSLASH = 92;

/** Counts brackets outside strings; most bodies hold too few of them to need the count. */
const isTooDeep = (text: string): boolean => {
  if (text.length < DEPTH_LIMIT * 2) return false;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (inString) {
      if (unit === BACKSLASH) at++;
      else if (unit === QUOTE) inString = false;
    } else if (unit === QUOTE) inString = true;
    else if (unit === 91 || unit === 123) {
      if (++depth > DEPTH_LIMIT) return true;
    } else if (unit === 93 || unit === 125) depth--;
  }
  return false;
};
