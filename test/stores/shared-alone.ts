import type { SharedStore } from "#store/shared-store.ts";

/** What a store that several gateways share answers to the only gateway. */
export const SHARED: SharedStore = {
  countRequest: async () => ({ left: 1 }),
  readRequests: async (keys) => keys.map(() => ({ left: 1, wholeInMs: undefined })),
  gateways: () => 1,
  haveAgents: async () => {},
  missingAgents: async () => [],
  askTexts: async () => {},
  putTexts: async () => {},
  readTexts: async () => [],
  dropTexts: async () => {},
};
