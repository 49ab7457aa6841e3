import { startBare } from "./bare.ts";
import { compare, type Figure, median, unmeasured } from "./figures.ts";
import { REST_KEY, readMetrics, startGateway, untilAnswers } from "./gateways.ts";
import { type Load, requireClean, runLoad, unlessIdle } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

const FIGURE = "POST /api/v1/chat/send";
const AT_LEAST = 0.15;
const WARM_UP_S = 2;
const ALL_ENDED_MS = 2_000;

/** P4: validated chat messages, beside a bare server that parses and stringifies as much. */
export const measureChat = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return [unmeasured("P4", FIGURE, why)];
  await using bare = await startBare("bare-http");
  return [
    await measureOver({ ...options, bare, sessions: 0, name: "a session each" }),
    await measureOver({ ...options, bare, sessions: 1_000, name: "over 1 000 sessions" }),
  ];
};

type Wish = BenchOptions & { bare: { url: string; pid: number }; sessions: number; name: string };

const measureOver = async ({ rounds, seconds, say, bare, sessions, name }: Wish): Promise<Figure> => {
  const compared: Load[] = [];
  const measured: Load[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`P4: ${name}, round ${round + 1} of ${rounds}`);
    const load = { token: REST_KEY, sessions, seed: round + 1, seconds };
    const bareLoad = { ...load, url: `${bare.url}/`, pid: bare.pid };
    await runLoad({ ...bareLoad, seconds: WARM_UP_S });
    compared.push(await runLoad(bareLoad));
    measured.push(await measureGateway(load));
  }
  const rate = (loads: readonly Load[]) => loads.map((load) => load.rate);
  const middle = (loads: readonly Load[], pick: (load: Load) => number) => median(loads.map(pick));
  const cpu = middle(measured, (load) => load.cpu);
  const bareCpu = middle(compared, (load) => load.cpu);
  const disturbed = Math.max(...[...measured, ...compared].map((load) => load.disturbed));
  const figure = compare(rate(measured), rate(compared), {
    gate: "P4",
    figure: `${FIGURE}, ${name}`,
    unit: "requests/s",
    bound: { atLeast: AT_LEAST, what: "x bare" },
    note:
      `bare ${Math.round(median(rate(compared)))}; p99 ${(middle(measured, (load) => load.p99) / 1_000).toFixed(1)} ms; CPU a request ` +
      `${cpu.toFixed(0)} us, bare ${bareCpu.toFixed(1)}: ${(bareCpu / cpu).toFixed(3)} x; others took at most ${(disturbed * 100).toFixed(0)} % of the core`,
  });
  return unlessIdle(figure, compared);
};

/** One round: a gateway of its own, as what it holds grows with every message. It counts when every accepted turn has completed. */
const measureGateway = async (wish: {
  token: string;
  sessions: number;
  seed: number;
  seconds: number;
}): Promise<Load> => {
  await using gateway = await startGateway();
  await untilAnswers(`${gateway.url}/readyz`);
  const load = { ...wish, url: `${gateway.url}/api/v1/chat/send`, pid: gateway.pid };
  requireClean(await runLoad({ ...load, seconds: WARM_UP_S }), FIGURE);
  const before = (await readMetrics(gateway.url))(COMPLETED);
  const run = await runLoad(load);
  requireClean(run, FIGURE);
  await requireEnded(gateway.url, before + run.requests);
  return run;
};

const COMPLETED = 'gateway_turns_total{agent="main",status="completed"}';

/** Within 2 s of the run's end nothing waits and nothing runs, and as many turns completed as were answered. */
const requireEnded = async (url: string, accepted: number): Promise<void> => {
  const end = performance.now() + ALL_ENDED_MS;
  for (;;) {
    const read = await readMetrics(url);
    const [queued, running, completed] = [
      read("gateway_turns_queued "),
      read("gateway_turns_running "),
      read(COMPLETED),
    ];
    if (queued === 0 && running === 0 && completed >= accepted) return;
    if (performance.now() > end)
      throw new Error(`after 2 s ${queued} turns wait, ${running} run, ${completed} of ${accepted} have completed`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
