import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { listen } from "../../dev/server.ts";

const HOST = "127.0.0.1";

/** One running request on a server that never ends a kept-alive connection by itself. */
async function runningRequest() {
  const server = createServer({ keepAliveTimeout: 0 });
  onTestFinished(() => {
    server.closeAllConnections();
  });
  const responses: ServerResponse[] = [];
  server.on("request", (_, response) => responses.push(response));
  const listening = await listen(server, { host: HOST, port: 0 });
  const socket = connect(listening.port, HOST);
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(server, "request");
  const [response] = responses;
  if (response === undefined) throw new Error("There is no request.");
  return { server, listening, socket, response };
}

test("closing lets a running request finish, and then ends its kept-alive connection", async () => {
  const { listening, socket, response } = await runningRequest();
  const received = buffer(socket);
  const closed = listening.close(60_000);
  response.end("finished");
  await closed;
  const text = String(await received);
  expect(text).toMatch(/^HTTP\/1\.1 200 /);
  expect(text).toMatch(/\r\n\r\nfinished$/);
});

test("closing doesn't cut an answer that a slow client is still reading", async () => {
  const { listening, socket, response } = await runningRequest();
  const body = Buffer.alloc(16 * 1024 * 1024, "a");
  const closed = listening.close(60_000);
  response.end(body);
  await sleep(100);
  const received = await buffer(socket);
  expect(received.length).toBeGreaterThan(body.length);
  await closed;
});

test("closing doesn't wait for a client that has connected and sent nothing", async () => {
  const { server, listening, response } = await runningRequest();
  const silent = connect(listening.port, HOST);
  silent.on("error", () => {});
  await once(server, "connection");
  const ended = once(silent, "close");
  response.end();
  await listening.close(60_000);
  await ended;
});

test("closing ends a request that doesn't finish within the grace", async () => {
  const { listening, socket } = await runningRequest();
  const ended = once(socket, "close");
  await listening.close(50);
  await ended;
});

test("closing twice is closing once", async () => {
  const { server, listening, response } = await runningRequest();
  response.end();
  await Promise.all([listening.close(60_000), listening.close(60_000)]);
  await listening.close(60_000);
  expect(server.listening).toBe(false);
});

test("a port that is taken is an error where the listening starts", async () => {
  const first = await listen(createServer(), { host: HOST, port: 0 });
  onTestFinished(() => first.close(0));
  const second = listen(createServer(), { host: HOST, port: first.port });
  await expect(second).rejects.toThrow(/EADDRINUSE/);
});
