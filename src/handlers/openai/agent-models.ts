import { type Agent, modelsOf } from "#core/agents/agents.ts";
import type { Core } from "#core/core.ts";
import type { Model } from "#generated/rest-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { quoted, suggest } from "#kit/fault-words.ts";

/** Names of agents cannot contain it. */
const SEPARATOR = "/";

/** The model names of an agent for clients: its own name, and one for each of its models if it has several. */
function namesOf({ name, backend: { models = [] } }: Agent): string[] {
  return models.length < 2 ? [name] : [name, ...models.map((model) => name + SEPARATOR + model)];
}

function present(id: string): Model {
  return { id, object: "model", created: 0, owned_by: "agent-gateway" };
}

export function listModels({ agents }: Core): Model[] {
  return agents.list().flatMap(namesOf).map(present);
}

/** The agent for a client's model name, and the agent's model if the name contains one. */
export function findAgent({ agents }: Core, asked: string): { agent: Agent; model: string | undefined } {
  const at = asked.indexOf(SEPARATOR);
  const [name, model] = at < 0 ? [asked, undefined] : [asked.slice(0, at), asked.slice(at + 1)];
  const agent = agents.find(name);
  if (!agent) {
    const names = agents.list().flatMap(namesOf);
    throw unknown(
      `No agent is named ${quoted(name)}: \`model\` names one, and GET /v1/models lists them.${suggest(asked, names)}`,
    );
  }
  const known = agent.backend.models ?? (model === "" ? [] : undefined);
  if (model !== undefined && known !== undefined && !known.includes(model))
    throw unknown(`The agent ${name} does not have the model ${model}. ${modelsOf(name, known)}`);
  return { agent, model };
}

export function findModel(core: Core, asked: string): Model {
  findAgent(core, asked);
  return present(asked);
}

function unknown(detail: string): GatewayError {
  return new GatewayError("agent-not-found", detail, { errors: [{ pointer: "/model", message: detail }] });
}
