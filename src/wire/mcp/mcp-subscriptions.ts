import { GatewayError } from "#kit/errors.ts";
import type { McpRequest } from "./mcp-request.ts";

const MOST = 1024;
const MOST_OF_A_KEY = 16;

/** Counts the open subscriptions, so that one key cannot take them all. */
export function createSubscriptionLimit() {
  const openByKey = new Map<string, number>();
  let open = 0;
  return {
    /** Counts a subscription until its answer has ended. Returns the refusal if there are too many. */
    refusalOf({ call, caller: { tokenId } }: McpRequest): GatewayError | undefined {
      const ofKey = openByKey.get(tokenId) ?? 0;
      if (ofKey >= MOST_OF_A_KEY) {
        const limit = `This key has ${MOST_OF_A_KEY} open subscriptions, the most that a key may have.`;
        return new GatewayError("rate-limited", `${limit} Close one: a client needs only one.`);
      }
      if (open >= MOST)
        return new GatewayError("gateway-busy", `${MOST} subscriptions are open, the most there may be.`);
      openByKey.set(tokenId, ofKey + 1);
      open++;
      call.res.once("close", () => {
        open--;
        const left = (openByKey.get(tokenId) ?? 0) - 1;
        if (left > 0) openByKey.set(tokenId, left);
        else openByKey.delete(tokenId);
      });
      return undefined;
    },
  };
}
