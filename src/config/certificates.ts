import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Tls } from "./config.ts";
import type { CheckedConfig } from "./conform.ts";
import type { Fault } from "./problems.ts";
import { unreadable } from "./read.ts";
import { traceOf } from "./trace.ts";

/** Reads the certificates of all listeners and holds each to its key. */
export async function readCertificates(
  { gateway }: CheckedConfig,
  file: string | null,
): Promise<{ tls: (Tls | undefined)[]; files: Record<string, string>; faults: Fault[] }> {
  const faults: Fault[] = [];
  const files: Record<string, string> = {};
  const from = file === null ? "." : dirname(file);
  const tls = await Promise.all(
    (gateway.listeners ?? []).map(async (listener, index) => {
      if (listener.tls === undefined) return undefined;
      const at = ["gateway", "listeners", index, "tls"];
      const read = async (key: "cert" | "key"): Promise<string> => {
        const written = listener.tls?.[key] ?? "";
        const path = resolve(from, written);
        files[path] = await traceOf(path);
        try {
          return await readFile(path, "utf8");
        } catch (error) {
          faults.push({
            path: [...at, key],
            on: "value",
            message: `names the file ${unreadable(written, error)}`,
          });
          return "";
        }
      };
      const pair = { cert: await read("cert"), key: await read("key") };
      if (pair.cert === "" || pair.key === "") return undefined;
      if (!(await belongTogether(pair))) {
        faults.push({
          path: at,
          on: "value",
          message:
            "has a certificate and a key that do not belong together, or a file that is not PEM: check `cert` and `key`.",
        });
      }
      return pair;
    }),
  );
  return { tls, files, faults };
}

async function belongTogether(pair: Tls): Promise<boolean> {
  const { createSecureContext } = await import("node:tls");
  try {
    createSecureContext(pair);
    return true;
  } catch {
    return false;
  }
}
