import type { ServerResponse } from "node:http";

type Call = {
  /** Its place in the list of calls. */
  at: number;
  readonly path: string;
  readonly res: ServerResponse;
  readonly keyHash: Buffer | undefined;
  readonly agents: readonly string[] | undefined;
  endStream(): void;
  endWait(): void;
};

/** The started calls without an answer. */
export function createUnderWay() {
  // In no order. A Set would leave a table behind for every few calls, and these keep calls that have ended alive.
  const calls: Call[] = [];
  let closing = false;
  let whenNone = () => {};
  return {
    add(call: Call): void {
      call.at = calls.push(call) - 1;
      if (closing) call.res.shouldKeepAlive = false;
    },
    delete(call: Call): void {
      if (calls[call.at] !== call) return;
      const last = calls.pop() as Call;
      if (last !== call) {
        calls[call.at] = last;
        last.at = call.at;
      }
      if (calls.length === 0) whenNone();
    },
    /** From now on an answer ends its connection: the caller's next request is for another gateway. */
    closeAfterwards(): void {
      closing = true;
      for (const { res } of calls) if (!res.headersSent) res.shouldKeepAlive = false;
    },
    /** Resolves when every call is answered, or after `ms`. */
    async answered(ms: number): Promise<void> {
      if (calls.length === 0) return;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        whenNone = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
    },
    /** Ends the streams of calls with a key that would be refused now. */
    recheckKeys(isGood: (hash: Buffer, call: Pick<Call, "agents" | "path">) => boolean): void {
      for (const call of [...calls]) if (call.keyHash && !isGood(call.keyHash, call)) call.endStream();
    },
    /** Ends every wait: a waiting caller gets the result so far, and streams end. */
    endWaits(): void {
      for (const call of [...calls]) call.endWait();
    },
  };
}

export type UnderWay = ReturnType<typeof createUnderWay>;
