import { errors } from "#generated/errors.ts";
import { GatewayError } from "#kit/errors.ts";
import { quoted, suggest } from "#kit/fault-words.ts";
import { isForm } from "#kit/forms.ts";
import type { Delivery } from "#store/store.ts";
import { requireTls } from "#wire/call/address.ts";
import { adviceOf, gatewayTokenHashOf, tokenHashOf } from "#wire/call/auth.ts";
import { readBody, requireJson, requireJsonOrForm } from "#wire/call/body.ts";
import { failCall, sendJson, type WireCall } from "#wire/call/call.ts";
import type { DoorAt } from "#wire/call/front.ts";
import { sendBody } from "#wire/call/problem.ts";
import type { CountRequest, Limit } from "#wire/call/rate-limit.ts";
import { truncate } from "#wire/call/refusals.ts";
import { HookExchange, type HookPlace } from "./hook-exchange.ts";
import type { HooksAccess, Sender, Signing } from "./hooks-access.ts";
import { type HookReply, type RunHook, readHookBody } from "./hooks-call.ts";
import { claimFault, type SignatureFault, signedWith, timeFault } from "./signatures.ts";

type HooksDoorParts = {
  path: string;
  access: () => HooksAccess;
  run: RunHook;
  rateLimit: CountRequest;
  limit: () => Limit | undefined;
  bodyLimit: () => number;
  record: (delivery: Delivery) => void | Promise<void>;
};

/** The door of webhooks: it answers permitted senders, and refuses the others with a problem that the recorder keeps. */
export function createHooksDoor(parts: HooksDoorParts): DoorAt {
  const fail = (call: WireCall, hook: HookExchange, error: unknown): void => {
    keepRefusal(parts, hook, error);
    failCall(call, error);
  };
  const door = async (call: WireCall): Promise<void> => {
    call.line.entered("hooks");
    const hook = new HookExchange(call);
    try {
      send(hook, await answer(parts, hook));
    } catch (error) {
      fail(call, hook, error);
    }
  };
  const failed = (call: WireCall, error: unknown) => fail(call, new HookExchange(call), error);
  return { prefix: parts.path, servers: true, door, fail: failed };
}

const REPLAYED = { "idempotent-replayed": "true" };

function send({ call, signing, headers, answer }: HookExchange, { body, replayed }: HookReply): void {
  call.line.started((body as { turnId?: string }).turnId);
  const marks = replayed ? REPLAYED : undefined;
  const plain = answer === "challenge" ? undefined : signing?.scheme.answerOf?.(headers);
  if (plain === undefined) return void sendJson(call, 200, body, marks);
  const type = plain.type && { "content-type": plain.type };
  sendBody(call.res, 200, { "x-request-id": call.requestId, ...type, ...marks }, plain.body);
}

/** A stranger's body is read only to check a signature over it, and is not parsed. Only the fields of a small form of Twilio, which it signs, are decoded. */
async function answer(parts: HooksDoorParts, hook: HookExchange): Promise<HookReply> {
  const { call } = hook;
  const access = parts.access();
  const place = requirePlace(parts, hook, access);
  const { mapping } = hook;
  const signing = mapping === undefined ? undefined : access.signingOf(mapping);
  hook.signing = signing;
  if (signing) requireClaim(parts, hook, signing);
  else accept(parts, hook, requireToken(parts, hook, access), "token.accepted");
  const raw = await readBody(call, parts.bodyLimit());
  if (signing) accept(parts, hook, requireSignature(parts, hook, signing, raw), "signature.accepted");
  if (hook.counting) await hook.counting;
  hook.raw = raw;
  if (place.name !== mapping) throw noMapping(place.name as string, access.mappingNames());
  const body = readHookBody(place.operation, raw, hook.headers);
  if (signing) requireTime(parts, hook, signing, body);
  hook.senderId = signing?.scheme.senderIdOf(hook.headers, body);
  const challenge = signing?.scheme.challengeOf?.(body);
  return challenge === undefined ? await parts.run(place, body, hook) : answerChallenge(parts, hook, challenge);
}

/** The target of the request. Without a shared token, a name that no mapping has is refused at once. */
function requirePlace({ path }: HooksDoorParts, hook: HookExchange, access: HooksAccess): HookPlace {
  const { call } = hook;
  const place = placeIn(path, call.path);
  if (place === undefined) throw call.nothingThere();
  hook.place = place;
  call.line.reached(place.operation);
  if (call.req.method !== "POST")
    throw new GatewayError("method-not-allowed", "This path takes POST.", { allow: "POST" });
  const { address } = call.peer;
  if (!access.allows(address))
    throw new GatewayError("address-not-allowed", `webhooks.allowedIps does not contain ${address}.`);
  requireTls(call.peer);
  const { name } = place;
  if (name !== undefined && access.hasMapping(name)) hook.mapping = name;
  else if (name !== undefined && !access.hasToken) throw noMapping(name);
  return place;
}

/** Notes the sender, and counts the request. Where other gateways count too, its body is read meanwhile. */
function accept(parts: HooksDoorParts, hook: HookExchange, sender: Sender, step: string): void {
  hook.sender = sender;
  hook.call.line.authenticated(sender.caller.name);
  hook.note(step, sender.detail);
  const left = parts.rateLimit(sender.rateKey);
  if (left instanceof Promise) hook.counting = noteCounted(parts, hook, left);
  else noteRate(parts, hook, left);
  requireType(hook);
}

function requireType({ call: { req }, signing }: HookExchange): void {
  if (signing) requireJsonOrForm(req);
  else if (isForm(req.headers["content-type"])) throw new GatewayError("unsupported-media-type", NO_FORM);
  else requireJson(req);
}

const NO_FORM =
  "Send Content-Type: application/json. Forms are accepted only at the path of a mapping with `verify`, because they must be signed.";

function noteCounted(parts: HooksDoorParts, hook: HookExchange, counting: Promise<number | undefined>): Promise<void> {
  const noted = counting.then((left) => noteRate(parts, hook, left));
  noted.catch(() => {}); // The code that awaits it gets the error.
  return noted;
}

function noteRate(parts: HooksDoorParts, hook: HookExchange, left: number | undefined): void {
  if (left === undefined) return;
  const { maxRequests: max_requests = 0, windowMs: window_ms = 0 } = parts.limit() ?? {};
  hook.note("rate-limit.counted", JSON.stringify({ left, max_requests, window_ms }));
}

function requireToken(parts: HooksDoorParts, hook: HookExchange, access: HooksAccess): Sender {
  const { req } = hook.call;
  const bearer = tokenHashOf(req);
  const other = gatewayTokenHashOf(req);
  const sender = (bearer && access.identify(bearer)) ?? (other && access.identify(other));
  if (sender) return sender;
  hook.note("token.refused", JSON.stringify({ reason: bearer || other ? "wrong" : "missing" }));
  const ways = "`Authorization: Bearer <token>` or `x-gateway-token: <token>`";
  throw unauthenticated(parts, hook, adviceOf(`\`${parts.path}\` takes the webhook token: ${ways}.`, req));
}

/** Checks the claim in the headers before the body is read. */
function requireClaim(parts: HooksDoorParts, hook: HookExchange, { scheme }: Signing): void {
  const fault = claimFault(scheme.claimOf(hook.headers), hook.call.parts.clock.now());
  if (fault !== undefined) throw signatureRefused(parts, hook, fault);
}

function requireSignature(parts: HooksDoorParts, hook: HookExchange, signing: Signing, raw: Buffer): Sender {
  const claim = signing.scheme.claimOf(hook.headers);
  const index = claim && signedWith(signing, claim, raw, hook.headers);
  const sender = index === undefined ? undefined : signing.senders[index];
  if (sender === undefined) throw signatureRefused(parts, hook, { reason: "wrong" });
  return sender;
}

/** Checks the time in a body whose signature is good. */
function requireTime(parts: HooksDoorParts, hook: HookExchange, { scheme }: Signing, body: unknown): void {
  const fault = timeFault(scheme, body, hook.call.parts.clock.now());
  if (fault !== undefined) throw signatureRefused(parts, hook, fault);
}

/** The recorded detail of each fault. It contains no values of the request, so that lists can count equal refusals. */
const FAULTS: Readonly<Record<SignatureFault, string>> = {
  missing: "The signature is missing or incomplete.",
  wrong: "The signature does not match the body.",
  "too-old": "The signature is too old.",
  "too-new": "The time of the signature is in the future.",
};

function signatureRefused(parts: HooksDoorParts, hook: HookExchange, fault: { reason: SignatureFault }): GatewayError {
  hook.note("signature.refused", JSON.stringify({ type: hook.signing?.type, ...fault }));
  hook.refusal = FAULTS[fault.reason];
  return unauthenticated(parts, hook, "The signature is missing, wrong, or too old.");
}

function unauthenticated(parts: HooksDoorParts, hook: HookExchange, advice: string): GatewayError {
  return hook.call.parts.guard(hook.call, advice, shownPath(parts, hook), hook.mapping);
}

/** A name that no mapping has may be anything, a token too. */
function shownPath({ path, access }: HooksDoorParts, { place, call }: HookExchange): string {
  return place?.name !== undefined && !access().hasMapping(place.name) ? `${path}/{name}` : call.path;
}

function answerChallenge({ record }: HooksDoorParts, hook: HookExchange, challenge: string): HookReply {
  hook.answer = "challenge";
  hook.note("challenge.answered");
  void record({ ...hook.delivery(), status: 200 });
  return { body: { challenge }, replayed: false };
}

/** Records a refusal, so that "nothing arrived" can be distinguished from "it was refused". A flood of them is only counted. */
function keepRefusal(parts: HooksDoorParts, hook: HookExchange, thrown: unknown): void {
  const { call } = hook;
  const place = placeIn(parts.path, call.path);
  call.line.entered("hooks");
  // A request that no mapping matched is recorded already, as unmatched.
  if (place === undefined || hook.answer === "unmatched") return;
  hook.place = place;
  call.line.reached(place.operation);
  const { name: error, detail: told } = GatewayError.from(thrown);
  const detail = (error === "unauthenticated" && hook.refusal) || told;
  const { status } = errors[error];
  if (!call.parts.refusals.admits(call.peer.network, error, hook.sender !== undefined)) return;
  hook.answer = "refused";
  hook.note("request.refused", JSON.stringify({ error, status, ...(error !== "internal" && { detail }) }));
  const delivery = { ...hook.delivery(), status };
  if (hook.sender === undefined) Object.assign(truncate(delivery), { path: shownPath(parts, hook) });
  void parts.record(delivery);
}

function placeIn(prefix: string, path: string): HookPlace | undefined {
  if (path === prefix) return { operation: "hooks.mapped", name: undefined };
  const name = path.startsWith(`${prefix}/`) ? path.slice(prefix.length + 1) : "";
  if (name === "wake" || name === "agent") return { operation: `hooks.${name}`, name: undefined };
  return name === "" || name.includes("/") ? undefined : { operation: "hooks.mappedByName", name };
}

/** The names that there are, for callers that are known. */
function noMapping(name: string, known: readonly string[] = []): GatewayError {
  return new GatewayError("mapping-not-found", `No mapping is named ${quoted(name)}.${suggest(name, known)}`);
}
