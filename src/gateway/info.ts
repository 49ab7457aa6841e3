import type { Config, SurfaceName } from "#config/config.ts";
import { methods } from "#generated/methods.ts";
import type { Info } from "#generated/rpc-types.ts";
import { BATCH_LIMIT } from "#wire/rpc/rpc.ts";

type InfoParts = {
  version: string;
  /** This process, among those that share a store. */
  node: string;
  startedAt: number;
  isServed: (surface: SurfaceName) => boolean;
};

/** The facts about this gateway that `system.info` tells. */
export const createInfo =
  ({ version, node, startedAt, isServed }: InfoParts) =>
  ({ gateway, webhooks, limits }: Config): Info => {
    const { turnsPerSession, turns, events, messagesPerSession, storeBytes, webhookBody, restBody, rpcBody } = limits;
    return {
      name: "agent-gateway",
      version,
      node: { id: node, runtime: `node ${process.version}` },
      startedAt: new Date(startedAt).toISOString(),
      surfaces: [
        { name: "rest", enabled: isServed("rest"), path: "/api/v1" },
        { name: "rpc", enabled: isServed("rpc"), path: "/rpc" },
        { name: "webhooks", enabled: isServed("webhooks"), path: webhooks.path },
        { name: "console", enabled: isServed("console"), path: "/console" },
        // With REST's keys, where REST is.
        { name: "openai", enabled: gateway.openai.enabled && isServed("rest"), path: "/v1" },
      ],
      methods: Object.keys(methods),
      limits: {
        turnsPerSession,
        turns,
        events,
        messagesPerSession,
        storeBytes,
        webhookBody,
        restBody,
        rpcBody,
        batch: BATCH_LIMIT,
      },
    };
  };
