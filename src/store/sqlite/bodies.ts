import type { Delivery } from "#store/store.ts";

/**
 * A delivery whose body is text of a character for each byte: most bodies are JSON, and text costs least to send and to keep. In the
 * worker all bodies are such texts, as the rules ask a body for nothing but its length.
 */
export const withTextBody = <D extends Pick<Delivery, "body">>(delivery: D): D => {
  const { body } = delivery;
  const text = body && Buffer.from(body.buffer, body.byteOffset, body.length).toString("latin1");
  return { ...delivery, body: text };
};

/** A delivery as it came from the worker, with its body as bytes again. */
export const withBytesBody = <D extends Pick<Delivery, "body">>(delivery: D): D => {
  const text = delivery.body as unknown as string | undefined;
  return { ...delivery, body: text === undefined ? undefined : Buffer.from(text, "latin1") };
};
