import type { StreamEvent } from "./contract.ts";

/** Reads a stream of events strictly: only events in the form of the contract are valid. */
export function createEventReader(onEvent: (event: StreamEvent) => void, onFault: (fault: string) => void) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  /** The parts of a block, joined once, because a block may have megabytes. */
  let parts: string[] = [];
  const readBlock = (block: string): void => {
    if (block === ":") return;
    const [event, id, data, ...more] = block.split("\n");
    const fields = [event, id, data].map(
      (line, n) => line?.startsWith(NAMES[n] as string) && line.slice(NAMES[n]?.length),
    );
    if (more.length > 0 || fields.some((field) => !field)) {
      onFault(`the stream holds ${JSON.stringify(block.slice(0, 200))}`);
      return;
    }
    try {
      onEvent({ event: fields[0] as string, id: fields[1] as string, data: JSON.parse(fields[2] as string) });
    } catch {
      onFault(`the data of an event is not JSON: ${String(fields[2]).slice(0, 200)}`);
    }
  };
  return {
    push(bytes: Uint8Array): void {
      let text = decoder.decode(bytes, { stream: true });
      // One line break may have arrived before the other.
      if (text.startsWith("\n") && parts.at(-1)?.endsWith("\n")) text = `${parts.pop()}${text}`;
      for (let at = text.indexOf("\n\n"); at >= 0; at = text.indexOf("\n\n")) {
        parts.push(text.slice(0, at));
        readBlock(parts.join(""));
        parts = [];
        text = text.slice(at + 2);
      }
      if (text !== "") parts.push(text);
    },
    end(): void {
      if (parts.length > 0) onFault(`the stream ends inside ${JSON.stringify(parts.join("").slice(0, 200))}`);
    },
  };
}

const NAMES = ["event: ", "id: ", "data: "];
