import { memorySessionStore } from "../../lib/store/memory/store.ts";
import { sessionStoreContract } from "./contract.ts";
import { historyContract } from "./history-contract.ts";

sessionStoreContract("memory", async () => memorySessionStore());
historyContract("memory", async () => memorySessionStore());
