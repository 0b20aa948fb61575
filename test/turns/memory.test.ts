import { memorySessionStore } from "../../lib/store/memory/store.ts";
import { busyContract } from "./busy-contract.ts";
import { cancelContract } from "./cancel-contract.ts";
import { turnsContract } from "./contract.ts";
import { leaseContract } from "./lease-contract.ts";
import { resumeContract } from "./resume-contract.ts";

const contracts = [turnsContract, resumeContract, leaseContract, busyContract, cancelContract];
for (const contract of contracts) contract("memory", async () => memorySessionStore());
