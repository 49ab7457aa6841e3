import { createEchoBackend } from "#backends/echo.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import type { TestSocket } from "./socket.ts";

/** A gateway for a file's tests of pushes: agents that answer, one that fails, one that a test controls (`live`), and a token for each permission. */
export async function shareLiveGateway() {
  const puppet = createPuppet();
  const gateway = await shareGateway({
    config: {
      agents: {
        main: { backend: "echo" },
        other: { backend: "echo" },
        bad: { backend: "echo", echo: { fail: "out of order" } },
        live: { backend: "echo" },
      },
      gateway: {
        defaultAgent: "main",
        rpc: {
          auth: {
            tokens: [
              { name: "ops", token: "rpc-token-of-the-tests", permissions: "*" },
              { name: "sender", token: "sender-token-of-tests", permissions: ["agent.sendMessage"] },
              { name: "reader", token: "reader-token-of-tests", permissions: ["session.get"] },
              { name: "health", token: "health-token-of-tests", permissions: ["system.health"] },
            ],
          },
        },
      },
    },
    makeBackend: (name, agent) => (name === "live" ? puppet.backend : createEchoBackend(agent.echo)),
  });
  return { puppet, gateway };
}

export function send(socket: TestSocket, sessionId: string, message = "Good morning", more: object = {}) {
  return socket.call<{ turnId: string; messageId: string }>("agent.sendMessage", {
    agentName: "main",
    sessionId,
    message,
    ...more,
  });
}
