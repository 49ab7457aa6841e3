import { endingsSuite } from "./endings-suite.ts";

await endingsSuite(60);
