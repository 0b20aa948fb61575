/** What a turn asked of the table, and what that comes to. */

export interface Interval {
  readonly startMs: number;
  readonly endMs: number;
}

/** One request and its answer. */
export interface Exchange extends Interval {
  /** "UpdateItem", "Query", … */
  readonly operation: string;
  /** Consumed capacity, as the table tells it. */
  readonly units: number;
  readonly answer: Readonly<Record<string, unknown>>;
}

export interface Trace {
  /** In the order in which they began. */
  readonly exchanges: readonly Exchange[];
  /** When a model was thinking. */
  readonly thinking: readonly Interval[];
  /** Of the requests' and the answers' bodies. */
  readonly bytes: number;
}

export interface Costs {
  readonly requests: number;
  readonly units: number;
}

export const writesOf = ({ exchanges }: Trace): Costs =>
  costsOf(exchanges.filter((it) => !isRead(it)));

export const readsOf = ({ exchanges }: Trace): Costs => costsOf(exchanges.filter(isRead));

/**
 * The longest chain of requests that followed one another while no model was thinking: what the
 * caller waits for. A request that a model's thinking overlapped costs no time.
 */
export const roundTripsOf = ({ exchanges, thinking }: Trace): number => {
  const waited = exchanges.filter((exchange) => !thinking.some((it) => overlap(exchange, it)));
  let chain = 0;
  let endMs = Number.NEGATIVE_INFINITY;
  // The one that ends first leaves the most room for those behind it.
  for (const exchange of waited.toSorted((a, b) => a.endMs - b.endMs)) {
    if (exchange.startMs < endMs) continue;
    chain += 1;
    endMs = exchange.endMs;
  }
  return chain;
};

const READS = ["GetItem", "BatchGetItem", "Query", "Scan"];

const isRead = ({ operation }: Exchange): boolean => READS.includes(operation);

const costsOf = (exchanges: readonly Exchange[]): Costs => ({
  requests: exchanges.length,
  units: exchanges.reduce((sum, { units }) => sum + units, 0),
});

const overlap = (a: Interval, b: Interval): boolean => a.startMs < b.endMs && b.startMs < a.endMs;
