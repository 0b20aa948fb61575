/** All that every store of turns has to pass. */
import type { SessionStore } from "../../lib/store/store.ts";
import { abandonedContract } from "./abandoned-contract.ts";
import { cancelContract } from "./cancel-contract.ts";
import { checkpointsContract } from "./checkpoints-contract.ts";
import { claimContract } from "./claim-contract.ts";
import { displacingContract } from "./displacing-contract.ts";
import { endingContract } from "./ending-contract.ts";
import { historyContract } from "./history-contract.ts";
import { journalContract } from "./journal-contract.ts";
import { leaseContract } from "./lease-contract.ts";
import { refusalsContract } from "./refusals-contract.ts";
import { requestContract } from "./request-contract.ts";
import { resumeContract } from "./resume-contract.ts";
import { sessionsContract } from "./sessions-contract.ts";
import { summaryContract } from "./summary-contract.ts";
import { waitingContract } from "./waiting-contract.ts";

export const contracts: readonly ((name: string, open: () => Promise<SessionStore>) => void)[] = [
  historyContract,
  requestContract,
  claimContract,
  sessionsContract,
  checkpointsContract,
  resumeContract,
  abandonedContract,
  journalContract,
  leaseContract,
  endingContract,
  waitingContract,
  displacingContract,
  cancelContract,
  refusalsContract,
  summaryContract,
];
