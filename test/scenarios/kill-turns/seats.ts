/** Where a run's runners sit: one that is killed is followed by another at once. */
import type { Killed } from "./evidence.ts";
import type { Kill } from "./plan.ts";
import type { Point } from "./points.ts";
import type { Runner, RunnerPool } from "./pool.ts";

export interface Seats {
  at(number: number): Promise<Seat>;
  readonly kills: readonly Killed[];
  /** When the last one was dead; in the future while one is dying, and once another one got the session. */
  leftMs(): number;
  /** Those that are taken. */
  all(): Promise<Seat[]>;
  /** From now on nobody is killed. Resolves when those who were are dead. */
  calm(): Promise<void>;
  /** Gives the runners back. */
  leave(): Promise<void>;
}

export interface Seat {
  readonly runner: Runner;
  isDead: boolean;
  /** The last one that its runner told. */
  last: Point | undefined;
  /** How its runner is to die. */
  kill: Kill | undefined;
  /** The kills that this one was taken from. */
  armedFrom: readonly Kill[] | undefined;
}

export interface SeatsOptions {
  readonly pool: RunnerPool;
  readonly nowMs: () => number;
  readonly tell: (what: string) => void;
}

export const openSeats = ({ pool, nowMs, tell }: SeatsOptions): Seats => {
  const seats: Promise<Seat>[] = [];
  const kills: Killed[] = [];
  const dying: Promise<void>[] = [];
  let timers: NodeJS.Timeout[] = [];
  let leftMs = 0;

  const at = (number: number): Promise<Seat> => (seats[number] ??= newSeat(number));

  const newSeat = async (number: number): Promise<Seat> => {
    const runner = await pool.take();
    const seat: Seat = {
      runner,
      isDead: false,
      last: undefined,
      kill: undefined,
      armedFrom: undefined,
    };
    const end = (how: Killed["how"]): void => {
      if (seat.isDead) return;
      seat.isDead = true;
      seats[number] = newSeat(number);
      kills.push({ how, point: seat.last });
      dying.push(bury(seat));
    };
    runner.watch((point, isStopped) => {
      if (seat.isDead) return;
      tell(`runner ${runner.pid} ${isStopped ? "stops" : "is"} ${point}`);
      seat.last = point;
      if (point !== "before the claim") leftMs = Number.POSITIVE_INFINITY;
      const { kill } = seat;
      if (isStopped && kill?.ms === undefined) return end("at");
      if (isStopped) timers.push(setTimeout(end, kill?.ms, "at"));
      if (!kill || !("after" in kill) || kill.after !== point) return;
      seat.kill = undefined;
      timers.push(setTimeout(end, kill.ms, "after"));
    });
    return seat;
  };

  const bury = async ({ runner }: Seat): Promise<void> => {
    leftMs = Number.POSITIVE_INFINITY;
    await runner.kill();
    leftMs = nowMs();
    tell(`runner ${runner.pid} is dead`);
  };

  const all = (): Promise<Seat[]> => Promise.all(seats.filter(() => true));

  const calm = async (): Promise<void> => {
    for (const timer of timers) clearTimeout(timer);
    timers = [];
    await Promise.all(dying);
    for (const seat of await all()) {
      seat.kill = undefined;
      seat.armedFrom = undefined;
    }
  };

  const leave = async (): Promise<void> => {
    await calm();
    for (const { runner } of await Promise.all(seats.splice(0).filter(() => true)))
      pool.give(runner);
  };

  return { at, all, kills, leftMs: () => leftMs, calm, leave };
};
