import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { contracts } from "./contracts.ts";

for (const { name, endpoint } of dynamoEngines()) {
  const open = async () => dynamoSessionStore(await freshTable(endpoint));
  for (const contract of contracts) contract(name, open);
}
