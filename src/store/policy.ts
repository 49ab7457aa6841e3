/** The parts of the configuration that the rules of the store need. */

/** An endpoint of notifications. The addresses and secrets of endpoints are not part of the policy. */
export type NotifyRule = {
  name: string;
  /** The full names of its events. */
  events: readonly string[];
  /** The only agents whose events it gets; undefined for all events. */
  agents: readonly string[] | undefined;
};

export type StorePolicy = {
  notify: readonly NotifyRule[];
};

/** The policy of a store until `configure` is called. */
export const NO_POLICY: StorePolicy = { notify: [] };
