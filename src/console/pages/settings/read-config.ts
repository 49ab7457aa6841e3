import { rawFetch } from "#console/app/api.ts";
import { identity } from "#console/app/session.ts";
import type { ConfigReply } from "#console/lib/config-view.ts";

/** The running configuration; undefined where the gateway is too old to tell it. */
// @TODO Once the contract has it: `rest().call("config.get", {}, { signal })`.
export const readConfig = async (signal: AbortSignal): Promise<ConfigReply | undefined> => {
  const headers = { authorization: `Bearer ${identity.peek()?.token ?? ""}` };
  const response = await rawFetch("/api/v1/config", { headers, signal, cache: "no-store" });
  if (response.status === 404) return undefined;
  const reply = (await response.json()) as ConfigReply & { title?: string; detail?: string };
  if (!response.ok) throw new Error(reply.detail ?? reply.title ?? `The gateway answered ${response.status}.`);
  return reply;
};
