/** The embedded DynamoDB as a process of its own, which outlives the runners. */
import { startEmbedded } from "../../../dev/embedded.ts";

const database = await startEmbedded();
// It doesn't outlive who started it.
process.stdin.on("end", () => process.exit()).resume();
console.log(`ready ${database.endpoint}`);
