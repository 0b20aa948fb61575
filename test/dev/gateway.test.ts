import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Sent, send } from "./send.ts";
import { OK, serve } from "./serve.ts";

describe("a body over Lambda's limit", () => {
  const LIMIT = 6 * 1024 * 1024;
  const TOO_LONG = [413, '{"message":"Request Too Long"}'];

  async function replyTo(sent: Sent) {
    let calls = 0;
    const { url } = await serve(() => {
      calls += 1;
      return OK;
    });
    const reply = await send(url, "/x", { method: "POST", ...sent });
    return { answer: [reply.status, reply.text], calls };
  }

  test("is a 413, and the handler is not called", async () => {
    expect(await replyTo({ body: Buffer.alloc(LIMIT + 1, "a") })).toEqual({
      answer: TOO_LONG,
      calls: 0,
    });
  });

  test("is a 413 where only the event around it is over the limit", async () => {
    expect((await replyTo({ body: '"'.repeat(LIMIT / 2) })).answer).toEqual(TOO_LONG);
    expect((await replyTo({ body: Buffer.alloc(LIMIT * 0.8, 0xff) })).answer).toEqual(TOO_LONG);
  });

  test("is answered to a client that sends without end", async () => {
    const { url } = await serve(() => OK);
    const socket = await open(url);
    socket.write("POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = `10000\r\n${"a".repeat(0x10000)}\r\n`;
    const pour = (): void => {
      while (socket.writable && socket.write(chunk));
      socket.once("drain", pour);
    };
    pour();
    const answer: unknown[] = await once(socket, "data");
    expect(String(answer[0])).toMatch(/^HTTP\/1\.1 413 /);
  });

  test("leaves one just below it alone", async () => {
    expect((await replyTo({ body: Buffer.alloc(LIMIT - 10_000, "a") })).calls).toBe(1);
  });
});

describe("a client that goes away", () => {
  test("in mid-body is logged, the handler is not called, and the others are served", async () => {
    let calls = 0;
    const gateway = await serve(() => {
      calls += 1;
      return OK;
    });
    const socket = await open(gateway.url);
    socket.write("POST /gone HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf");
    await send(gateway.url, "/first");
    socket.destroy();
    await expect
      .poll(() => gateway.lines)
      .toContainEqual(expect.stringMatching(/^POST \/gone 499 /));
    expect((await send(gateway.url, "/second")).status).toBe(200);
    expect(calls).toBe(2);
    expect(gateway.errors).toEqual([]);
  });

  test("during the turn leaves the handler to finish, as on Lambda (R02)", async () => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<unknown>();
    const gateway = await serve((event) => {
      if (event.path !== "/gone") return OK;
      started.resolve();
      return answer.promise;
    });
    const socket = await open(gateway.url);
    socket.write("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
    await started.promise;
    socket.destroy();
    await once(socket, "close");
    answer.resolve({ statusCode: 200, body: "nobody reads this" });
    await expect
      .poll(() => gateway.lines)
      .toContainEqual(expect.stringMatching(/^GET \/gone 200 /));
    expect((await send(gateway.url, "/x")).status).toBe(200);
    expect(gateway.errors).toEqual([]);
  });
});

describe("the log", () => {
  test("has one line a request: method, path, status, time, owner", async () => {
    const gateway = await serve(() => ({ statusCode: 404, body: "" }));
    await send(gateway.url, "/v1/caf%C3%A9?token=1", {
      method: "PUT",
      headers: ["x-dev-owner", "ann"],
    });
    expect(gateway.lines).toEqual([expect.stringMatching(/^PUT \/v1\/caf%C3%A9 404 \d+ ms ann$/)]);
  });

  test("shows control characters in an owner as escapes", async () => {
    const gateway = await serve(() => OK);
    await send(gateway.url, "/x", { headers: ["x-dev-owner", "a\tb\u0085c"] });
    expect(gateway.lines).toEqual([expect.stringMatching(/ms a\\u\{9\}b\\u\{85\}c$/)]);
  });
});

describe("close", () => {
  test("refuses new connections and lets a running request finish", async () => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<unknown>();
    const gateway = await serve(() => {
      started.resolve();
      return answer.promise;
    });
    const running = send(gateway.url, "/x");
    await started.promise;
    const closed = gateway.close();
    await expect(send(gateway.url, "/x")).rejects.toThrow(/ECONNREFUSED/);
    answer.resolve({ statusCode: 200, body: "finished" });
    expect((await running).text).toBe("finished");
    await closed;
  });

  test("ends a connection that is only kept alive", async () => {
    const gateway = await serve(() => OK);
    const socket = await open(gateway.url);
    socket.write("GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "data");
    const ended = once(socket, "close");
    await gateway.close();
    await ended;
  });

  test("waits for a handler whose client has left", async () => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<unknown>();
    const gateway = await serve(() => {
      started.resolve();
      return answer.promise;
    });
    const socket = await open(gateway.url);
    socket.write("GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    await started.promise;
    socket.destroy();
    await once(socket, "close");
    let isClosed = false;
    const closed = gateway.close().then(() => {
      isClosed = true;
    });
    // A round trip through the timers and the sockets, in which a close() that doesn't wait is done.
    await expect(send(gateway.url, "/x")).rejects.toThrow();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isClosed).toBe(false);
    answer.resolve(OK);
    await closed;
  });

  test("gives up on a request that doesn't finish within the grace", async () => {
    const started = Promise.withResolvers<void>();
    const gateway = await serve(
      () => {
        started.resolve();
        return new Promise(() => {});
      },
      { closeGraceMs: 50 },
    );
    const running = send(gateway.url, "/x");
    const failed = expect(running).rejects.toThrow();
    await started.promise;
    await gateway.close();
    await failed;
  });
});

test("a port that is taken is an error at the start", async () => {
  const { url } = await serve(() => OK);
  const port = Number(new URL(url).port);
  await expect(serve(() => OK, { port })).rejects.toMatchObject({ code: "EADDRINUSE" });
});

async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  // A reset is what some of these tests are about.
  socket.on("error", () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, "connect");
  return socket;
}
