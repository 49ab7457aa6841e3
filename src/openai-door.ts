import type { Core } from "#core/core.ts";
import type { DoorAt } from "#wire/front.ts";

type Loaded = typeof import("./openai-surface.ts");
export type WithRestKeys = Parameters<Loaded["createOpenAiSurface"]>[1];

/** The door for clients of OpenAI. All that is behind it is loaded with the first request. */
export const createOpenAiDoor = (core: Core, parts: WithRestKeys): DoorAt => {
  let loading: Promise<ReturnType<Loaded["createOpenAiSurface"]>> | undefined;
  const surface = () =>
    (loading ??= import("./openai-surface.ts").then(({ createOpenAiSurface }) => createOpenAiSurface(core, parts)));
  return {
    prefix: "/v1",
    door: async (call) => (await surface()).door(call),
    fail(call, error): void {
      surface().then(
        ({ fail }) => fail(call, error),
        () => call.res.destroy(),
      );
    },
  };
};
