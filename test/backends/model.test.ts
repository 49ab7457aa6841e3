import { afterAll, beforeAll } from "vitest";
import { KIND_NAMES, KINDS, modelAt, openModels } from "./model-kinds.ts";
import type { ModelStandIn } from "./stand-ins/model-answers.ts";
import { backendSuite } from "./suite.ts";

for (const kind of KIND_NAMES) {
  let quick: ModelStandIn;
  let slow: ModelStandIn;
  let paced: ModelStandIn;
  let failing: ModelStandIn;
  beforeAll(async () => {
    quick = await KINDS[kind].start();
    const text = Array.from({ length: 20 }, (_, n) => `piece ${n}`);
    slow = await KINDS[kind].start({ text, paceMs: 150 });
    paced = await KINDS[kind].start({ text: ["It ", "takes ", "a ", "moment."], paceMs: 10 });
    failing = await KINDS[kind].start();
    failing.fail("401");
  });
  afterAll(async () => {
    for (const standIn of [quick, slow, paced, failing]) await standIn[Symbol.asyncDispose]();
  });

  backendSuite({
    name: `model (${kind})`,
    open: async () => openModels({ main: modelAt(kind, quick.url) }),
    openSlow: async () => openModels({ main: modelAt(kind, slow.url) }),
    openPaced: async () => openModels({ main: modelAt(kind, paced.url) }),
    openFailing: async () => openModels({ main: modelAt(kind, failing.url) }),
    deterministic: true,
  });
}
