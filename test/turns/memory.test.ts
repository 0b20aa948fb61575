import { memorySessionStore } from "../../lib/store/memory/store.ts";
import { turnsContract } from "./contract.ts";

turnsContract("memory", async () => memorySessionStore());
