import { good } from "./configs.ts";

/** Keys of a section, as a test writes them. */
export type Keys = Record<string, unknown>;

/** A mapping that nothing is wrong with, but for what is told. */
export const rule = (more: Keys = {}): Keys => ({ match: {}, message: "said", ...more });

/** A section with these mappings. */
export const rules = (mappings: Record<string, Keys>, more: Keys = {}) => ({
  webhooks: { token: good(1), mappings, ...more },
});

/** A section with one mapping, that has these keys. */
export const one = (more: Keys, webhooks: Keys = {}) => rules({ push: rule(more) }, webhooks);
export const matching = (match: Keys, more: Keys = {}) => one({ match, ...more });

/** Where the one mapping stands. */
export const AT = "webhooks.mappings.push";
