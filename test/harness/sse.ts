import type { StreamEvent } from "./contract.ts";

/** Reads a stream of events strictly: only what the contract writes is an event, and anything else is a fault. */
export const createEventReader = (onEvent: (event: StreamEvent) => void, onFault: (fault: string) => void) => {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
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
      rest += decoder.decode(bytes, { stream: true });
      for (let at = rest.indexOf("\n\n"); at >= 0; at = rest.indexOf("\n\n")) {
        readBlock(rest.slice(0, at));
        rest = rest.slice(at + 2);
      }
    },
    end(): void {
      if (rest !== "") onFault(`the stream ends inside ${JSON.stringify(rest.slice(0, 200))}`);
    },
  };
};

const NAMES = ["event: ", "id: ", "data: "];
