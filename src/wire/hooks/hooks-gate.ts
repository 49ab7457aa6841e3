import { errors } from "#generated/errors.ts";
import { GatewayError } from "#kit/errors.ts";
import { quoted, suggest } from "#kit/fault-words.ts";
import type { Events } from "#observe/events.ts";
import type { Delivery } from "#store/store.ts";
import { requireTls } from "#wire/call/address.ts";
import { adviceOf, type GuessGuard, gatewayTokenHashOf, tokenHashOf } from "#wire/call/auth.ts";
import { requireJson } from "#wire/call/media-type.ts";
import type { CountRequest } from "#wire/call/rate-limit.ts";
import { curb } from "#wire/call/refusals.ts";
import type { HookExchange, HookPlace } from "./hook-exchange.ts";
import type { HooksAccess, Sender } from "./hooks-access.ts";
import { readHookBody } from "./hooks-body.ts";
import type { HookReply, RunHook } from "./hooks-call.ts";
import { claimFault, type SignatureFault, signedWith } from "./signatures/signature.ts";

export type HooksGateParts = {
  /** Where webhooks are received. */
  path: string;
  access: () => HooksAccess;
  run: RunHook;
  guard: GuessGuard;
  rateLimit: CountRequest;
  limit: () => { maxRequests: number; windowMs: number } | undefined;
  record: (delivery: Delivery) => void | Promise<void>;
  /** Whether one more refusal of this network is kept: a flood of them is only counted. */
  admitsRefusal: (network: string, error: string) => boolean;
  now: () => number;
  events: Events;
};

/**
 * The webhooks' door without its transport. `admit` is all that can be said before the body; `take` answers it, once it came whole.
 * Both throw what becomes the problem, which `refuse` keeps. A stranger's body is never parsed, and read only where a signature over it
 * has to be checked.
 */
export const createHooksGate = (parts: HooksGateParts) => {
  const takes = `\`${parts.path}\` takes the webhook token: \`Authorization: Bearer <token>\` or \`x-gateway-token: <token>\`.`;
  const { path, access, run, guard, rateLimit, limit, record, admitsRefusal, now, events } = parts;

  const admit = (hook: HookExchange): void => {
    const { request } = hook;
    const place = placeIn(path, request.path);
    if (place === undefined) throw request.nothingThere();
    hook.place = place;
    request.operation = place.operation;
    if (request.req.method !== "POST")
      throw new GatewayError("method-not-allowed", "This path takes POST.", { allow: "POST" });
    const { name } = place;
    const may = access();
    if (!may.allows(request.peer.address))
      throw new GatewayError("address-not-allowed", `webhooks.allowedIps does not hold ${request.peer.address}.`);
    requireTls(request.peer);
    const isUnknown = name !== undefined && !may.hasMapping(name);
    if (isUnknown && !may.hasToken) throw noMapping(name);
    if (name !== undefined && !isUnknown) {
      hook.mapping = name;
      hook.signing = may.signingOf(name);
    }
    if (hook.signing) requireClaim(hook);
    else accept(hook, requireToken(hook, may), "token.accepted");
    if (isUnknown) throw noMapping(name, may.mappingNames());
  };

  const accept = (hook: HookExchange, sender: Sender, step: string): void => {
    hook.sender = sender;
    hook.request.caller = sender.caller.name;
    hook.note(step, sender.detail);
    const left = rateLimit(sender.rateKey);
    if (left instanceof Promise) countLater(hook, left);
    else noteRate(hook, left);
    requireJson(hook.request.req);
  };

  const noteRate = (hook: HookExchange, left: number | undefined): void => {
    if (left !== undefined) hook.note("rate-limit.counted", rateDetail(left, limit()));
  };

  /** Its body is read meanwhile. */
  const countLater = (hook: HookExchange, counting: Promise<number | undefined>): void => {
    hook.counting = counting.then((left) => noteRate(hook, left));
    hook.counting.catch(() => {}); // Whoever goes on with it is told.
  };

  const requireToken = (hook: HookExchange, may: HooksAccess): Sender => {
    const { req } = hook.request;
    const bearer = tokenHashOf(req);
    const sender = bearer && may.identify(bearer);
    if (sender) return sender;
    const apart = gatewayTokenHashOf(req);
    const other = apart && may.identify(apart);
    if (other) return other;
    hook.note("token.refused", bearer || apart ? WRONG : MISSING);
    throw unauthenticated(hook, adviceOf(takes, req));
  };

  const requireClaim = (hook: HookExchange): void => {
    const fault = claimFault(hook.signing?.scheme.claimOf(hook.headers), now());
    if (fault !== undefined) refuseSignature(hook, fault);
  };

  const requireSignature = (hook: HookExchange, raw: Buffer): void => {
    const { signing } = hook;
    if (signing === undefined) return;
    const { scheme, keys, senders } = signing;
    const claim = scheme.claimOf(hook.headers);
    const index = claim && signedWith(keys, claim, raw, scheme.encoding);
    const sender = index === undefined ? undefined : senders[index];
    if (sender === undefined) refuseSignature(hook, "wrong");
    else accept(hook, sender, "signature.accepted");
  };

  const refuseSignature = (hook: HookExchange, reason: SignatureFault): never => {
    hook.note("signature.refused", JSON.stringify({ type: hook.signing?.type, reason }));
    throw unauthenticated(hook, SIGNATURE_ADVICE);
  };

  /** A name that no mapping has may be anything, a token too. */
  const shownPath = ({ place, request }: HookExchange): string =>
    place?.name !== undefined && !access().hasMapping(place.name) ? `${path}/{name}` : request.path;

  const unauthenticated = (hook: HookExchange, advice: string): GatewayError => {
    const { peer, requestId } = hook.request;
    const { error, guessing } = guard(peer.network, advice);
    const { mapping } = hook;
    events.authFailed({
      surface: "hooks",
      address: peer.address,
      path: shownPath(hook),
      mapping,
      requestId,
      logged: !guessing,
    });
    hook.guessing = guessing;
    return error;
  };

  const take = async (hook: HookExchange, raw: Buffer): Promise<HookReply> => {
    requireSignature(hook, raw);
    await hook.counting;
    hook.raw = raw;
    const place = hook.place as HookPlace;
    const body = readHookBody(place.operation, raw);
    if (hook.signing) {
      const { scheme } = hook.signing;
      hook.senderId = scheme.senderIdOf(hook.headers, body);
      const challenge = scheme.challengeOf?.(body);
      if (challenge !== undefined) return answerChallenge(hook, challenge);
    }
    return await run(place, body, hook);
  };

  const answerChallenge = (hook: HookExchange, challenge: string): HookReply => {
    hook.answer = "challenge";
    hook.note("challenge.answered");
    const delivery = hook.delivery();
    delivery.status = 200;
    void record(delivery);
    return { body: { challenge }, replayed: false };
  };

  /** Keeps a refusal, so that "nothing arrived" can be told from "it was refused". */
  const refuse = (hook: HookExchange, thrown: unknown): void => {
    const { request } = hook;
    const place = placeIn(path, request.path);
    request.surface = "hooks";
    // What no mapping matched is kept already, as that.
    if (place === undefined || hook.answer === "unmatched") return;
    request.operation = place.operation;
    const { name: error, detail } = GatewayError.from(thrown);
    const { status } = errors[error];
    if (!admitsRefusal(request.peer.network, error)) return;
    hook.answer = "refused";
    hook.note("request.refused", JSON.stringify({ error, status, ...(error !== "internal" && { detail }) }));
    const delivery = hook.delivery();
    delivery.status = status;
    if (hook.sender === undefined) {
      curb(delivery);
      delivery.path = shownPath(hook);
    }
    void record(delivery);
  };

  return { admit, take, refuse };
};

export type HooksGate = ReturnType<typeof createHooksGate>;

const MISSING = '{"reason":"missing"}';
const WRONG = '{"reason":"wrong"}';
const SIGNATURE_ADVICE = "The signature is missing, wrong, or too old.";

const SLASH = 47;
const WAKE: HookPlace = { operation: "hooks.wake", name: undefined };
const AGENT: HookPlace = { operation: "hooks.agent", name: undefined };
const MAPPED: HookPlace = { operation: "hooks.mapped", name: undefined };

/** What a path leads to; undefined where that is nothing. */
const placeIn = (prefix: string, path: string): HookPlace | undefined => {
  if (path.length === prefix.length) return MAPPED;
  const name = path.slice(prefix.length + 1);
  if (name === "wake") return WAKE;
  if (name === "agent") return AGENT;
  if (name === "" || path.charCodeAt(prefix.length) !== SLASH || name.includes("/")) return undefined;
  return { operation: "hooks.mappedByName", name };
};

/** The names that there are, for callers that are known. */
const noMapping = (name: string, known: readonly string[] = []): GatewayError =>
  new GatewayError("mapping-not-found", `No mapping is named ${quoted(name)}.${suggest(name, known)}`);

const rateDetail = (left: number, limit: { maxRequests: number; windowMs: number } | undefined): string =>
  `{"left":${left},"max_requests":${limit?.maxRequests ?? 0},"window_ms":${limit?.windowMs ?? 0}}`;
