/** Watches what passes between the turns and their store, and between the store and its table. */
import { decodeStep } from "../../lib/store/codec.ts";
import { decodeContent } from "../../lib/store/dynamodb/content.ts";
import type { Change } from "../../lib/store/dynamodb/expressions.ts";
import type { Table } from "../../lib/store/dynamodb/requests.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import type { Head } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { ClaimResult, Kept, SessionStore } from "../../lib/store/store.ts";
import type { Delivery, Log } from "./log.ts";

/** A table that tells what came to stand in it. */
export const observedTable = (table: Table, log: Log, nowMs: () => number): Table => ({
  ...table,
  update: async (key, change) => {
    const written = await table.update(key, change);
    if (written.applied) look(log, { key, change, item: written.item, nowMs: nowMs() });
    return written;
  },
  change: async (key, change) => {
    const written = await table.change(key, change);
    const item = written.applied ? await table.read(key) : undefined;
    if (item) look(log, { key, change, item, nowMs: nowMs() });
    return written;
  },
  putIf: async (item, change) => {
    const written = await table.putIf(item, change);
    const isSegment = String(item["sk"]).startsWith("S#");
    if (written.applied && !isSegment) log.claims.delete(String(item["pk"]));
    if (!written.applied && isSegment) log.seen.add("segment adopted");
    return written;
  },
});

interface Write {
  readonly key: Item;
  readonly change: Change;
  readonly item: Item;
  readonly nowMs: number;
}

const look = (log: Log, write: Write): void => {
  lookAtClaim(log, write);
  lookAtSteps(log, write);
  const { now } = write.change.values ?? {};
  const isDelete = write.item["deleted_at"] !== undefined;
  if (typeof now === "number" && !isDelete && Number(write.item["expires_at"]) <= now) {
    log.faults.push("a session was written to after its end");
  }
};

/** Two machines' clocks may differ by so much. */
const SKEW_MS = 1600;

const lookAtClaim = ({ claims, displacing }: Log, { key, item, nowMs }: Write): void => {
  const pk = String(key["pk"]);
  const claim = item["claim"] as { readonly a: Uint8Array; readonly u: number } | undefined;
  if (!claim) {
    claims.delete(pk);
    return;
  }
  const attempt = Buffer.from(claim.a).toString("hex");
  const before = claims.get(pk);
  const isSame = before?.attempt === attempt;
  if (before && !isSame && before.untilMs > nowMs + SKEW_MS) displacing.add(attempt);
  claims.set(pk, { attempt, untilMs: Math.max(claim.u, isSame ? before.untilMs : 0) });
};

const lookAtSteps = ({ kept, faults }: Log, { change, item }: Write): void => {
  const steps = change.values?.["kept"];
  if (!Array.isArray(steps)) return;
  for (const step of steps as Item[]) for (const call of callsOf(step)) kept.add(call);
  const open = item["open"] as { readonly k: readonly Item[] } | undefined;
  if (open?.k.slice(0, -steps.length).some(({ x }) => x === undefined)) {
    faults.push("a step was kept behind one that has no results yet");
  }
};

/** Steps too large for HEAD are named there: their model gives their name as their only call's. */
const callsOf = ({ m: content }: Item): string[] => {
  if (typeof content !== "string" && !(content instanceof Uint8Array)) return [LARGE];
  return decodeStep(decodeContent(content, ""), "").message.toolCalls.map(({ id }) => id);
};

/** A tool's result tells its call. */
const finishedIn = (kept: Kept): string[] =>
  ("steps" in kept ? kept.steps : [kept]).flatMap(({ results }) =>
    results.flatMap((result) => (result === null ? [] : result.split(" ").slice(1, 2))),
  );

/** Stands for the calls of steps that aren't in HEAD itself. */
export const LARGE = "large";

/** The store as one delivery sees it. */
export const observedStore = (
  store: SessionStore,
  delivery: Delivery,
  { seen, displacing, faults, finished }: Log,
): SessionStore => {
  let attempt = "";
  const key = delivery.turnId === undefined ? undefined : turnKey(delivery.turnId);

  /** What is answered is of the life that was granted, whatever stands there by then. */
  const look = (head: Head | undefined): void => {
    if (head && !delivery.granted) delivery.incarnation = head.incarnation;
  };

  const granted = (result: ClaimResult, how: string): ClaimResult => {
    if (!result.applied) {
      look(result.seen);
      if (result.seen?.claim?.attempt === attempt) {
        seen.add("own claim adopted");
        grantedWith(result.seen, how);
      }
      return result;
    }
    grantedWith(result.head, how);
    return result;
  };

  const grantedWith = (head: Head, how: string): void => {
    look(head);
    delivery.granted = head;
    seen.add(how);
    const mayDisplace = delivery.onBusy === "interrupt" || delivery.onBusy === "rollback";
    if (displacing.has(attempt) && !mayDisplace) {
      faults.push(`${delivery.name} got a session that another had`);
    }
    const { open } = head;
    if (open && open.steps > 0) seen.add(`resume at step ${open.steps}`);
  };

  return {
    ...store,
    read: async (it) => {
      const head = await store.read(it);
      look(head);
      return head;
    },
    create: async (write) => {
      attempt = write.head.claim?.attempt ?? "";
      const created = await store.create(write);
      if (created.applied) {
        grantedWith(write.head, write.over ? "create over a dead session" : "create");
        return created;
      }
      // Another send of the same request may have got through, and the session gone on since.
      return granted(created, "create unheard");
    },
    claim: async (claim) => {
      attempt = claim.claim.attempt;
      const result = await store.claim(claim);
      const ended = result.applied ? undefined : result.seen?.recent.get(claim.turnKey);
      if (ended) seen.add(`replay of a turn that was ${ended.outcome}`);
      return granted(result, "claim");
    },
    takeOver: async (write) => {
      attempt = write.claim.attempt;
      const isSame = write.seen.open?.turnId === write.open.turnId;
      const what = write.displaced?.record.outcome ?? (isSame ? "the same turn" : "dropped");
      return granted(await store.takeOver(write), `take-over: ${what}`);
    },
    displace: async (write) => {
      const result = await store.displace(write);
      if (result.applied) seen.add("cancelled");
      return result;
    },
    renew: async (write) => {
      const result = await store.renew(write);
      if (result.applied) seen.add("heartbeat");
      return result;
    },
    checkpoint: async (write) => {
      const result = await store.checkpoint(write);
      const what = "steps" in write.kept ? "steps" : "results";
      if (result.applied) {
        seen.add(`checkpoint of ${what}`);
        for (const call of finishedIn(write.kept)) finished.add(call);
      } else if (result.seen?.open?.revision === write.revision + 1) {
        seen.add(`own checkpoint of ${what} adopted`);
      }
      return result;
    },
    commit: async (write) => {
      const result = await store.commit(write);
      const recorded = result.applied ? undefined : result.seen?.recent.get(write.turnKey);
      if (result.applied) seen.add("commit");
      else if (recorded?.attempt === write.attempt) seen.add("own commit adopted");
      else if (recorded) seen.add("another's answer returned");
      return result;
    },
    findTurn: async (place, wanted) => {
      const record = await store.findTurn(place, wanted);
      if (record && wanted === key) seen.add(`in the index: ${record.outcome}`);
      return record;
    },
  };
};
