import { mappedBy } from "#console/lib/requests.ts";
import { payloadOf } from "#console/lib/webhook-requests.ts";
import type { Delivery, DryRun } from "#generated/clients/typescript/src/rest.ts";

type Of = { delivery: Delivery; payload: string; result: DryRun | undefined };

/** The effect of a replay with this payload; `result` is its dry run, where mappings are asked. */
export function Effect({ delivery, payload, result }: Of) {
  if (mappedBy(delivery)) return result ? <MappedEffect result={result} /> : <>Checking the current mappings…</>;
  const read = payloadOf(payload);
  const { agent = delivery.agent, session } = ("body" in read ? read.body : {}) as Record<string, unknown>;
  const who = <strong>{typeof agent === "string" ? agent : "the default agent"}</strong>;
  if (delivery.operation === "hooks.wake") return <>Queues a system event for {who}.</>;
  return (
    <>
      Starts a turn for {who} in {typeof session === "string" ? `the session ${session}` : "a new session"}.
    </>
  );
}

/** The turn that the current mappings start. */
function MappedEffect({ result: { starts, mappings } }: { result: DryRun }) {
  const turn = mappings.find(({ mapping }) => mapping === starts)?.turn;
  if (!turn) return <>No current mapping matches. The request is recorded and starts no turn.</>;
  return (
    <>
      The mapping {starts} starts a turn for <strong>{turn.agent}</strong> in{" "}
      {turn.session_id === null ? "a new session" : `the session ${turn.session_id}`}.
    </>
  );
}
