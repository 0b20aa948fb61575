import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { sessionStoreContract } from "./contract.ts";

for (const { name, endpoint } of dynamoEngines()) {
  sessionStoreContract(name, async () => dynamoSessionStore(await freshTable(endpoint)));
}
