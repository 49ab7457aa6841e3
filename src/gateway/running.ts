import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "#config/config.ts";
import type { Difference } from "#config/diff.ts";
import type { LoadedConfig } from "#config/load.ts";
import type { ReloadCause } from "#config/watch.ts";
import type { Core } from "#core/core.ts";
import { type Reloads, withSkills } from "#core/reload.ts";
import type { Clock } from "#kit/clock.ts";
import { newId } from "#kit/ids.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Events } from "#observe/events.ts";
import type { LoopLag } from "#observe/loop-lag.ts";
import type { Store } from "#store/store.ts";
import { connectionsThatFit } from "#wire/http/connection-limit.ts";
import { type Listening, type ListenOptions, listen } from "#wire/http/listen.ts";
import type { AnsweringFor, createAgentBackends } from "./agent-backends.ts";
import type { createDoors } from "./doors.ts";
import { coreSettingsOf } from "./settings.ts";
import { forgetfulness } from "./stores.ts";

const LAST_ANSWERS_MS = 1_000;
/** A request that was sent before the gateway started to stop still gets a refusal. */
const LAST_REQUESTS_MS = 1_000;

/** The parts of a gateway that are needed to stop it and to apply a new configuration. */
export type Running = {
  core: Core;
  store: Store;
  clock: Clock;
  events: Events;
  lag: LoopLag;
  backends: ReturnType<typeof createAgentBackends>;
  /** Replaces all backends in a test. */
  replaced: AnsweringFor | undefined;
  reloads: Reloads;
  doors: ReturnType<typeof createDoors>;
  traces: { close(): Promise<void> } | undefined;
  listeners: Listening[];
};

/** Opens the listeners. If one cannot be opened, closes the gateway and throws the reason. */
export async function openListeners(
  running: Running,
  wanted: Config["gateway"]["listeners"],
  times: Pick<ListenOptions, "requestMs" | "stuckMs">,
): Promise<void> {
  const { doors, events, clock, listeners } = running;
  try {
    for (const [index, { host, port, tls }] of wanted.entries()) {
      const listening = await listen({
        host,
        port,
        tls,
        ...times,
        maxConnections: connectionsThatFit(wanted.length),
        admits: doors.admits,
        resets: doors.resets,
        ...doors.front(index),
        newRequestId: () => newId("req", clock.now()),
        events,
        clock,
      });
      listeners.push(listening);
    }
  } catch (error) {
    await close(running);
    throw error;
  }
  doors.setListening(listeners);
}

/** Logs the listeners, and what an operator should know of the configuration. */
export function reportStart(
  { doors, events, store, listeners }: Running,
  warnings: LoadedConfig["warnings"],
  ms: number,
): void {
  for (const [index, { url }] of listeners.entries())
    events.listening({ address: url, surfaces: doors.surfaces(index), ms });
  for (const { surface, reason } of doors.closed()) events.surfaceOff({ surface, reason });
  const forgets = forgetfulness(store);
  for (const detail of forgets ? [...warnings, forgets] : warnings) events.configWarned({ about: "start", detail });
}

/** Applies the parts of a new configuration that need no restart, all at once. */
export async function takeOver(
  running: Running,
  next: Config,
  { changed, needsRestart }: Pick<Difference, "changed" | "needsRestart">,
  cause: ReloadCause,
): Promise<void> {
  const { core, doors, events, backends, listeners, reloads, replaced } = running;
  const generation = backends.next();
  let hasOtherSkills: boolean;
  try {
    hasOtherSkills = await core.reconfigure(coreSettingsOf(next, replaced ?? generation.answering), () => {
      doors.reconfigure(next);
      for (const [index, { tls }] of next.gateway.listeners.entries()) if (tls) listeners[index]?.setTls(tls);
    });
  } catch (error) {
    void generation.giveUp();
    events.unexpectedError({ error, where: "reconfigure" });
    return;
  }
  void generation.settle();
  const all = withSkills(changed, hasOtherSkills);
  events.configReloaded({ cause, changed: all, needRestart: needsRestart });
  // A request for a reload is reported with its result.
  if (cause === "file") void reloads.notify({ changed: all, needsRestart });
}

/** Stops accepting, lets work finish for `ms`, gives the rest back, closes. */
export async function drain(running: Running, cause: string, ms: number): Promise<void> {
  const { core, store, doors, events, clock, listeners } = running;
  const from = clock.monotonic();
  events.draining({ signal: cause, running: core.runner.running(), queued: store.stats().turnsQueued });
  doors.underWay.closeAfterwards();
  const allClosed = Promise.all(listeners.map((listener) => listener.stopAccepting()));
  const lastRequests = Promise.race([allClosed, sleep(Math.min(ms, LAST_REQUESTS_MS))]);
  core.compactions[Symbol.dispose]();
  core.heartbeat.stop();
  core.schedules.stop();
  const [handedBack] = await Promise.all([core.runner.drain(ms), lastRequests]);
  // Turns that have just ended are announced, too.
  const announced = core.outbox.drain(Math.max(ms - (clock.monotonic() - from), Math.min(ms, LAST_ANSWERS_MS)));
  await core.failQueued();
  // A follower of one of these turns is notified of its end before its stream is ended.
  await yieldToOthers();
  doors.underWay.endWaits();
  await Promise.all([doors.underWay.answered(LAST_ANSWERS_MS), doors.closeSockets(Math.min(ms, LAST_ANSWERS_MS))]);
  await announced;
  await close(running);
  events.drained({ ms: Math.round(clock.monotonic() - from), handedBack });
}

async function close({ core, store, lag, backends, traces, listeners }: Running): Promise<void> {
  await Promise.all(listeners.map((listener) => listener.close()));
  await core.close();
  await traces?.close();
  await backends.close();
  await store[Symbol.asyncDispose]();
  lag[Symbol.dispose]();
}
