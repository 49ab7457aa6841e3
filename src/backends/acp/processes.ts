import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import type { AgentProcess } from "./agent-process.ts";

type ProcessLimits = { idle: number; processes: number; clock: Clock };

/** `process` is undefined while it starts. */
type Slot = {
  process: AgentProcess | undefined;
  isBusy: boolean;
  forget: () => void;
  waiting: (() => void)[];
};

const BUSY_MS = 1_000;

/**
 * The processes of an agent, one for each recently used session. The caller that takes a process must give it back. There are at
 * most `processes` at once, including those that are about to end. To make room, the process that was idle longest is ended.
 */
export function createProcesses(
  { idle, processes, clock }: ProcessLimits,
  start: (signal: AbortSignal) => Promise<AgentProcess>,
) {
  /** The process that is idle longest comes first. */
  const slots = new Map<string, Slot>();
  let isClosed = false;

  const isThere = (key: string, slot: Slot): boolean => slots.get(key) === slot;
  const changed = (slot: Slot): Promise<void> => new Promise((resolve) => slot.waiting.push(resolve));
  const tell = (slot: Slot): void => {
    for (const wake of slot.waiting.splice(0)) wake();
  };
  const remove = (key: string, slot: Slot): void => {
    slot.forget();
    if (isThere(key, slot)) slots.delete(key);
    tell(slot);
  };
  const end = async (key: string, slot: Slot): Promise<void> => {
    slot.forget();
    void slot.process?.stop();
    while (isThere(key, slot)) await changed(slot);
  };
  const makeRoom = async (signal: AbortSignal): Promise<void> => {
    while (slots.size >= processes) {
      const idleOne = [...slots].find(([, { isBusy }]) => !isBusy);
      if (!idleOne) {
        const words = "all processes of the agent are busy";
        throw new BackendError(words, { retryable: true, retryAfterMs: BUSY_MS });
      }
      await end(...idleOne);
      signal.throwIfAborted();
    }
  };
  /** The process of a session, as soon as it is free; undefined if there is none. */
  const idleOf = async (key: string, signal: AbortSignal): Promise<AgentProcess | undefined> => {
    for (let slot = slots.get(key); slot; slot = slots.get(key)) {
      // It may still be ending its cancelled turn.
      if (!slot.isBusy) await slot.process?.settled;
      signal.throwIfAborted();
      if (!isThere(key, slot)) continue;
      if (!slot.isBusy && slot.process?.isAlive) {
        slot.isBusy = true;
        slot.forget();
        return slot.process;
      }
      await changed(slot);
      signal.throwIfAborted();
    }
    return undefined;
  };

  return {
    /** The process of a session, started if there is none. Nobody else gets it until it is given back. */
    async take(key: string, signal: AbortSignal): Promise<AgentProcess> {
      if (isClosed) throw new BackendError("the agent is being closed", { retryable: true });
      const idleOne = await idleOf(key, signal);
      if (idleOne) return idleOne;
      await makeRoom(signal);
      const slot: Slot = { process: undefined, isBusy: true, forget: () => {}, waiting: [] };
      slots.set(key, slot);
      try {
        const process = await start(signal);
        slot.process = process;
        void process.exited.then(() => remove(key, slot));
        return process;
      } catch (error) {
        remove(key, slot);
        throw error;
      }
    },
    give(key: string): void {
      const slot = slots.get(key);
      if (!slot) return;
      slot.isBusy = false;
      slots.delete(key);
      slots.set(key, slot);
      if (isClosed) void end(key, slot);
      else slot.forget = clock.after(idle, () => void end(key, slot));
      tell(slot);
    },
    /** Ends idle processes now, and the others when they are given back. Resolves when none is left. */
    async close(): Promise<void> {
      isClosed = true;
      for (const [key, slot] of slots) if (!slot.isBusy) void end(key, slot);
      await Promise.all(
        [...slots].map(async ([key, slot]) => {
          while (isThere(key, slot)) await changed(slot);
        }),
      );
    },
  };
}
