/** The time for which the gateway that made a turn ready has it to itself. */
const OWN_MS = 25;

/**
 * Decides if other gateways are told that some turn can be claimed: only of one that is left. Mostly the gateway that made it ready
 * claims it at once, and all others would ask for nothing.
 */
export const createReadyWork = (tellOthers: () => void) => {
  /** The number of times that turns became ready here, and the number of those that were told of or claimed. */
  let made = 0;
  let done = 0;
  let timer: NodeJS.Timeout | undefined;

  const tell = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (done === made) return;
    done = made;
    tellOthers();
  };

  return {
    /** Some turn became ready. */
    add(): void {
      made++;
      timer ??= setTimeout(tell, OWN_MS).unref();
    },
    /** A claim begins; the caller calls the answer if the claim left nothing. */
    claim(): () => void {
      const seen = made;
      return () => {
        done = Math.max(done, seen);
      };
    },
    /** Tells at once of the work that was to be told of later. */
    flush: tell,
  };
};

export type ReadyWork = ReturnType<typeof createReadyWork>;
