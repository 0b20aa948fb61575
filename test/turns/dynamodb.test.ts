import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { busyContract } from "./busy-contract.ts";
import { cancelContract } from "./cancel-contract.ts";
import { turnsContract } from "./contract.ts";
import { leaseContract } from "./lease-contract.ts";
import { resumeContract } from "./resume-contract.ts";

for (const { name, endpoint } of dynamoEngines()) {
  const open = async () => dynamoSessionStore(await freshTable(endpoint));
  const contracts = [turnsContract, resumeContract, leaseContract, busyContract, cancelContract];
  for (const contract of contracts) contract(name, open);
}
