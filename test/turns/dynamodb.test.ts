import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { turnsContract } from "./contract.ts";

for (const { name, endpoint } of dynamoEngines()) {
  turnsContract(name, async () => dynamoSessionStore(await freshTable(endpoint)));
}
