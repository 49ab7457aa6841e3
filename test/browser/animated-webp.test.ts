import { expect, it } from "vitest";
import { animationOf, framesOf } from "./animated-webp.ts";
import { browserTests, startPages } from "./browser.ts";

browserTests(({ open }) => {
  it("screenshots become an animation of their differences, which a browser shows unchanged", async () => {
    await using gateway = await startPages();
    // WebCodecs require an address of this machine.
    await using page = await open(gateway, { token: "", path: "/healthz", viewport: { width: 200, height: 120 } });
    const shot = async (colour: string, ms: number) => {
      await page.evaluate(`document.body.innerHTML = "";
        const box = document.body.appendChild(document.createElement("div"));
        box.style.cssText = "position:fixed;left:51px;top:21px;width:40px;height:30px;background:${colour}"`);
      return { png: await page.screenshot(), ms };
    };
    const shots = [await shot("red", 100), await shot("blue", 200), await shot("blue", 300), await shot("white", 400)];
    const frames = await framesOf(page, shots);
    expect(frames.map(({ webp: _, ...frame }) => frame)).toEqual([
      { x: 0, y: 0, width: 200, height: 120, ms: 100 },
      { x: 50, y: 20, width: 41, height: 31, ms: 500 },
      { x: 50, y: 20, width: 41, height: 31, ms: 400 },
    ]);
    const animation = animationOf(frames, { width: 200, height: 120 }).toString("base64");
    const shown = await page.evaluate(`(async () => {
      const data = Uint8Array.from(atob("${animation}"), (one) => one.charCodeAt(0));
      const decoder = new ImageDecoder({ data, type: "image/webp" });
      await decoder.tracks.ready;
      const { frameCount, repetitionCount } = decoder.tracks.selectedTrack;
      const colours = [];
      for (let frameIndex = 0; frameIndex < frameCount; frameIndex++) {
        const { image } = await decoder.decode({ frameIndex });
        const context = new OffscreenCanvas(200, 120).getContext("2d");
        context.drawImage(image, 0, 0);
        const [red, green, blue] = context.getImageData(70, 35, 1, 1).data;
        colours.push([image.duration / 1000, ...[red, green, blue].map((one) => Math.round(one / 255))]);
      }
      return { repeats: repetitionCount === Infinity, colours };
    })()`);
    expect(shown).toEqual({
      repeats: true,
      colours: [
        [100, 1, 0, 0],
        [500, 0, 0, 1],
        [400, 1, 1, 1],
      ],
    });
  });
});
