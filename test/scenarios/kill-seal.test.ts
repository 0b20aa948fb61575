/** The gateway killed between the write of a segment and that of HEAD. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startChild } from "../dev/child.ts";
import { temporaryFolder } from "../dev/folder.ts";

const START = join(import.meta.dirname, "..", "..", "dev", "start.ts");

/** In turns whose input says "die", the process kills itself: the seal that runs beside the model's thinking is done by then. */
const AGENT = `
import { appendFileSync, existsSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, assistantMessage } from "oneturn";

const model = {
  async complete(messages) {
    const input = messages.at(-1).content;
    appendFileSync("seen", JSON.stringify([input, messages.length]) + "\\n");
    if (input.startsWith("die") && !existsSync(input.slice(0, 6))) {
      appendFileSync(input.slice(0, 6), "");
      await sleep(300);
      process.kill(process.pid, "SIGKILL");
      await sleep(10_000);
    }
    return { message: assistantMessage(input + " answered") };
  },
};
export const agent = new Agent({ model, system: "Be kind." });
`;

test("a process killed between segment and HEAD loses no turn, and its retry adopts the segment", async () => {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, "agent.ts"), AGENT);
  const start = async () => {
    const child = startChild([START], {
      cwd,
      env: { PORT: "0", AGENT: "agent.ts", LEASE_SECONDS: "1" },
    });
    return { child, url: await child.printed(/oneturn is at (http:\S+)\. /) };
  };
  let { child, url } = await start();
  /** Undefined where the connection broke. */
  const post = (key: string, input: string): Promise<Response | undefined> =>
    fetch(`${url}/v1/sessions/s/turns`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify({ input }),
    }).catch(() => undefined);

  const inputs = Array.from(
    { length: 9 },
    (_, n) => `${n % 3 === 2 ? `die-${n} ` : `turn ${n} `}${noise(n)}`,
  );
  for (const [n, input] of inputs.entries()) {
    let answer = await post(`k${n}`, input);
    if (!answer) {
      expect(await child.ended).toBe("SIGKILL");
      ({ child, url } = await start());
      answer = await post(`k${n}`, input);
    }
    while (answer?.status === 409) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      answer = await post(`k${n}`, input);
    }
    expect(answer).toMatchObject({ status: 200 });
  }

  const messages = await (await fetch(`${url}/v1/sessions/s/messages`)).json();
  expect(messages).toMatchObject({
    data: [
      { content: "Be kind." },
      ...inputs.flatMap((input) => [{ content: input }, { content: `${input} answered` }]),
    ],
    has_more: false,
  });
  // Each turn saw all turns before it, whole, also after a kill.
  const seen = (await readFile(join(cwd, "seen"), "utf8"))
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  const calls = inputs.flatMap((input, n) =>
    Array.from({ length: n % 3 === 2 ? 2 : 1 }, () => [input, 2 + 2 * n]),
  );
  expect(seen).toEqual(calls);
  child.kill("SIGTERM");
  expect(await child.ended).toBe(0);
});

/** About 1.2 KB that hardly compresses, so that each second turn finds HEAD full. */
const noise = (n: number): string =>
  Array.from({ length: 200 }, (_, at) => ((n * 7919 + at * 104_729) % 1_679_616).toString(36)).join(
    " ",
  );
