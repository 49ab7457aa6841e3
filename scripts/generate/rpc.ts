import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as openRpcGenerator from "@open-rpc/generator";
import type { JsonObject } from "./json.ts";
import type { Output } from "./output.ts";

type Run = (options: { openrpcDocument: string; outDir: string; components: object[] }) => Promise<void>;

/** If Node loads it as CommonJS, its default export is one level deeper. */
const { default: loaded } = openRpcGenerator as unknown as { default: Run | { default: Run } };
const run: Run = typeof loaded === "function" ? loaded : loaded.default;

/** Makes @open-rpc/generator print the content of our component. It writes to a folder, which is read and removed. */
export async function rpcFiles({ servers: _, ...document }: JsonObject): Promise<Output> {
  // Servers are omitted, because the generator knows no variables in their addresses.
  const outDir = mkdtempSync(join(tmpdir(), "generate-rpc-"));
  const { warn } = console;
  console.warn = () => {}; // It warns of lists of types, which our other tools need for nullable values.
  try {
    await run({
      openrpcDocument: JSON.stringify(document),
      outDir,
      components: [
        {
          type: "custom",
          name: "agent-gateway",
          language: "typescript",
          customComponent: fileURLToPath(new URL("rpc-component.ts", import.meta.url)),
          customType: "typescript",
          openRPCPath: null,
        },
      ],
    });
    const printed = (file: string) => readFileSync(join(outDir, "custom", "typescript", file), "utf8");
    return {
      "rpc-handlers.ts": printed("rpc-handlers.ts"),
      "methods.ts": printed("methods.ts"),
    };
  } finally {
    console.warn = warn;
    rmSync(outDir, { recursive: true, force: true });
  }
}
