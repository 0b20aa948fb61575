import { memorySessionStore } from "../../lib/store/memory/store.ts";
import { checkpointContract } from "./checkpoint-contract.ts";
import { sessionStoreContract } from "./contract.ts";
import { displacedContract } from "./displaced-contract.ts";
import { historyContract } from "./history-contract.ts";

sessionStoreContract("memory", async () => memorySessionStore());
historyContract("memory", async () => memorySessionStore());
checkpointContract("memory", async () => memorySessionStore());
displacedContract("memory", async () => memorySessionStore());
