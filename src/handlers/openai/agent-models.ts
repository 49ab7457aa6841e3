import type { Agent } from "#core/agents/agents.ts";
import type { Core } from "#core/core.ts";
import type { Model } from "#generated/rest-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { quoted, suggest } from "#kit/fault-words.ts";

/** No agent's name holds it. */
const SEPARATOR = "/";

/** The names under which clients see an agent: its own, and one for each of its models where it has several. */
const namesOf = ({ name, backend: { models = [] } }: Agent): string[] =>
  models.length < 2 ? [name] : [name, ...models.map((model) => name + SEPARATOR + model)];

const present = (id: string): Model => ({ id, object: "model", created: 0, owned_by: "agent-gateway" });

export const listModels = ({ agents }: Core): Model[] => agents.list().flatMap(namesOf).map(present);

/** The agent that a client means by the name of a model, and which of its models where it says so. */
export const findAgent = ({ agents }: Core, asked: string): { agent: Agent; model: string | undefined } => {
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
    throw unknown(`The agent ${name} has no model ${model}; it takes ${known.join(", ") || "none by name"}.`);
  return { agent, model };
};

export const findModel = (core: Core, asked: string): Model => {
  findAgent(core, asked);
  return present(asked);
};

const unknown = (detail: string): GatewayError =>
  new GatewayError("agent-not-found", detail, { errors: [{ pointer: "/model", message: detail }] });
