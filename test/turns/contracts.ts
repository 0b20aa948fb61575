/** All that every store of turns has to pass. */
import type { SessionStore } from "../../lib/store/store.ts";
import { busyContract } from "./busy-contract.ts";
import { cancelContract } from "./cancel-contract.ts";
import { turnsContract } from "./contract.ts";
import { journalContract } from "./journal-contract.ts";
import { leaseContract } from "./lease-contract.ts";
import { resumeContract } from "./resume-contract.ts";

export const contracts: readonly ((name: string, open: () => Promise<SessionStore>) => void)[] = [
  turnsContract,
  resumeContract,
  journalContract,
  leaseContract,
  busyContract,
  cancelContract,
];
