import type { Delivery } from "#store/store.ts";

/** A delivery whose body is text of a character for each byte: most bodies are JSON, and text costs least to send and to keep. */
export type TextDelivery<D = Delivery> = Omit<D, "body"> & { body: string | undefined };

export const withTextBody = <D extends Pick<Delivery, "body">>(delivery: D): TextDelivery<D> => {
  const { body } = delivery;
  const text = body && Buffer.from(body.buffer, body.byteOffset, body.length).toString("latin1");
  return { ...delivery, body: text };
};

export const withBytesBody = <D extends Pick<Delivery, "body">>(delivery: TextDelivery<D>): D => {
  const { body } = delivery;
  return { ...delivery, body: body === undefined ? undefined : Buffer.from(body, "latin1") } as unknown as D;
};
