import { describe } from "vitest";
import { claimingTests } from "./suite/claiming.ts";
import { compactingTests } from "./suite/compacting.ts";
import { countingTests } from "./suite/counting.ts";
import { deletingTests } from "./suite/deleting.ts";
import { endingTests } from "./suite/ending.ts";
import { gatewayStreamTests } from "./suite/gateway-stream.ts";
import { givingBackTests } from "./suite/giving-back.ts";
import { keysTests } from "./suite/keys.ts";
import { overlappingTests } from "./suite/overlapping.ts";
import { readingTests } from "./suite/reading.ts";
import { recorderTests } from "./suite/recorder.ts";
import { refusingTests } from "./suite/refusing.ts";
import { reopeningTests } from "./suite/reopening.ts";
import { repeatingTests } from "./suite/repeating.ts";
import { startingTests } from "./suite/starting.ts";
import { sweepingTests } from "./suite/sweeping.ts";
import { usageTests } from "./suite/usage.ts";
import { watchingTests } from "./suite/watching.ts";
import type { Engine } from "./world.ts";

/** Every guarantee of store.ts, as any engine must keep it. Nothing here looks inside one. */
export const storeSuite = (engine: Engine): void => {
  describe(`the ${engine.name} store`, () => {
    startingTests(engine);
    refusingTests(engine);
    repeatingTests(engine);
    claimingTests(engine);
    endingTests(engine);
    givingBackTests(engine);
    readingTests(engine);
    deletingTests(engine);
    compactingTests(engine);
    gatewayStreamTests(engine);
    countingTests(engine);
    watchingTests(engine);
    usageTests(engine);
    recorderTests(engine);
    keysTests(engine);
    sweepingTests(engine);
    overlappingTests(engine);
    if (engine.reopen) reopeningTests(engine);
  });
};
