/** A local gateway in front of a stub handler, with what it printed; closed after the test. */
import { onTestFinished } from "vitest";
import { type Gateway, type GatewayOptions, startGateway } from "../../dev/gateway.ts";

export const OK = { statusCode: 200, body: "" };

export type Running = Gateway & { lines: string[]; errors: unknown[] };

export async function serve(
  handler: GatewayOptions["handler"],
  options: Partial<GatewayOptions> = {},
): Promise<Running> {
  const lines: string[] = [];
  const errors: unknown[] = [];
  const gateway = await startGateway({
    handler,
    port: 0,
    timeoutMs: 20_000,
    log: { info: (line: string) => lines.push(line), error: (error) => errors.push(error) },
    ...options,
  });
  onTestFinished(() => gateway.close());
  return { ...gateway, lines, errors };
}
