import { workerData } from "node:worker_threads";
import type { WorkerOrder } from "../messages.ts";
import { serve } from "./serve.ts";

serve(workerData as WorkerOrder);
