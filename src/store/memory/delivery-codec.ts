import type { Delivery, Surface } from "#store/store.ts";
import { PackedReader, type PackedWriter } from "./packed.ts";

const SURFACES = ["rest", "rpc", "hooks", "heartbeat"] as const satisfies readonly Surface[];

/** Writes a delivery; its body comes last, so that it can be erased in place. */
export const encodeDelivery = (writer: PackedWriter, delivery: Delivery): void => {
  writer.id(delivery.deliveryId, "dlv_");
  writer.time(delivery.at);
  writer.byte(SURFACES.indexOf(delivery.surface));
  writer.text(delivery.operation);
  writer.text(delivery.method);
  writer.text(delivery.path);
  writer.text(delivery.address);
  writer.id(delivery.requestId, "req_");
  writer.text(delivery.caller);
  writer.text(delivery.headers);
  writer.count(delivery.bytes);
  if (delivery.body) writer.blob(delivery.body);
};

/** Reads what was written from `from` to `to`. `hasBody`: the rest of it is the body, which the answer gets a copy of. */
export const decodeDelivery = (bytes: Buffer, from: number, to: number, hasBody: boolean): Delivery => {
  const reader = new PackedReader(bytes, from);
  const delivery: Delivery = {
    deliveryId: reader.id("dlv_"),
    at: reader.time(),
    surface: SURFACES[reader.byte()] as Surface,
    operation: reader.text(),
    method: reader.text(),
    path: reader.text(),
    address: reader.text(),
    requestId: reader.id("req_"),
    caller: reader.text(),
    headers: reader.text(),
    bytes: reader.count(),
    body: undefined,
  };
  if (hasBody) delivery.body = Buffer.from(bytes.subarray(reader.at, to));
  return delivery;
};

/** Whether the delivery at `from` has this id. */
export const isDelivery = (bytes: Buffer, from: number, deliveryId: string): boolean =>
  new PackedReader(bytes, from).id("dlv_") === deliveryId;
