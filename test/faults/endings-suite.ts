import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { DOORS } from "./doors.ts";
import { type Ending, endings, startEndings } from "./endings.ts";

/** Uses each outbound connection with answers that end in every way: `cases` for each. An exception outside of the call fails the complete run. */
export async function endingsSuite(cases: number): Promise<void> {
  const server = await startEndings();
  afterAll(() => server[Symbol.asyncDispose]());
  const uncaught: unknown[] = [];
  const onUncaught = (error: unknown) => void uncaught.push(error);
  process.on("uncaughtExceptionMonitor", onUncaught);
  afterAll(() => void process.off("uncaughtExceptionMonitor", onUncaught));

  it.each(Object.entries(DOORS))(
    "an answer ends completely or as a failure, however its connection ends: %s",
    async (_, door) => {
      const { requests, replyTo, use, canBeHalf = false, fails = false } = door;
      const check = async (ending: Ending) => {
        const padding = "x".repeat(ending.bytes);
        server.say((request) => replyTo(request, padding), { ...ending, nth: ending.nth % requests });
        const outcome = await use(server.url, padding, ending.cut !== "none").catch((error: Error) => {
          // Node reports a reset that arrives together with data as an end.
          const isHalf = canBeHalf && ending.cut !== "none";
          if (isHalf && error.message.endsWith("was whole")) return "half" as const;
          throw error;
        });
        await new Promise((resolve) => setImmediate(resolve));
        expect(uncaught).toEqual([]);
        if (fails) expect(outcome).toBe("failed");
        else if (ending.cut === "none") expect(outcome).toBe("whole");
      };
      await fc.assert(fc.asyncProperty(endings, check), { numRuns: cases, endOnFailure: true });
    },
  );
}
