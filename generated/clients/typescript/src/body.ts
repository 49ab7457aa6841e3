// Copied by "npm run generate" from scripts/generate/runtime/typescript/body.ts; do not edit.
/** The other side sent an incomplete or invalid answer, or one that is too large. */
export class BrokenAnswer extends Error {}

/** A larger reply is not read to its end. */
const MOST_BODY_BYTES = 64 * 1024 * 1024;

/** The pieces of a body, as text. If the consumer stops, the rest is not read. */
export async function* readPieces(
  body: ReadableStream<Uint8Array>,
  next: <Value>(reading: Promise<Value>) => Promise<Value> = (reading) => reading,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await next(reader.read());
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** The body of a response, after its decompression. Throws if it is too large. */
export async function textOf({ body }: Response, most = MOST_BODY_BYTES): Promise<string> {
  const pieces: string[] = [];
  let size = 0;
  if (body === null) return "";
  for await (const piece of readPieces(body)) {
    size += piece.length;
    if (size > most) throw new BrokenAnswer(`the answer is larger than ${most / 1024 / 1024} MiB`);
    pieces.push(piece);
  }
  return pieces.join("");
}

/** The JSON of a response. Throws if it is too large, or is not JSON. */
export async function jsonOf(response: Response): Promise<unknown> {
  const text = await textOf(response);
  try {
    return JSON.parse(text);
  } catch {
    throw new BrokenAnswer("the reply is not valid JSON");
  }
}

type Fields = Record<string, unknown>;

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A field of a reply that is not validated. */
export function stringOr<Other>(value: unknown, other: Other): string | Other {
  return typeof value === "string" ? value : other;
}
