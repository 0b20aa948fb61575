import { memorySessionStore } from "../../lib/store/memory/store.ts";
import { contracts } from "./contracts.ts";

for (const contract of contracts) contract("memory", async () => memorySessionStore());
