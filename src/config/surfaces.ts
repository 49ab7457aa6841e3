import type { CheckedConfig } from "./conform.ts";
import type { Findings } from "./problems.ts";

type Surfaces = { rest: boolean; openai: boolean; rpc: boolean; webhooks: boolean; console: boolean };

/** Which surfaces have a secret. The console's token opens REST and RPC too: its pages live on them. */
function secured({ gateway, webhooks }: CheckedConfig): Omit<Surfaces, "openai"> {
  const { rest, rpc, console } = gateway;
  const consoleOn = console.enabled !== false && console.token !== undefined;
  const verified = Object.values(webhooks.mappings).some(({ verify }) => verify !== undefined);
  return {
    rest: rest.auth.keys.length > 0 || consoleOn,
    rpc: rpc.auth.tokens.length > 0 || consoleOn,
    webhooks: (webhooks.token !== undefined && webhooks.token.length > 0) || verified,
    console: console.token !== undefined,
  };
}

/** A surface is on when there is a secret for it and nobody switched it off. */
export function surfacesOn(config: CheckedConfig): Surfaces {
  const on = secured(config);
  const { rest, rpc, console } = config.gateway;
  return {
    rest: on.rest && rest.enabled !== false,
    openai: on.rest && rest.enabled !== false && config.gateway.openai.enabled,
    rpc: on.rpc && rpc.enabled !== false,
    webhooks: on.webhooks && config.webhooks.enabled !== false,
    console: on.console && console.enabled !== false,
  };
}

/** A surface that somebody switched on, but that nobody could enter. */
export function checkSurfaces(config: CheckedConfig, { refuse }: Findings): void {
  const { gateway, webhooks } = config;
  const on = secured(config);
  const refuseUnless = (good: boolean, enabled: boolean | undefined, path: string, hint: string) => {
    if (enabled && !good) refuse([...path.split("."), "enabled"], `is true, but ${hint}`);
  };
  refuseUnless(
    on.rest,
    gateway.rest.enabled,
    "gateway.rest",
    "there is no key: add one to gateway.rest.auth.keys, or set gateway.console.token.",
  );
  refuseUnless(
    on.rest && gateway.rest.enabled !== false,
    gateway.openai.enabled,
    "gateway.openai",
    "it takes the keys of REST, which is off: add one to gateway.rest.auth.keys.",
  );
  refuseUnless(on.rpc, gateway.rpc.enabled, "gateway.rpc", "there is no token: add one to gateway.rpc.auth.tokens.");
  refuseUnless(on.console, gateway.console.enabled, "gateway.console", "there is no token: set gateway.console.token.");
  refuseUnless(
    on.webhooks,
    webhooks.enabled,
    "webhooks",
    "there is no secret: set webhooks.token, or `verify` of a mapping.",
  );
}
