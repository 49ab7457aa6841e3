import { sqlite } from "./sqlite-engine.ts";
import { storeSuite } from "./suite.ts";

storeSuite(sqlite);
