import type { Core } from "#core/core.ts";
import { GatewayError } from "#kit/errors.ts";
import type { DoorAt } from "#wire/call/front.ts";

type Loaded = typeof import("./openai-surface.ts");
export type WithRestKeys = Parameters<Loaded["createOpenAiSurface"]>[1];

/**
 * The door for clients of OpenAI, and what stands in its place where it is closed: that says so in the shape that those clients read. All that
 * is behind it is loaded with the first request.
 */
export const createOpenAiDoor = (core: Core, parts: WithRestKeys): { open: DoorAt; closed: DoorAt } => {
  let loading: Promise<ReturnType<Loaded["createOpenAiSurface"]>> | undefined;
  let there: Awaited<typeof loading>;
  const load = async () => {
    const { createOpenAiSurface } = await import("./openai-surface.ts");
    there = createOpenAiSurface(core, parts);
    return there;
  };
  const surface = () => (loading ??= load());
  const open: DoorAt = {
    prefix: "/v1",
    // Once it is there, it is not waited for.
    door: (call) => (there ? there.door(call) : surface().then(({ door }) => door(call))),
    fail(call, error): void {
      surface().then(
        ({ fail }) => fail(call, error),
        () => call.res.destroy(),
      );
    },
  };
  const door = () => {
    throw new GatewayError("not-found", CLOSED);
  };
  return { open, closed: { ...open, door } };
};

const CLOSED =
  "The door for clients of OpenAI is closed here: gateway.openai.enabled in the configuration opens it, on the listeners that serve REST.";
