import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { BedrockRuntimeClient } from "@aws-sdk/client-bedrock-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { describe, expect, test } from "vitest";
import { ProviderError } from "../../../lib/models/errors.ts";
import { SECRET } from "../provider-contract.ts";
import type { BedrockAnswer } from "../wire-bedrock.ts";
import { type Ask, bedrockScene, FIVE, SETTINGS } from "./scene.ts";

const { ask, server } = bedrockScene();

const errorOf = async (what: Ask): Promise<ProviderError> => {
  const error: unknown = await ask(what).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ProviderError);
  return error as ProviderError;
};

const exception = (type: string, status: number, body: object = {}): BedrockAnswer => ({
  kind: "exception",
  type,
  status,
  body: { message: "Nothing doing.", ...body },
});

describe("a refusal", () => {
  test.each([
    { type: "ThrottlingException", status: 429, isTransient: true },
    { type: "ModelNotReadyException", status: 429, isTransient: true },
    { type: "ModelTimeoutException", status: 408, isTransient: true },
    { type: "ModelErrorException", status: 424, isTransient: true },
    {
      type: "ModelErrorException",
      status: 424,
      body: { originalStatusCode: 503 },
      isTransient: true,
    },
    {
      type: "ModelErrorException",
      status: 424,
      body: { originalStatusCode: 400 },
      isTransient: false,
    },
    { type: "ServiceQuotaExceededException", status: 400, isTransient: false },
    { type: "ExpiredTokenException", status: 403, isTransient: false },
    { type: "SomethingNewException", status: 502, isTransient: true },
    { type: "SomethingNewException", status: 418, isTransient: false },
  ])("$type with $status $body is transient: $isTransient", async (row) => {
    const { type, status, body, isTransient } = row;
    const before = server().sent.length;
    const answers = [1, 2, 3, 4].map(() => exception(type, status, body));
    const error = await errorOf({ answers });
    expect(error).toMatchObject({ status, isTransient, requestId: expect.any(String) });
    expect(error.message).toContain(`${type}: Nothing doing.`);
    expect(server().sent.length - before).toBe(isTransient ? 4 : 1);
  });

  test("for a history that is too long isn't tried again", async () => {
    const body = { message: "The model returned the following errors: prompt is too long" };
    const before = server().sent.length;
    const error = await errorOf({ answers: [exception("ValidationException", 400, body), FIVE] });
    expect(error.message).toContain("prompt is too long");
    expect(server().sent.length - before).toBe(1);
  });

  test("that isn't JSON goes by its status", async () => {
    const html = createServer((request, response) => {
      request.resume();
      response.writeHead(request.url?.endsWith("stream") ? 403 : 503, {
        "content-type": "text/html",
      });
      response.end(`<html>${SECRET}</html>`);
    });
    html.listen(0, "127.0.0.1");
    await new Promise((resolve) => html.once("listening", resolve));
    const endpoint = `http://127.0.0.1:${(html.address() as AddressInfo).port}`;
    const options = { endpoint, maxTries: 1 };
    expect(await errorOf({ options })).toMatchObject({ status: 503, isTransient: true });
    const forbidden = await errorOf({ options, onText: () => {} });
    expect(forbidden).toMatchObject({ status: 403, isTransient: false });
    html.close();
    html.closeAllConnections();
  });

  test("names a date to come again", async () => {
    const headers = { "retry-after": "Thu, 01 Jan 2026 00:01:00 GMT" };
    const error = await errorOf({
      answers: [{ kind: "refusal", status: 429, headers, message: "later" }],
      options: { now: () => Date.UTC(2026, 0, 1), maxTries: 1 },
    });
    expect(error.retryAfterMs).toBe(60_000);
  });

  test("shows no key, no token, and nothing of the request that was signed", async () => {
    const sessionToken = "IQoJb3JpZ2luX2Vj//token+of=ann";
    const credentials = { ...SETTINGS.credentials, sessionToken };
    const quoted = [
      `Key ${SECRET} or ${sessionToken} or AKIAOFANN0123456 isn't welcome`,
      `It doesn't match.\n\nThe request was\n'POST\nx-amz-security-token:${sessionToken}'`,
      `Bearer ABSKQmVkcm9ja0FQSUtleS0xMjM0 and Signature=0123456789abcdef are wrong`,
      `${"x".repeat(490)}${SECRET}`,
    ];
    for (const message of quoted) {
      for (const onText of [undefined, () => {}]) {
        const answers = [exception("InvalidSignatureException", 403, { message })];
        const error = await errorOf({
          answers,
          options: { credentials },
          ...(onText ? { onText } : {}),
        });
        const shown = JSON.stringify([error, error.message, error.stack, error.cause]);
        for (const hidden of [SECRET.slice(0, 9), "IQoJ", "AKIA", "ABSK", "012345678", "x-amz"]) {
          expect(shown).not.toContain(hidden);
        }
        expect(error.message.length).toBeLessThan(700);
      }
    }
  });
});

describe("no answer", () => {
  test("where nobody listens is tried again", async () => {
    const closed = createServer();
    closed.listen(0, "127.0.0.1");
    await new Promise((resolve) => closed.once("listening", resolve));
    const endpoint = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`;
    await new Promise((resolve) => closed.close(resolve));
    let waits = 0;
    const sleep = async () => {
      waits++;
    };
    const error = await errorOf({ options: { endpoint, sleep } });
    expect(error).toMatchObject({ isTransient: true, status: undefined, requestId: undefined });
    expect(waits).toBe(3);
  });

  test("without credentials isn't worth another try", async () => {
    const credentials = async () => {
      throw new Error("no role here");
    };
    const error = await errorOf({ options: { credentials } });
    expect(error).toMatchObject({ isTransient: false, status: undefined });
    expect(error.message).toContain("no role here");
  });

  test("while credentials are waited for ends with the signal", async () => {
    const reason = new Error("enough");
    const credentials = () => new Promise<never>(() => {});
    const asked = ask({ options: { credentials }, signal: AbortSignal.timeout(50) });
    await expect(asked).rejects.toMatchObject({ name: "TimeoutError" });
    const controller = new AbortController();
    const streamed = ask({
      options: { credentials },
      signal: controller.signal,
      onText: () => {},
    });
    controller.abort(reason);
    await expect(streamed).rejects.toBe(reason);
  });

  test.each([
    "null",
    "[]",
    "{}",
    '"x"',
    '{"stopReason":"end_turn","output":{"message":{"content":[null]}}}',
  ])("is what %s is taken for", async (body) => {
    const odd = { kind: "json", body: JSON.parse(body) as unknown } as const;
    const reply = await ask({ answers: [odd, FIVE] });
    expect(reply.message.content).toBe("five");
  });
});

test("a client of one's own is used", async () => {
  const client = new BedrockRuntimeClient({
    region: "eu-west-1",
    endpoint: server().url,
    credentials: { accessKeyId: "AKIAOFBOB0123456", secretAccessKey: "of bob" },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  });
  await ask({ options: { client } });
  expect(server().sent.at(-1)?.headers.authorization).toContain("Credential=AKIAOFBOB0123456/");
  client.destroy();
});
