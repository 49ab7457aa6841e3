import type { Page } from "playwright-core";

/** A picture of an animation: a WebP file without animation, its place in the canvas in even pixels, and the time for which it is shown. */
export type Frame = { webp: Buffer; x: number; y: number; width: number; height: number; ms: number };

const ANIMATED = 0x02;
/** A frame replaces the pixels at its place, and remains. */
const REPLACES = 0x02;

/** An animated WebP file that repeats forever, as described by https://developers.google.com/speed/webp/docs/riff_container. */
export function animationOf(frames: readonly Frame[], { width, height }: { width: number; height: number }): Buffer {
  const head = Buffer.concat([Buffer.from([ANIMATED, 0, 0, 0]), uint24(width - 1), uint24(height - 1)]);
  const parts = frames.map(({ webp, x, y, ms, ...size }) =>
    chunk(
      "ANMF",
      Buffer.concat([
        ...[x / 2, y / 2, size.width - 1, size.height - 1, ms].map(uint24),
        Buffer.from([REPLACES]),
        ...imageIn(webp),
      ]),
    ),
  );
  return chunk(
    "RIFF",
    Buffer.concat([Buffer.from("WEBP"), chunk("VP8X", head), chunk("ANIM", Buffer.alloc(6)), ...parts]),
  );
}

function uint24(value: number): Buffer {
  const bytes = Buffer.alloc(3);
  bytes.writeUIntLE(Math.round(value), 0, 3);
  return bytes;
}

function chunk(name: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8, name);
  head.writeUInt32LE(content.length, 4);
  return Buffer.concat([head, content, Buffer.alloc(content.length % 2)]);
}

/** The chunks with the image itself. */
function imageIn(webp: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 12; at < webp.length; ) {
    const length = 8 + webp.readUInt32LE(at + 4);
    const end = at + length + (length % 2);
    if (["ALPH", "VP8 ", "VP8L"].includes(webp.toString("latin1", at, at + 4))) found.push(webp.subarray(at, end));
    at = end;
  }
  return found;
}

/** Screenshots as frames, each with only the part that differs from the one before. One without a difference prolongs that. */
export async function framesOf(page: Page, shots: readonly { png: Buffer; ms: number }[]): Promise<Frame[]> {
  const frames: Frame[] = [];
  for (const { png, ms } of shots) {
    const part: Part | undefined = await page.evaluate(`(${encodeDifference})("${png.toString("base64")}")`);
    const last = frames.at(-1);
    if (part) frames.push({ ...part, webp: Buffer.from(part.webp, "base64"), ms });
    else if (last) last.ms += ms;
  }
  return frames;
}

type Part = Omit<Frame, "webp" | "ms"> & { webp: string };

const QUALITY = 0.72;

/** Runs in a page, which has the pixels of the previous screenshot. */
const encodeDifference = `(async (png) => {
  const image = await createImageBitmap(await (await fetch("data:image/png;base64," + png)).blob());
  const { width, height } = image;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { alpha: false });
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const before = globalThis.before;
  globalThis.before = pixels;
  let [left, top, right, bottom] = before ? [width, height, -1, -1] : [0, 0, width - 1, height - 1];
  if (before) for (let n = 0; n < pixels.length; n++) {
    if (pixels[n] === before[n]) continue;
    const [x, y] = [n % width, Math.floor(n / width)];
    left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
  }
  if (right < 0) return undefined;
  left -= left % 2; top -= top % 2;
  const part = new OffscreenCanvas(right - left + 1, bottom - top + 1);
  part.getContext("2d", { alpha: false }).drawImage(image, -left, -top);
  const bytes = new Uint8Array(await (await part.convertToBlob({ type: "image/webp", quality: ${QUALITY} })).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return { webp: btoa(text), x: left, y: top, width: part.width, height: part.height };
})`;
