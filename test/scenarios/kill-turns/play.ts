/** Plays turns against real processes: callers who don't give up, on runners that are killed under them. */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Line, linesFile } from "./agent.ts";
import type { AskedTurn, Evidence } from "./evidence.ts";
import type { Caller, Kill, Round } from "./plan.ts";
import { AHEAD_HEADER, STOP_HEADER } from "./points.ts";
import type { RunnerPool } from "./pool.ts";
import { getHistory, outcomeOf, postTurn, type Reply } from "./requests.ts";
import { openSeats, type Seat } from "./seats.ts";

export interface Stage {
  /** Resolves when each caller has an outcome. */
  play(round: Round): Promise<void>;
  /** One request to a runner of its own, which is killed under it; and nothing after that. */
  cut(caller: Caller, kill: Kill): Promise<void>;
  /** For every runner, so much time passes at once that a lease of someone dead has ended. */
  skipLease(): Promise<void>;
  /** Asks for each turn once more, and reads the whole history. */
  end(): Promise<Evidence>;
  /** What happened by now, line by line. */
  readonly story: readonly string[];
}

export interface StageOptions {
  readonly session: string;
  readonly pool: RunnerPool;
  readonly folder: string;
  readonly leaseSeconds: number;
  /** Whether a refused caller lets that time pass at once, and doesn't wait for it. */
  readonly skipsLeases: boolean;
}

/** What a runner adds to its lease, for clocks that differ. */
const MARGIN_MS = 2000;
/** A caller without an outcome by then never gets one. */
const GIVE_UP_MS = 120_000;
const PAUSE_MS = 60;
const CUT_SEAT = 2;
/** So often in a row, it is the turn's outcome and not an accident of the moment. */
const SUPERSEDED_TIMES = 3;

export const openStage = (options: StageOptions): Stage => {
  const { session, pool, folder, leaseSeconds, skipsLeases } = options;
  const leaseMs = 1000 * leaseSeconds + MARGIN_MS;
  let aheadMs = 0;
  const nowMs = (): number => Date.now() + aheadMs;
  const startedMs = Date.now();
  const story: string[] = [];
  const tell = (what: string): void => {
    story.push(`${String(Date.now() - startedMs).padStart(6)} ms  ${what}`);
  };
  const seats = openSeats({ pool, nowMs, tell });
  const turns = new Map<string, AskedTurn & { readonly caller: Caller }>();
  let moments = 0;
  const waitsMs: number[] = [];
  const faults: string[] = [];

  const play = async ({ callers, kills, apart }: Round): Promise<void> => {
    const left = [...kills];
    const isAlone = callers.length === 1;
    const first = { seat: 0, kills: left, isAlone };
    const second = { seat: apart ? 1 : 0, ...(apart ? { kills: [] } : {}), isAlone };
    const all = callers.map((caller, n) => deliver(caller, n === 0 ? first : second));
    const ends = await Promise.allSettled(all);
    await seats.calm();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  };

  const deliver = async (caller: Caller, delivery: Delivery): Promise<void> => {
    const { turn, delayMs = 0 } = caller;
    await sleep(delayMs);
    const untilMs = Date.now() + GIVE_UP_MS;
    let cutMs: number | undefined;
    let isTroubled = false;
    let superseded = 0;
    while (Date.now() < untilMs) {
      const seat = await seats.at(delivery.seat);
      if (delivery.kills) arm(seat, delivery.kills);
      const sentMs = nowMs();
      const reply = await send(seat, caller, delivery.kills !== undefined);
      if (!reply) {
        cutMs = Date.now();
        continue;
      }
      superseded = reply.body.code === "turn_superseded" ? superseded + 1 : 0;
      if (reply.status === 200 || superseded === SUPERSEDED_TIMES) {
        if (cutMs !== undefined) waitsMs.push(Date.now() - cutMs);
        const { told, outcomes, ...asked } = turnOf(caller);
        const first = outcomes.length === 0 ? moments++ : told;
        turns.set(turn, { ...asked, told: first, outcomes: [...outcomes, outcomeOf(reply)] });
        return;
      }
      if (reply.status === 503 || reply.status === 504) isTroubled = true;
      else if (reply.status !== 409)
        throw new Error(`${turn} gets ${reply.status}: ${seat.runner.stderr()}`);
      const isBusy = reply.status === 409 && superseded === 0;
      if (isBusy && delivery.isAlone && !isTroubled && sentMs > seats.leftMs() + leaseMs)
        faults.push(`${turn} is refused, and nobody can have the session any more`);
      if (isBusy && skipsLeases) await skipLease();
      await sleep(PAUSE_MS);
    }
    throw new Error(`${turn} has no outcome after ${GIVE_UP_MS / 1000} s`);
  };

  const turnOf = (caller: Caller) => {
    const known = turns.get(caller.turn);
    if (known) return known;
    const turn = { caller, input: caller.input, sent: moments++, told: 0, outcomes: [] };
    turns.set(caller.turn, turn);
    return turn;
  };

  /** Undefined where its runner was killed over it. */
  const send = async (
    seat: Seat,
    caller: Caller,
    isInCharge: boolean,
  ): Promise<Reply | undefined> => {
    turnOf(caller);
    const { runner, kill } = seat;
    const stop = kill && "at" in kill ? JSON.stringify(kill) : "";
    tell(`${caller.turn} goes to runner ${runner.pid}, ${caller.onBusy} ${stop}`);
    const headers = {
      [AHEAD_HEADER]: `${aheadMs}`,
      ...(isInCharge ? { [STOP_HEADER]: stop } : {}),
    };
    try {
      const signal = AbortSignal.timeout(GIVE_UP_MS);
      const reply = await postTurn(runner.url, session, { caller, headers, signal });
      tell(`${caller.turn} gets ${reply.status} ${reply.body.code ?? reply.body.finish}`);
      return reply;
    } catch (cause) {
      if (seat.isDead) return undefined;
      throw new Error(`runner ${runner.pid} breaks ${caller.turn} off: ${runner.stderr()}`, {
        cause,
      });
    }
  };

  const cut: Stage["cut"] = async (caller, kill) => {
    const seat = await seats.at(CUT_SEAT);
    seat.kill = kill;
    const untilMs = Date.now() + GIVE_UP_MS;
    while (await send(seat, caller, true)) {
      if (Date.now() > untilMs) throw new Error(`${caller.turn} never comes to its kill`);
      await sleep(PAUSE_MS);
    }
  };

  const skipLease = async (): Promise<void> => {
    aheadMs += leaseMs;
    tell("a lease's time passes");
    const headers = { [AHEAD_HEADER]: String(aheadMs) };
    for (const { runner, isDead } of await seats.all())
      if (!isDead) await fetch(`${runner.url}/ping`, { headers });
  };

  const end = async (): Promise<Evidence> => {
    for (const { caller } of [...turns.values()])
      await deliver(caller, { seat: 0, kills: [], isAlone: true });
    const { runner } = await seats.at(0);
    const history = await getHistory(runner.url, session);
    await seats.leave();
    const lines = (await readFile(linesFile(folder, session), "utf8")).trim().split("\n");
    return {
      turns,
      history,
      lines: lines.map(lineOf),
      kills: seats.kills,
      waitsMs,
      faults,
    };
  };

  return { play, cut, skipLease, end, story };
};

interface Delivery {
  readonly seat: number;
  /** Of those who die under it, in turn; without them it has no say in that. */
  readonly kills?: Kill[];
  readonly isAlone: boolean;
}

/** Each runner is armed once. */
const arm = (seat: Seat, kills: Kill[]): void => {
  if (seat.armedFrom === kills) return;
  seat.armedFrom = kills;
  seat.kill = kills.shift();
};

const lineOf = (text: string): Line => {
  const line: Line = JSON.parse(text);
  return line;
};
