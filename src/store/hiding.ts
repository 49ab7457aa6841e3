import { hashOf } from "#kit/secrets.ts";
import type {
  Delivery,
  DeliveryStep,
  GatewayNews,
  OutgoingResult,
  Store,
  ToolCall,
  TurnError,
  UsageRow,
} from "./store.ts";

/** A text without the secrets of the configuration; the same text where there is none. */
type Hide = (text: string) => string;

/**
 * A store whose records hold no secret of the configuration: deliveries with their headers, bodies and steps, failures, calls of tools, the
 * models that answered, news, and idempotency keys. Messages, replies and events are stored as received. So are the sessions, users and models
 * that calls name: the core refuses names with a secret. Records without a secret are not copied.
 */
export function hidingStore(store: Store, { hide, hideInJson }: { hide: Hide; hideInJson: Hide }): Store {
  const hideIn = <T extends string | undefined>(text: T): T => (text === undefined ? text : (hide(text) as T));
  const hideInStep = (step: DeliveryStep): DeliveryStep => {
    const { detail } = step;
    if (detail === undefined) return step;
    const clean = hideInJson(detail);
    return clean === detail ? step : { ...step, detail: clean };
  };
  /** Changes the delivery in place: it belongs to this call only. */
  const hideInDelivery = (delivery: Delivery | undefined): void => {
    if (delivery === undefined) return;
    delivery.path = hide(delivery.path);
    delivery.headers = hide(delivery.headers);
    delivery.method = hide(delivery.method);
    delivery.senderId = hideIn(delivery.senderId);
    delivery.body = hideIn(delivery.body);
    if (delivery.steps.length > 0) delivery.steps = delivery.steps.map(hideInStep);
  };
  const hideInError = <E extends TurnError | undefined>(error: E): E =>
    error?.detail === undefined ? error : { ...error, detail: hide(error.detail) };
  const hideInCall = (call: ToolCall): ToolCall => ({
    ...call,
    tool: hide(call.tool),
    ...(call.reason !== undefined && { reason: hide(call.reason) }),
    ...(call.arguments !== undefined && { arguments: hide(call.arguments) }),
    ...(call.result !== undefined && { result: hide(call.result) }),
  });
  const hideInUsage = <U extends UsageRow | undefined>(usage: U): U => {
    if (usage === undefined) return usage;
    const model = hide(usage.model);
    return model === usage.model ? usage : { ...usage, model };
  };
  const hideInResult = <R extends OutgoingResult>(result: R): R => ({
    ...result,
    reason: hideIn(result.reason),
    step: hideInStep(result.step),
  });

  /** A key that holds a secret is stored as its hash, by which a repeat finds it. */
  const hideInKey = <K extends { key: string } | undefined>(idempotency: K): K => {
    if (idempotency === undefined || hide(idempotency.key) === idempotency.key) return idempotency;
    return { ...idempotency, key: `sha256:${hashOf(idempotency.key).toString("base64url")}` };
  };

  const hiding: Partial<Store> = {
    findReplay: (key, now) => store.findReplay(hideInKey(key), now),
    findEventReplay: (key, now) => store.findEventReplay(hideInKey(key), now),
    startTurn(order) {
      hideInDelivery(order.delivery);
      order.idempotency = hideInKey(order.idempotency);
      order.countedModel = hide(order.countedModel);
      return store.startTurn(order);
    },
    startBeat(order) {
      order.turn.countedModel = hide(order.turn.countedModel);
      return store.startBeat(order);
    },
    runSchedule(order) {
      hideInDelivery(order.missed?.delivery);
      hideInDelivery(order.start?.delivery);
      const turn = order.start?.turn;
      if (turn && "countedModel" in turn) turn.countedModel = hide(turn.countedModel);
      if (turn && "refusal" in turn) turn.refusal.detail = hide(turn.refusal.detail);
      return store.runSchedule(order);
    },
    requestRun(name, order) {
      const { turn } = order;
      hideInDelivery(turn.delivery);
      turn.idempotency = hideInKey(turn.idempotency);
      turn.countedModel = hide(turn.countedModel);
      return store.requestRun(name, order);
    },
    endTurn(claim, end) {
      end.model = hideIn(end.model);
      end.usage = hideInUsage(end.usage);
      end.error = hideInError(end.error);
      if (end.toolCalls) end.toolCalls = end.toolCalls.map(hideInCall);
      return store.endTurn(claim, end);
    },
    releaseTurn: (claim, release) => store.releaseTurn(claim, { ...release, usage: hideInUsage(release.usage) }),
    failQueuedTurns: (agent, error, now) => store.failQueuedTurns(agent, hideInError(error), now),
    queueEvent(order) {
      hideInDelivery(order.delivery);
      order.idempotency = hideInKey(order.idempotency);
      return store.queueEvent(order);
    },
    failQueuedEvents: (agent, reason, end) => store.failQueuedEvents(agent, hide(reason), end),
    notifyEvent: (event) => store.notifyEvent({ ...event, data: hideInJson(event.data) }),
    endOutgoing: (claim, end) => store.endOutgoing(claim, hideInResult(end)),
    releaseOutgoing: (claim, release) => store.releaseOutgoing(claim, hideInResult(release)),
    appendGatewayEntry: (news, append) =>
      store.appendGatewayEntry(JSON.parse(hideInJson(JSON.stringify(news))) as GatewayNews, append),
    recordDelivery(delivery, recorder, work) {
      hideInDelivery(delivery);
      return store.recordDelivery(delivery, recorder, work);
    },
    addDeliveryStep: (deliveryId, step) => store.addDeliveryStep(deliveryId, hideInStep(step)),
  };
  return Object.assign(Object.create(store) as Store, hiding);
}
