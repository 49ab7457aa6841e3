import type { IncomingMessage, ServerResponse } from "node:http";
import type { Config, SurfaceName } from "#config/config.ts";
import type { Clock } from "#core/clock.ts";
import type { Core } from "#core/core.ts";
import { GatewayError } from "#core/errors.ts";
import { hashOf } from "#core/secrets.ts";
import { routes } from "#generated/routes.ts";
import { restHandlers } from "#handlers/rest/table.ts";
import type { Events } from "#observe/events.ts";
import type { LoopLag } from "#observe/loop-lag.ts";
import { METRICS_TYPE, type Registry } from "#observe/metrics.ts";
import { type Access, createAccess } from "#wire/access.ts";
import { createGuessGuard } from "#wire/auth.ts";
import { restPart, type Served, serveDocuments } from "#wire/documents.ts";
import { createFront, type DoorAt } from "#wire/front.ts";
import { createHostGuard } from "#wire/hosts.ts";
import { createOpsDoors, type Readiness } from "#wire/ops.ts";
import { createRateLimit } from "#wire/rate-limit.ts";
import { createRestDoor } from "#wire/rest.ts";
import { createRequestValidation, type ValidateRequest } from "#wire/rest-validation.ts";
import { createUnderWay } from "#wire/under-way.ts";

type DoorsParts = {
  config: Config;
  core: Core;
  clock: Clock;
  events: Events;
  registry: Registry;
  version: string;
  began: number;
  isDraining: () => boolean;
  isShort: () => boolean;
  lag: LoopLag;
};

const BUILT_SURFACES: readonly SurfaceName[] = ["rest", "docs", "metrics"];
const PING_MS = 1_000;

/** The doors of every listener, kept in step with the configuration. */
export const createDoors = (parts: DoorsParts) => {
  const { core, clock, events, registry, version } = parts;
  let { config } = parts;
  let access: Access = accessOf(config);
  let served: Served | undefined;
  let urls: readonly string[] = [];
  const guard = createGuessGuard(clock);
  const validation = createLatch<ValidateRequest>();
  const underWay = createUnderWay();
  const documents = () => Promise.all([import("#generated/openapi.json"), import("#generated/openrpc.json")]);

  const rest = createRestDoor({
    handlers: restHandlers(core),
    validation: () => validation.promise,
    identify: (token) => {
      const hash = hashOf(token);
      const key = core.keys.use(hash);
      if (!key) return access.identifyConsole(hash);
      const { name, scopes, keyId: tokenId = `config:${name}` } = key;
      return { surface: "rest", tokenId, name, scopes };
    },
    guard,
    rateLimit: createRateLimit(clock, () => config.gateway.rest.rateLimit),
    bodyLimit: () => config.limits.restBody,
    recordBodies: () => config.recorder.bodies,
    events,
    clock,
  });
  const ops = createOpsDoors({
    version,
    uptimeMs: () => clock.monotonic() - parts.began,
    readiness: () => readinessOf(parts, validation.isOpen()),
    documents: async () => {
      const [openapi, openrpc] = await documents();
      const address = { url: urls[0] ?? "/", webhookPath: config.webhooks.path };
      served ??= serveDocuments({ openapi: openapi.default, openrpc: openrpc.default }, address);
      return served;
    },
    metrics: registry.text,
    metricsType: METRICS_TYPE,
    identifyRpc: (token) => access.identifyRpc(hashOf(token)),
    guard,
    events,
  });
  const all: Record<string, DoorAt[]> = {
    rest: [{ prefix: "/api/v1", door: rest }],
    docs: [
      { prefix: "/openapi.json", door: ops.openapi },
      { prefix: "/openrpc.json", door: ops.openrpc },
    ],
    metrics: [{ prefix: "/metrics", door: ops.metrics }],
  };
  const always: DoorAt[] = [
    { prefix: "/healthz", door: ops.healthz },
    { prefix: "/readyz", door: ops.readyz },
  ];
  const surfacesOf = (listener: number): SurfaceName[] => {
    const wanted = config.gateway.listeners[listener]?.surfaces ?? [];
    return wanted.filter((surface) => BUILT_SURFACES.includes(surface) && isOn(config, surface));
  };
  let doorsOf: DoorAt[][] = [];
  let guards: ReturnType<typeof createHostGuard>[] = [];
  const arrange = () => {
    doorsOf = config.gateway.listeners.map((_, n) => [
      ...surfacesOf(n).flatMap((surface) => all[surface] ?? []),
      ...always,
    ]);
    guards = config.gateway.listeners.map(({ host, tls }) => {
      return createHostGuard(config.gateway.allowedOrigins, { loopback: isLoopback(host), tls: tls !== undefined });
    });
  };
  arrange();

  return {
    front: (listener: number): ((req: IncomingMessage, res: ServerResponse) => void) =>
      createFront({
        doors: () => doorsOf[listener] ?? [],
        peerOf: (req) => access.peerOf(req),
        guardHost: (req) => guards[listener]?.(req),
        underWay,
        events,
        clock,
      }),
    setUrls: (next: readonly string[]) => {
      urls = next;
    },
    surfaces: surfacesOf,
    underWay,
    /** The surfaces that answer 404, and why. */
    closed: () => closedSurfaces(config),
    /** Compiles the contract for the REST door, which waits for it. */
    async open(): Promise<void> {
      const [openapi] = await documents();
      const restRoutes = routes.filter(({ surface }) => surface === "rest");
      validation.open(await createRequestValidation(restPart(openapi.default), restRoutes));
    },
    reconfigure(next: Config): void {
      config = next;
      access = accessOf(next);
      served = undefined;
      arrange();
    },
  };
};

const accessOf = ({ gateway }: Config): Access =>
  createAccess({
    trustedProxies: gateway.trustedProxies,
    clearTextFrom: gateway.clearTextFrom,
    consoleToken: gateway.console.enabled ? gateway.console.token : undefined,
    rpcTokens: gateway.rpc.auth.tokens,
  });

const isOn = ({ gateway, webhooks }: Config, surface: SurfaceName): boolean => {
  if (surface === "webhooks") return webhooks.enabled;
  if (surface === "rest" || surface === "rpc" || surface === "console") return gateway[surface].enabled;
  return surface !== "metrics" || gateway.rpc.enabled;
};

const closedSurfaces = (config: Config): { surface: string; reason: string }[] =>
  (["rest", "rpc", "webhooks", "console"] as const).flatMap((surface) => {
    if (!isOn(config, surface)) return [{ surface, reason: "it has no secret, or enabled is false" }];
    return BUILT_SURFACES.includes(surface) ? [] : [{ surface, reason: "this version does not serve it yet" }];
  });

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || host.startsWith("127.");

/** What takes work and what does not, part by part. */
const readinessOf = async ({ core, isDraining, isShort, lag }: DoorsParts, restOpen: boolean): Promise<Readiness> => {
  const parts: Readiness["parts"] = {
    store: await answersInTime(core.store.ping()),
    rest: restOpen ? { ok: true } : { ok: false, detail: "The contract is still being compiled." },
    intake: isDraining() ? { ok: false, detail: "The gateway is draining." } : { ok: true },
    memory: isShort() ? { ok: false, detail: "The heap is nearly full." } : { ok: true },
    loop: loopOf(lag),
  };
  return { ready: Object.values(parts).every(({ ok }) => ok), parts };
};

const STALL_SECONDS = 1;

const loopOf = (lag: LoopLag): { ok: boolean; detail?: string } => {
  const { max } = lag.read();
  return max < STALL_SECONDS
    ? { ok: true }
    : { ok: false, detail: `The event loop stood still for ${max.toFixed(1)} s.` };
};

const answersInTime = async (ping: Promise<void>): Promise<{ ok: boolean; detail?: string }> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new GatewayError("store-unavailable")), PING_MS);
  });
  try {
    await Promise.race([ping, late]);
    return { ok: true };
  } catch {
    return { ok: false, detail: "The store does not answer." };
  } finally {
    clearTimeout(timer);
  }
};

/** A value that is not there yet, for those who wait for it. */
const createLatch = <T>() => {
  let open: (value: T) => void = () => {};
  let isOpen = false;
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return {
    promise,
    isOpen: () => isOpen,
    open(value: T): void {
      isOpen = true;
      open(value);
    },
  };
};
