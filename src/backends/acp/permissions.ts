import type { RequestPermissionRequest, RequestPermissionResponse } from "@agentclientprotocol/sdk";

const WANTED = { allow: ["allow_once", "allow_always"], deny: ["reject_once", "reject_always"] } as const;

/** What an agent is told that asks whether it may: nobody is there to be asked, so the configuration has said it before. */
export const answerPermission = (
  { options }: RequestPermissionRequest,
  permissions: "allow" | "deny",
): RequestPermissionResponse => {
  const [option] = WANTED[permissions].flatMap((kind) => options.find((option) => option.kind === kind) ?? []);
  return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
};
