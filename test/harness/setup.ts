import { afterAll } from "vitest";
import { closeLedger } from "./ledger.ts";

afterAll(closeLedger);
