/** A few processes that contend for one item as runners do, and list, batch and delete what they wrote. */
import type { Table } from "../../../lib/store/dynamodb/requests.ts";
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { StoreUnavailableError } from "../../../lib/store/errors.ts";
import type { Attempt } from "../attempts.ts";
import { createFaults, type FaultOptions, faultyTable } from "../faults.ts";
import { createScheduler, type Process, type SchedulerOptions } from "../scheduler.ts";

export interface Workload extends SchedulerOptions {
  readonly table: Table;
  readonly faults: FaultOptions;
  /** Of the items that this run writes: no other run on the same table may have it. */
  readonly name: string;
  readonly processes?: number;
  readonly rounds?: number;
}

export interface Run {
  readonly choices: readonly number[];
  readonly trace: readonly Attempt[];
}

export const runWorkload = async ({
  table,
  faults: options,
  name,
  processes = 3,
  rounds = 2,
  ...rest
}: Workload): Promise<Run> => {
  const scheduler = createScheduler(rest);
  const faults = createFaults(scheduler, options);
  for (let n = 0; n < processes; n++) {
    const process = scheduler.process(`p${n}`);
    void contend(faultyTable(table, process, faults), process, { name, rounds });
  }
  await scheduler.run();
  return { choices: scheduler.choices, trace: faults.trace };
};

const contend = async (
  table: Table,
  process: Process,
  { name, rounds }: { readonly name: string; readonly rounds: number },
): Promise<void> => {
  for (let round = 0; round < rounds; round++) {
    await turn(table, process, { name, round }).catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) throw error;
    });
  }
};

const turn = async (
  table: Table,
  { name: runner, clock }: Process,
  { name, round }: { readonly name: string; readonly round: number },
): Promise<void> => {
  const head = { pk: name, sk: "HEAD" };
  const attempt = new TextEncoder().encode(`${runner}.${round}`);
  await table.putIf(newHead(head, name), { condition: ["attribute_not_exists(#pk)"] });
  const claimed = await table.update(head, {
    set: ["#claim = :claim", "#fence = #fence + :one", "#open = if_not_exists(#open, :open)"],
    condition: ["(attribute_not_exists(#claim) OR #claim.#until <= :now)"],
    values: {
      claim: { attempt, until: clock.nowMs() + 30_000 },
      open: { turn: runner, steps: [] },
      one: 1,
      now: clock.nowMs(),
    },
  });
  if (!claimed.applied) return;
  const fence = claimed.item["fence"];
  const held = {
    condition: ["#fence = :fence", "#claim.#attempt = :attempt"],
    values: { fence, attempt },
  };
  await table.change(head, {
    set: ["#open.#steps = list_append(#open.#steps, :steps)"],
    condition: held.condition,
    values: { ...held.values, steps: [{ call: runner, round }] },
  });
  const pieces = [1, 2, 3].map((n) => ({ pk: name, sk: `S#${n}`, data: attempt }));
  await Promise.all([table.putAll(pieces), table.readAll([head, ...pieces.map(keyOf)])]);
  await table.change(head, {
    set: ["#version = #version + :one", "#recent.#turn = :recent"],
    remove: ["#claim", "#open", ...(round > 0 ? ["#recent.#older"] : [])],
    ...held,
    values: { ...held.values, one: 1, recent: { by: runner } },
    names: { turn: `${runner}.${round}`, older: `${runner}.${round - 1}` },
  });
  await Array.fromAsync(
    table.items({
      KeyConditionExpression: "#pk = :pk AND begins_with(#sk, :s)",
      ExpressionAttributeNames: { "#pk": "pk", "#sk": "sk" },
      ExpressionAttributeValues: { ":pk": name, ":s": "S#" },
      ConsistentRead: true,
      Limit: 2,
    }),
  );
  await table.query({
    IndexName: "by_owner",
    KeyConditionExpression: "#owner = :owner",
    ExpressionAttributeNames: { "#owner": "owner" },
    ExpressionAttributeValues: { ":owner": name },
    ScanIndexForward: false,
  });
  await table.deleteIf({ pk: name, sk: "S#2" }, { condition: ["attribute_exists(#pk)"] });
  await table.read(head);
};

const keyOf = ({ pk, sk }: Item): Item => ({ pk, sk });

const newHead = (key: Item, owner: string): Item => ({
  ...key,
  owner,
  created_key: "2026-12-01",
  session_id: "s",
  version: 1,
  fence: 0,
  recent: {},
});
