// Copied by "npm run generate" from scripts/generate/runtime/typescript/sse.ts; do not edit.
/** One event of a `text/event-stream`. */
export interface ServerEvent {
  event: string;
  id: string;
  data: string;
}

/** The gateway sends something every 15 seconds. A stream that is silent for longer than this is lost. */
const SILENCE_MS = 45_000;

/** The events of a response, as the WHATWG describes them. An event that is cut off is left out. */
export async function* readEvents({ body }: Response): AsyncGenerator<ServerEvent> {
  let event = "";
  let id = "";
  let data: string[] = [];
  if (body === null) return;
  for await (const line of readLines(body)) {
    if (line === "") {
      if (data.length > 0) yield { event: event || "message", id, data: data.join("\n") };
      event = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
    else if (field === "id" && !value.includes("\0")) id = value;
  }
}

async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await withinSilence(reader.read());
      if (done) return;
      text += decoder.decode(value, { stream: true });
      // A "\r" at the end may be the first half of "\r\n": it waits for what follows.
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      text = lines.pop() ?? "";
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

const withinSilence = <Value>(reading: Promise<Value>): Promise<Value> => {
  let timer: ReturnType<typeof setTimeout>;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the stream was silent for ${SILENCE_MS} ms`)), SILENCE_MS);
  });
  return Promise.race([reading, silence]).finally(() => clearTimeout(timer));
};
