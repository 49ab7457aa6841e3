import { expect, it } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";
import { answer, startReceiver } from "../channels/receiver.ts";

it("the metrics of endpoints have their attempts, waiting notifications and stops, only of configured endpoints", async () => {
  await using gone = await startReceiver([answer(410)]);
  await using failing = await startReceiver([answer(503)]);
  await using good = await startReceiver([answer(204)]);
  const secret = `whsec_${Buffer.from("the secret of an endpoint").toString("base64")}`;
  const endpoint = ({ url }: { url: string }) => ({ url: `${url}/in`, secret, events: ["turn.completed"] });
  const notify = { gone: endpoint(gone), failing: endpoint(failing), good: endpoint(good) };
  await using gateway = await startGateway({ config: { notify } });
  const metrics = async (names: RegExp) => {
    const { text } = await gateway.rest.call("ops.metrics", { key: gateway.rpcToken });
    return text.split("\n").filter((line) => names.test(line));
  };
  await gateway.rest.call("chat.send", { body: { message: "hello" } });
  await gateway.logged("notification.stopped", { endpoint: "gone" });
  await gateway.logged("notification.retried", { endpoint: "failing" });
  await gateway.logged("notification.delivered", { endpoint: "good" });
  expect((await metrics(/^gateway_notifications_total/)).sort()).toEqual([
    'gateway_notifications_total{endpoint="failing",outcome="retried"} 1',
    'gateway_notifications_total{endpoint="gone",outcome="stopped"} 1',
    'gateway_notifications_total{endpoint="good",outcome="delivered"} 1',
  ]);
  expect(await metrics(/^gateway_(notifications_waiting|endpoint_stopped)/)).toEqual([
    'gateway_notifications_waiting{endpoint="gone"} 1',
    'gateway_notifications_waiting{endpoint="failing"} 1',
    'gateway_notifications_waiting{endpoint="good"} 0',
    'gateway_endpoint_stopped{endpoint="gone"} 1',
    'gateway_endpoint_stopped{endpoint="failing"} 0',
    'gateway_endpoint_stopped{endpoint="good"} 0',
  ]);
  await gateway.reload({ notify: { good: notify.good } });
  expect(await metrics(/^gateway_endpoint_stopped/)).toEqual(['gateway_endpoint_stopped{endpoint="good"} 0']);
});
