/** Watches what passes between the turns and their store, and between the store and its table. */
import { decodeStep } from "../../lib/store/codec.ts";
import { decodeContent } from "../../lib/store/dynamodb/content.ts";
import type { Table } from "../../lib/store/dynamodb/requests.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { ClaimResult, Head, SessionStore } from "../../lib/store/store.ts";
import type { Delivery, Log } from "./log.ts";

/** A table that tells which tool calls came to stand in it. */
export const observedTable = (table: Table, { kept, seen, faults }: Log): Table => ({
  ...table,
  change: async (key, change) => {
    const written = await table.change(key, change);
    const steps = change.values?.["kept"];
    if (written.applied && Array.isArray(steps)) {
      for (const step of steps as Item[]) for (const call of callsOf(step)) kept.add(call);
      const open = (await table.read(key))?.["open"] as { readonly k: readonly Item[] } | undefined;
      if (open?.k.slice(0, -steps.length).some(({ x }) => x === undefined)) {
        faults.push("a step was kept behind one that has no results yet");
      }
    }
    return written;
  },
  putIf: async (item, change) => {
    const written = await table.putIf(item, change);
    if (!written.applied && String(item["sk"]).startsWith("S#")) seen.add("segment adopted");
    return written;
  },
});

/** Steps too large for HEAD are named there: their model gives their name as their only call's. */
const callsOf = ({ m: content }: Item): string[] => {
  if (typeof content !== "string" && !(content instanceof Uint8Array)) return [LARGE];
  return decodeStep(decodeContent(content, ""), "").message.toolCalls.map(({ id }) => id);
};

/** Stands for the calls of steps that aren't in HEAD itself. */
export const LARGE = "large";

/** The store as one delivery sees it. */
export const observedStore = (
  store: SessionStore,
  delivery: Delivery,
  { seen }: Log,
): SessionStore => {
  let attempt = "";
  const key = delivery.turnId === undefined ? undefined : turnKey(delivery.turnId);

  const look = (head: Head | undefined): void => {
    if (head) delivery.incarnation = head.incarnation;
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
      if (created.applied || created.seen?.incarnation === write.head.incarnation) {
        grantedWith(write.head, write.over ? "create over a dead session" : "create");
      } else {
        look(created.seen);
      }
      return created;
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
      if (result.applied) seen.add(`checkpoint of ${what}`);
      else if (result.seen?.open?.revision === write.revision + 1) {
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
