import type { SessionConfigOption } from "@agentclientprotocol/sdk";
import { BackendError } from "#kit/errors.ts";

/** Sets the model of a session, by the option that the agent offers for it. A turn that names no model leaves it unchanged. */
export const createModelChoice = (
  options: readonly SessionConfigOption[] | null | undefined,
  set: (configId: string, value: string, signal: AbortSignal) => Promise<unknown>,
) => {
  const option = Array.isArray(options)
    ? options.find(({ type, category }) => type === "select" && category === "model")
    : undefined;
  let current = option?.type === "select" ? option.currentValue : undefined;
  return async (model: string | undefined, signal: AbortSignal): Promise<void> => {
    if (model === undefined || model === current) return;
    if (option?.type !== "select") throw new BackendError("the agent offers no choice of models");
    if (!namesIn(option.options).includes(model)) throw new BackendError(`the agent offers no model ${model}`);
    await set(option.id, model, signal);
    current = model;
  };
};

type Select = Extract<SessionConfigOption, { type: "select" }>;

const namesIn = (options: Select["options"]): string[] =>
  options.flatMap((one) => ("options" in one ? one.options.map(({ value }) => value) : one.value));
