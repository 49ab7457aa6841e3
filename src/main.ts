import { serve } from "#cli/serve.ts";

const REPEAT_MS = 1_000;

const served = await serve(process.argv.slice(2), process.env);
if (served) {
  const { gateway, logger, watch } = served;
  // npm passes a signal on that the process group got too: within a second it is the same one.
  let first: { signal: string; at: number } | undefined;
  let failed = false;

  const stop = async (cause: string): Promise<void> => {
    // Work may wait on nothing but timers that do not keep the process alive.
    const alive = setInterval(() => {}, 1_000);
    await gateway.drain(cause);
    await logger.flush();
    clearInterval(alive);
    process.exit(failed ? 1 : 0);
  };
  const onSignal = (signal: "SIGTERM" | "SIGINT", code: number): void => {
    const at = performance.now();
    if (first === undefined) {
      first = { signal, at };
      void stop(signal);
    } else if (first.signal !== signal || at - first.at >= REPEAT_MS) {
      process.exit(code);
    }
  };
  const onFailure = (where: string) => (error: unknown) => {
    gateway.events.unexpectedError({ error, where });
    if (failed) return;
    failed = true;
    if (first === undefined) {
      first = { signal: where, at: -Infinity };
      void stop(where);
    }
  };

  process.on("SIGTERM", () => onSignal("SIGTERM", 143));
  process.on("SIGINT", () => onSignal("SIGINT", 130));
  process.on("SIGHUP", async () => {
    const { reloaded, changed, needsRestart } = await watch.reload("signal");
    // Whoever takes the new configuration reports changes and faults; only this line says that there are none.
    if (reloaded && changed.length + needsRestart.length === 0)
      gateway.events.configReloaded({ cause: "signal", changed: [] });
  });
  process.on("uncaughtException", onFailure("uncaughtException"));
  // A promise that somebody's backend forgot ends nothing: its turn ends by itself, or by its deadline.
  process.on("unhandledRejection", (error) => gateway.events.unexpectedError({ error, where: "unhandledRejection" }));
  gateway.ready.catch(onFailure("contract"));
}
