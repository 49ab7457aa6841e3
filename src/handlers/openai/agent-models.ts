import { type Agent, modelsOf } from "#core/agents/agents.ts";
import type { Caller } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { agentsFor, findFor } from "#core/reach.ts";
import type { Model } from "#generated/rest-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { quoted, suggest } from "#kit/fault-words.ts";
import { requireReach } from "#kit/reach.ts";

/** Names of agents cannot contain it. */
const SEPARATOR = "/";

/** The model names of an agent for clients: its own name, and one for each of its models if it has several. */
function namesOf({ name, backend: { models = [] } }: Agent): string[] {
  return models.length < 2 ? [name] : [name, ...models.map((model) => name + SEPARATOR + model)];
}

function present(id: string): Model {
  return { id, object: "model", created: 0, owned_by: "agent-gateway" };
}

export function listModels({ agents }: Core, caller: Caller): Model[] {
  return agentsFor(agents, caller).flatMap(namesOf).map(present);
}

function partsOf(asked: string): [name: string, model: string | undefined] {
  const at = asked.indexOf(SEPARATOR);
  return at < 0 ? [asked, undefined] : [asked.slice(0, at), asked.slice(at + 1)];
}

type Found = { agent: Agent; model: string | undefined };

/** The agent for a client's model name, and the agent's model if the name contains one. Throws `forbidden` and `agent-not-found`. */
export function findAgent(core: Core, caller: Caller, asked: string): Found {
  requireReach(caller, partsOf(asked)[0]);
  return lookUp(core, caller, asked);
}

function lookUp({ agents }: Core, caller: Caller, asked: string): Found {
  const [name, model] = partsOf(asked);
  const agent = findFor(agents, caller, name);
  if (!agent) {
    const names = agentsFor(agents, caller).flatMap(namesOf);
    throw unknown(
      `No agent is named ${quoted(name)}: \`model\` names one, and GET /v1/models lists them.${suggest(asked, names)}`,
    );
  }
  const known = agent.backend.models ?? (model === "" ? [] : undefined);
  if (model !== undefined && known !== undefined && !known.includes(model))
    throw unknown(`The agent ${name} does not have the model ${model}. ${modelsOf(name, known)}`);
  return { agent, model };
}

/** Throws `agent-not-found`, also for an agent that the caller may not use: the list does not have it. */
export function findModel(core: Core, caller: Caller, asked: string): Model {
  lookUp(core, caller, asked);
  return present(asked);
}

function unknown(detail: string): GatewayError {
  return new GatewayError("agent-not-found", detail, { errors: [{ pointer: "/model", message: detail }] });
}
