/** What holds on every store of turns whose agent sums up what its window leaves out. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Summarize, SummaryRequest } from "../../lib/agent/summary.ts";
import { StoreRefusedError, StoreUnavailableError } from "../../lib/store/errors.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { contents, type Scene, scene, steps, times } from "./scene.ts";

const TURNS = 3;

export const summaryContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`a window with a summary, on ${name}`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    /** Turn `n` is asked "question n"; a summary tells what it was given. */
    const summing = (
      summarize: Summarize = async ({ previous = "", messages }) =>
        `${previous}[${contents(messages)
          .filter((it) => it.startsWith("question"))
          .map((it) => it.slice("question ".length))
          .join(" ")}]`,
    ) => {
      const asked: SummaryRequest[] = [];
      const it = scene(store, {
        system: "Be kind.",
        replies: times(99, steps()),
        window: {
          turns: TURNS,
          summarize: (request) => {
            asked.push(request);
            return summarize(request);
          },
        },
      });
      return { ...it, asked };
    };
    const run = async (
      it: Scene,
      [from, to]: readonly [number, number],
      through?: Partial<SessionStore>,
    ) => {
      const { run: turn } = it.runner(through);
      for (let n = from; n <= to; n++) await turn({ ...it.key, input: `question ${n}` });
    };
    /** The first messages that the model was shown last, and the questions. */
    const shown = ({ model }: Scene) => {
      const messages = model.calls.at(-1)?.messages ?? [];
      const system = messages.filter(({ role }) => role === "system");
      const questions = messages.filter(({ role }) => role === "user");
      return {
        system: contents(system).map((it) => it.replace(/^What came before[^\n]*\n/, "")),
        questions: contents(questions).map((it) => Number(it.slice("question ".length))),
      };
    };

    test("shows all until twice as many turns stand, then a summary and the newest", async () => {
      const it = summing();
      await run(it, [1, 7]);
      expect(shown(it)).toEqual({ system: ["Be kind."], questions: [1, 2, 3, 4, 5, 6, 7] });
      expect(it.asked).toHaveLength(0);
      await run(it, [8, 8]);
      expect(shown(it)).toEqual({ system: ["Be kind.", "[1 2 3 4]"], questions: [5, 6, 7, 8] });
      expect(it.asked.map(({ previous }) => previous)).toEqual([undefined]);
    });

    test("is made once in so many turns, of the one before and what came since", async () => {
      const it = summing();
      await run(it, [1, 20]);
      expect(it.asked).toHaveLength(4);
      expect(it.asked.at(-1)).toMatchObject({ previous: "[1 2 3 4][5 6 7 8][9 10 11 12]" });
      expect(shown(it)).toEqual({
        system: ["Be kind.", "[1 2 3 4][5 6 7 8][9 10 11 12][13 14 15 16]"],
        questions: [17, 18, 19, 20],
      });
      expect((await it.history()).map(({ messages }) => messages.length)).toEqual([
        3,
        ...times(19, 2),
      ]);
      expect(contents(await it.messages()).join()).not.toContain("[1 2 3 4]");
    });

    test.each<[string, Summarize]>([
      ["fails", async () => Promise.reject(new Error("no"))],
      [
        "throws",
        () => {
          throw new Error("no");
        },
      ],
      ["gives nothing", async () => " "],
      ["gives too much", async () => "x".repeat(64 * 1024 + 1)],
    ])("that %s is done without, and asked for again", async (_what, summarize) => {
      const it = summing(summarize);
      await run(it, [1, 9]);
      expect(shown(it)).toEqual({ system: ["Be kind."], questions: [3, 4, 5, 6, 7, 8, 9] });
      expect(it.asked).toHaveLength(2);
    });

    test("that can't be stored is shown, and made again", async () => {
      const it = summing();
      await run(it, [1, 7]);
      const saveSummary: SessionStore["saveSummary"] = async () => {
        throw new StoreUnavailableError("no answer");
      };
      await run(it, [8, 8], { saveSummary });
      expect(shown(it).system).toEqual(["Be kind.", "[1 2 3 4]"]);
      await run(it, [9, 9]);
      expect(it.asked).toHaveLength(2);
      expect(shown(it)).toMatchObject({ system: ["Be kind.", "[1 2 3 4 5]"] });
    });

    test("that the store refuses is an error", async () => {
      const it = summing();
      await run(it, [1, 7]);
      const saveSummary: SessionStore["saveSummary"] = async () => {
        throw new StoreRefusedError("no right to write");
      };
      await expect(run(it, [8, 8], { saveSummary })).rejects.toThrow(StoreRefusedError);
    });

    test("stands for the older turns also where one of the newer is done again", async () => {
      const it = summing();
      await run(it, [1, 8]);
      const { run: turn } = it.runner();
      const newest = (await it.history()).at(-1)?.turnId ?? "";
      await turn({ ...it.key, input: "question 8", supersedes: newest });
      expect(shown(it)).toEqual({ system: ["Be kind.", "[1 2 3 4]"], questions: [5, 6, 7, 8] });
    });

    test("ends with its turn's time", async () => {
      const it = summing(() => new Promise(() => {}));
      await run(it, [1, 7]);
      const caller = new AbortController();
      const { signal } = caller;
      const turn = it.runner().run({ ...it.key, input: "question 8", signal });
      await expect.poll(() => it.asked.length).toBe(1);
      caller.abort(new Error("enough"));
      await expect(turn).rejects.toThrow("enough");
      expect(await it.head()).not.toHaveProperty("claim");
    });
  });
};
