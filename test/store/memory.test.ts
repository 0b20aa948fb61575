import { memorySessionStore } from "../../lib/store/memory/store.ts";
import { sessionStoreContract } from "./contract.ts";

sessionStoreContract("memory", async () => memorySessionStore());
