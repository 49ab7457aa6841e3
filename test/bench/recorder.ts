import { type Compared, type Measured, measureGateway } from "./against-bare.ts";
import { buildServer } from "./builds.ts";
import { messageCall } from "./calls.ts";
import { EVENTS } from "./events.ts";
import { compare, type Figure, median, unmeasured } from "./figures.ts";
import type { GatewayWish } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { BEATING, wake } from "./p2.ts";

const LOADS: readonly Omit<Measured, "seconds">[] = [
  {
    figure: "the flight recorder, of P1's requests",
    run: ({ url, pid }, seconds, seed) => runLoad({ url, pid, call: messageCall(), sessions: 1_000, seconds, seed }),
  },
  { figure: "the flight recorder, of P2's requests", gateway: BEATING, work: EVENTS, run: wake },
];

/** As it is; as small as it can be configured, which still makes every record; and without. All are built here, in one way. */
const variants = async (): Promise<Record<"usual" | "least" | "none", GatewayWish>> => {
  const program = await buildServer("recorded");
  const none = await buildServer("unrecorded", {
    "src/wire/call/delivery.ts": "test/bench/servers/no-delivery.ts",
    "src/store/rules/deliveries.ts": "test/bench/servers/no-recorder.ts",
  });
  return {
    usual: { program },
    least: { program, recorder: { entries: 1, bytes: 1, bodies: false } },
    none: { program: none },
  };
};
type Variant = keyof Awaited<ReturnType<typeof variants>>;
const ORDER: readonly Variant[] = ["usual", "least", "none"];

/** What the flight recorder costs a request: the CPU time of the server beside that of one without it. */
export const measureRecorder = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return LOADS.map(({ figure }) => unmeasured("RECORDER", figure, why));
  const figures: Figure[] = [];
  for (const load of LOADS) figures.push(...(await measureWith(load, options)));
  return figures;
};

const measureWith = async (
  load: Omit<Measured, "seconds">,
  { rounds, seconds, say }: BenchOptions,
): Promise<Figure[]> => {
  const { figure } = load;
  const wishes = await variants();
  const of: Record<Variant, Compared[]> = { usual: [], least: [], none: [] };
  for (let round = 0; round < rounds; round++) {
    say(`RECORDER: ${figure}, round ${round + 1} of ${rounds}`);
    // Each is first in its turn: what the machine does meanwhile is nobody's advantage.
    for (let n = 0; n < ORDER.length; n++) {
      const variant = ORDER[(round + n) % ORDER.length] as Variant;
      const gateway = { ...load.gateway, ...wishes[variant] };
      of[variant].push(await measureGateway({ ...load, seconds, gateway }, 2 * round));
    }
  }
  return [figureOf(figure, of, "none"), figureOf(figure, of, "least")];
};

const WORDS = {
  none: "beside a gateway that is built without it",
  least: "beside one of one entry, without bodies: it makes every record, and keeps none",
};

const figureOf = (figure: string, of: Record<Variant, Compared[]>, other: keyof typeof WORDS): Figure => {
  const cpu = (variant: Variant) => of[variant].map((load) => load.cpu);
  const rate = (variant: Variant) => Math.round(median(of[variant].map((load) => load.rate)));
  const disturbed = Math.max(...[...of.usual, ...of[other]].map((load) => load.disturbed));
  return compare(cpu("usual"), cpu(other), {
    gate: "RECORDER",
    figure: other === "none" ? figure : `${figure}, x the least`,
    unit: "us a request",
    bound: { atMost: 1.1, what: other === "none" ? "x without" : "x the least" },
    note:
      `CPU, ${WORDS[other]}: that has ${median(cpu(other)).toFixed(1)} us; ${rate("usual")} requests/s beside ${rate(other)}; ` +
      `others took at most ${(disturbed * 100).toFixed(0)} % of the core`,
  });
};
