import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { checkpointContract } from "./checkpoint-contract.ts";
import { sessionStoreContract } from "./contract.ts";
import { displacedContract } from "./displaced-contract.ts";
import { historyContract } from "./history-contract.ts";

for (const { name, endpoint } of dynamoEngines()) {
  const open = async () => dynamoSessionStore(await freshTable(endpoint));
  sessionStoreContract(name, open);
  historyContract(name, open);
  checkpointContract(name, open);
  displacedContract(name, open);
}
