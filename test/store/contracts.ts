/** All that every session store has to pass. */
import type { SessionStore } from "../../lib/store/store.ts";
import { checkpointContract } from "./checkpoint-contract.ts";
import { claimContract } from "./claim-contract.ts";
import { displacedConditionsContract } from "./displaced-conditions-contract.ts";
import { displacedContract } from "./displaced-contract.ts";
import { historyContract } from "./history-contract.ts";
import { holderContract } from "./holder-contract.ts";
import { openTurnContract } from "./open-turn-contract.ts";
import { sessionContract } from "./session-contract.ts";
import { stepsContract } from "./steps-contract.ts";
import { summaryContract } from "./summary-contract.ts";

export const contracts: readonly ((name: string, open: () => Promise<SessionStore>) => void)[] = [
  sessionContract,
  claimContract,
  holderContract,
  historyContract,
  checkpointContract,
  stepsContract,
  openTurnContract,
  displacedContract,
  displacedConditionsContract,
  summaryContract,
];
