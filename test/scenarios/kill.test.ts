/** The local gateway as a process, killed in the middle of a turn and started again on the same data. */
import { appendFile, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startChild } from "../dev/child.ts";
import { temporaryFolder } from "../dev/folder.ts";

const START = join(import.meta.dirname, "..", "..", "dev", "start.ts");
const LEASE_SECONDS = 1;

/** Its model writes a line for each call, and answers once the file `go` is there. */
const AGENT = `
import { appendFile, access } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, assistantMessage } from "oneturn";

const model = {
  async complete(messages) {
    await appendFile("calls", JSON.stringify(messages.map(({ content }) => content)) + "\\n");
    while (!(await access("go").then(() => true, () => false))) await sleep(10);
    return { message: assistantMessage("answer " + messages.length) };
  },
};
export const agent = new Agent({ model, system: "Be kind." });
`;

test("a turn killed in its model call leaves the history as it was; its retry runs it once, when the lease has ended", async () => {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, "agent.ts"), AGENT);
  const calls = async (): Promise<string[]> =>
    (await readFile(join(cwd, "calls"), "utf8").catch(() => "")).split("\n").filter(Boolean);
  const start = async () => {
    const env = { PORT: "0", AGENT: "agent.ts", LEASE_SECONDS: String(LEASE_SECONDS) };
    const child = startChild([START], { cwd, env });
    return { child, url: await child.printed(/oneturn is at (http:\S+)\. /) };
  };
  const post = (url: string, key: string, input: string): Promise<Response> =>
    fetch(`${url}/v1/sessions/s/turns`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify({ input }),
    });
  const get = async (url: string, path: string): Promise<unknown> =>
    (await fetch(`${url}/v1/sessions/s${path}`)).json();

  const first = await start();
  await appendFile(join(cwd, "go"), "");
  expect((await post(first.url, "a", "one")).status).toBe(200);
  const before = await get(first.url, "/messages");
  await rm(join(cwd, "go"));

  const cut = post(first.url, "b", "two").catch((error: unknown) => error);
  await expect.poll(async () => (await calls()).length).toBe(2);
  first.child.kill("SIGKILL");
  expect(await first.child.ended).toBe("SIGKILL");
  expect(await cut).toBeInstanceOf(Error);

  const second = await start();
  expect(await get(second.url, "/messages")).toEqual(before);
  expect(await get(second.url, "")).toMatchObject({
    version: 2,
    turn: { turn_id: "b", input: "two" },
  });
  await appendFile(join(cwd, "go"), "");
  let answer = await post(second.url, "b", "two");
  while (answer.status === 409) {
    expect(await answer.json()).toMatchObject({ code: "turn_in_progress" });
    await new Promise((resolve) => setTimeout(resolve, 100));
    answer = await post(second.url, "b", "two");
  }
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ final: "answer 4", version: 3, replayed: false });
  expect(await (await post(second.url, "b", "two")).json()).toMatchObject({
    final: "answer 4",
    replayed: true,
  });

  expect(await get(second.url, "")).toMatchObject({ message_count: 5, turn_count: 2, turn: null });
  expect(await get(second.url, "/messages")).toMatchObject({
    data: ["Be kind.", "one", "answer 2", "two", "answer 4"].map((content) => ({ content })),
  });
  expect(await calls()).toEqual([
    '["Be kind.","one"]',
    '["Be kind.","one","answer 2","two"]',
    '["Be kind.","one","answer 2","two"]',
  ]);
  second.child.kill("SIGTERM");
  expect(await second.child.ended).toBe(0);
});
