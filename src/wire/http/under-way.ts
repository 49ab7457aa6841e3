import type { ServerResponse } from "node:http";

type Call = {
  readonly res: ServerResponse;
  readonly keyHash: Buffer | undefined;
  endStream(): void;
  endWait(): void;
};

/** The calls that have begun and are not answered yet. */
export const createUnderWay = () => {
  const calls = new Set<Call>();
  let closing = false;
  let whenNone = () => {};
  return {
    add(call: Call): void {
      calls.add(call);
      if (closing) call.res.shouldKeepAlive = false;
    },
    delete(call: Call): void {
      calls.delete(call);
      if (calls.size === 0) whenNone();
    },
    /** From now on an answer ends its connection: the caller's next request is for another gateway. */
    closeAfterwards(): void {
      closing = true;
      for (const { res } of calls) if (!res.headersSent) res.shouldKeepAlive = false;
    },
    /** Resolves when every call is answered, or after `ms`. */
    async answered(ms: number): Promise<void> {
      if (calls.size === 0) return;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        whenNone = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
    },
    /** Ends the streams of calls whose key is not known any more. */
    recheckKeys(isKnown: (hash: Buffer) => boolean): void {
      for (const call of calls) if (call.keyHash && !isKnown(call.keyHash)) call.endStream();
    },
    /** Ends every wait: a waiting caller gets the result so far, and streams end. */
    endWaits(): void {
      for (const call of calls) call.endWait();
    },
  };
};

export type UnderWay = ReturnType<typeof createUnderWay>;
