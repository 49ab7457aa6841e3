import { expect, it, onTestFinished } from "vitest";
import type { AgentConfig } from "#config/config.ts";
import { createAgentBackends, type Generation, type Shared } from "#gateway/agent-backends.ts";
import { systemClock } from "#kit/clock.ts";
import { createEvents } from "#observe/events.ts";
import { createLogger } from "#observe/logger.ts";
import { createRegistry } from "#observe/metrics.ts";
import { agentProgram } from "./stand-ins/acp.ts";
import { isAlive, untilGone } from "./stand-ins/programs.ts";
import { collect, textOf, turnOf } from "./suite.ts";

const SHARED = { providers: {}, tools: {}, limits: {} } as unknown as Shared;

/** An agent whose process answers with its id, and continues. */
function agentWith(env: Record<string, string>) {
  return {
    backend: "acp",
    models: [],
    tools: [],
    model: undefined,
    acp: { run: agentProgram(), cwd: ".", env, permissions: "deny", idle: 60_000, processes: 4 },
    timeouts: { connect: 10_000, firstByte: 10_000, silence: 10_000 },
  } as unknown as AgentConfig;
}

async function pidOf(generation: Generation, env: Record<string, string>): Promise<number> {
  const { backend } = generation.answering("main", agentWith(env), SHARED);
  const turn = turnOf({ message: { text: "do: pid", outside: false, context: undefined } });
  return Number(textOf(await collect(backend.run(turn, new AbortController().signal))));
}

it("closes the backends of a refused configuration at once, and keeps those that others also use", async () => {
  const logger = createLogger({ level: "error", write: () => {} });
  const backends = createAgentBackends({
    clock: systemClock,
    events: createEvents({ logger, registry: createRegistry() }),
  });
  onTestFinished(() => backends.close());
  const first = backends.next();
  const kept = await pidOf(first, { N: "1" });
  await first.settle();

  const refused = backends.next();
  expect(await pidOf(refused, { N: "1" })).toBe(kept);
  const gone = await pidOf(refused, { N: "2" });
  await refused.giveUp();
  await untilGone([gone]);
  expect(isAlive(kept)).toBe(true);

  const second = backends.next();
  const seconds = await pidOf(second, { N: "3" });
  await second.settle();
  await untilGone([kept]);
  expect(isAlive(seconds)).toBe(true);
  await backends.close();
  await untilGone([seconds]);
});
