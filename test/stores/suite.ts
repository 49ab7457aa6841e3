import { describe, it } from "vitest";
import { runRandomSteps } from "./random-steps.ts";
import { ageingTests } from "./suite/ageing.ts";
import { alertingTests } from "./suite/alerting.ts";
import { announcingTests } from "./suite/announcing.ts";
import { beatsTests } from "./suite/beats.ts";
import { budgetUseTests } from "./suite/budget-use.ts";
import { budgetsTests } from "./suite/budgets.ts";
import { claimingTests } from "./suite/claiming.ts";
import { compactingTests } from "./suite/compacting.ts";
import { deletingTests } from "./suite/deleting.ts";
import { deliveriesTests } from "./suite/deliveries.ts";
import { dueBeatsTests } from "./suite/due-beats.ts";
import { endingTests } from "./suite/ending.ts";
import { gatewayStreamTests } from "./suite/gateway-stream.ts";
import { groupingTests } from "./suite/grouping.ts";
import { handlingEventsTests } from "./suite/handling-events.ts";
import { keysTests } from "./suite/keys.ts";
import { listingDeliveriesTests } from "./suite/listing-deliveries.ts";
import { listingTurnsTests } from "./suite/listing-turns.ts";
import { notifyingTests } from "./suite/notifying.ts";
import { overlappingTests } from "./suite/overlapping.ts";
import { pausingTests } from "./suite/pausing.ts";
import { queueingEventsTests } from "./suite/queueing-events.ts";
import { readingTests } from "./suite/reading.ts";
import { reopeningTests } from "./suite/reopening.ts";
import { schedulesTests } from "./suite/schedules.ts";
import { sharesTests } from "./suite/shares.ts";
import { startingTests } from "./suite/starting.ts";
import { sweepingTests } from "./suite/sweeping.ts";
import { usageTests } from "./suite/usage.ts";
import { watchingTests } from "./suite/watching.ts";
import type { Engine } from "./world.ts";

/** RUN_LONG=1 runs more for each engine. */
const [SEEDS, STEPS] = process.env.RUN_LONG ? [20, 500] : [2, 200];

/** Every guarantee of store.ts, for any engine. No test here reads the internals of an engine. */
export function storeSuite(engine: Engine): void {
  describe(`the ${engine.name} store`, () => {
    startingTests(engine);
    claimingTests(engine);
    groupingTests(engine);
    endingTests(engine);
    readingTests(engine);
    deletingTests(engine);
    compactingTests(engine);
    gatewayStreamTests(engine);
    watchingTests(engine);
    usageTests(engine);
    deliveriesTests(engine);
    listingDeliveriesTests(engine);
    listingTurnsTests(engine);
    queueingEventsTests(engine);
    handlingEventsTests(engine);
    dueBeatsTests(engine);
    beatsTests(engine);
    pausingTests(engine);
    budgetsTests(engine);
    budgetUseTests(engine);
    announcingTests(engine);
    notifyingTests(engine);
    alertingTests(engine);
    schedulesTests(engine);
    keysTests(engine);
    sharesTests(engine);
    sweepingTests(engine);
    ageingTests(engine);
    overlappingTests(engine);
    if (engine.reopen) reopeningTests(engine);

    for (let seed = 1; seed <= SEEDS; seed++) {
      it(`gives the same results as the memory store in ${STEPS} random steps of seed ${seed}`, {
        timeout: 120_000,
      }, async () => {
        await runRandomSteps(engine, seed, STEPS);
      });
    }
  });
}
