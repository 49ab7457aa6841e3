import { runProofs } from "./command.ts";
import { PROOFS } from "./proofs.ts";

const ABOUT = `Clients send wakes, turns, messages, mapped hooks and bursts of hooks at full speed and write down every 2xx. The gateway is killed with -9 at random
moments and started again. In the end what it says over its API is held to what it had said.`;

await runProofs("test:crash", ABOUT, PROOFS);
