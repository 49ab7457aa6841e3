import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { GatewayError } from "#kit/errors.ts";
import { FORM, isForm, isOfType, jsonOfForm } from "#kit/forms.ts";
import { BODY_LIMITS, limitPassed } from "#kit/json-limits.ts";
import { textOfUtf8 } from "#kit/utf8.ts";
import { yieldToOthers } from "#kit/yield.ts";
import { placeOfFault } from "./json-place.ts";

const NOTHING = Buffer.alloc(0);

type Exchange = { req: IncomingMessage; res: ServerResponse };

/**
 * The whole body, up to `limit` bytes. Reading stops at the limit; a body that is announced as larger is not read at all. A
 * client that waits to be asked for its body is asked here, once a door needs the body.
 */
export function readBody({ req, res }: Exchange, limit: number): Promise<Buffer> {
  const announced = Number(req.headers["content-length"] ?? 0);
  if (announced > limit) return Promise.reject(tooLarge(limit));
  if (announced === 0 && req.headers["transfer-encoding"] === undefined) return Promise.resolve(NOTHING);
  if (req.headers.expect?.toLowerCase() === "100-continue") res.writeContinue();
  return new Promise((resolve, reject) => {
    // The listeners live as long as the answer, which may be a stream. The promise holds the body, so they let go of both at the end.
    let done: typeof resolve | undefined = resolve;
    let fail: typeof reject | undefined = reject;
    let body: Buffer = NOTHING;
    let size = 0;
    req.on("data", (part: Buffer) => {
      if (size + part.length > limit) {
        req.removeAllListeners("data");
        req.pause();
        fail?.(tooLarge(limit));
      } else {
        body = size === 0 ? part : append(body, size, part);
        size += part.length;
      }
    });
    // A stream of HTTP/2 that was cut off ends as one that is whole does, and closes next.
    req.on("end", () => {
      if (!req.complete) return;
      done?.(body.subarray(0, size));
      done = fail = undefined;
      body = NOTHING;
    });
    req.on("error", (cause) => {
      const isNamed = cause instanceof GatewayError;
      fail?.(isNamed ? cause : new GatewayError("request-timeout", "The body did not arrive completely.", { cause }));
    });
    req.on("close", () => {
      // Every request closes, and an error made for nothing would cost the good ones its stack.
      if (!req.complete) fail?.(new GatewayError("request-timeout", "The body did not arrive completely."));
    });
  });
}

/** Copies `part` behind the first `size` bytes. To keep the parts would cost 400 MB for a body of 1 MiB that comes byte by byte. */
function append(body: Buffer, size: number, part: Buffer): Buffer {
  const room = size + part.length;
  const all = body.length >= room ? body : Buffer.allocUnsafe(Math.max(room * 2, FIRST_ROOM));
  if (all !== body) body.copy(all, 0, 0, size);
  part.copy(all, size);
  return all;
}

const FIRST_ROOM = 1024;

function tooLarge(limit: number): GatewayError {
  return new GatewayError("too-large", `The body is larger than ${limit} bytes.`);
}

/** The JSON value in a body. The body must be valid UTF-8 and keep to the limits of parseText. */
export function parseJson(body: Buffer): unknown {
  return parseText(textOf(body));
}

/** The JSON value that mappings read from a form. The form must be valid UTF-8 and keep to the limits of parseText. */
export function parseForm(body: Buffer): unknown {
  const form = jsonOfForm(textOf(body));
  if ("flaw" in form) throw new GatewayError(form.error, `The form ${form.flaw}`);
  return parseText(form.json, form.place);
}

/** The text of a body that is valid UTF-8. A byte order mark stays in it, which is not JSON. */
export function textOf(body: Buffer): string {
  if (!isUtf8(body)) throw new GatewayError("parse-error", "The body is not UTF-8.");
  return textOfUtf8(body);
}

/**
 * Parses JSON within the limits of a body: its depth, so that the value can be written back, and its size. `place` is the subject of the
 * error messages.
 */
export function parseText(text: string, place = BODY): unknown {
  requireWithin(text, place);
  return parse(text, place);
}

const BODY = "The body";

/** The same for a large text, in slices with other work between them. */
export async function parseLargeText(text: string): Promise<unknown> {
  await yieldToOthers();
  requireWithin(text, BODY);
  await yieldToOthers();
  const parsed = parse(text, BODY);
  await yieldToOthers();
  return parsed;
}

function requireWithin(text: string, place: string): void {
  const passed = limitPassed(text, BODY_LIMITS);
  if (passed !== undefined) throw new GatewayError("invalid-request", `${place} ${passed}.`);
}

function parse(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new GatewayError("parse-error", `${place} ${text.trim() === "" ? "is empty." : notJson(text)}`);
  }
}

/** In a longer text the place is not looked for: others would wait. */
const SCANNED_BYTES = 64 * 1024;

/** Names the place of the fault, and repeats nothing of the body. */
function notJson(text: string): string {
  const place = text.length > SCANNED_BYTES ? undefined : placeOfFault(text);
  if (place === undefined) return "is not JSON.";
  const { line, column, isEnd } = place;
  return `is not JSON: ${isEnd ? "it ends too soon, at" : "look at"} line ${line}, column ${column}.`;
}

type Headed = Pick<IncomingMessage, "headers">;

/** Refuses a body that is not announced as JSON in UTF-8, or that is compressed. */
export function requireJson({ headers }: Headed): void {
  if (!isJson(headers["content-type"]) || !isPlain(headers["content-encoding"])) throw unsupported("application/json");
}

/** The same for a body that may also be a form. */
export function requireJsonOrForm({ headers }: Headed): void {
  const type = headers["content-type"];
  if ((!isJson(type) && !isForm(type)) || !isPlain(headers["content-encoding"]))
    throw unsupported(`application/json or ${FORM}`);
}

function unsupported(types: string): GatewayError {
  return new GatewayError("unsupported-media-type", `Send Content-Type: ${types}, not compressed.`);
}

function isJson(type: string | undefined): boolean {
  return type === "application/json" || isOfType("application/json", type);
}

function isPlain(encoding: string | undefined): boolean {
  return encoding === undefined || encoding.toLowerCase() === "identity";
}
