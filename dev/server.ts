/** Starting and stopping an HTTP server without losing an error or a running request. */
import { once } from "node:events";
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export type Address = { host: string; port: number };

export type Listening = {
  port: number;
  /** Stops accepting, lets running requests finish for up to `graceMs`, then ends what is left. */
  close(graceMs: number): Promise<void>;
};

/** Port 0 takes a free one. Rejects where it can't listen. */
export async function listen(server: Server, { host, port }: Address): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  const running = new Set<ServerResponse>();
  server.on("request", (_, response) => {
    running.add(response);
    for (const end of ["finish", "close"]) response.once(end, () => running.delete(response));
  });
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");

  return {
    port: address.port,
    async close(graceMs) {
      // Left to itself, a connection is kept alive for seconds, or waits a minute for its request.
      const busy = new Set([...running].map((response) => response.req.socket));
      for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
      for (const response of running) {
        response.once("finish", () => response.req.socket.destroySoon());
      }
      const force = setTimeout(() => server.closeAllConnections(), graceMs);
      try {
        await stopServer(server);
      } finally {
        clearTimeout(force);
      }
    },
  };
}

function stopServer(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => {
      if (error === undefined || error === null || isStopped(error)) resolve();
      else reject(error);
    });
  });
}

function isStopped(error: Error): boolean {
  return "code" in error && error.code === "ERR_SERVER_NOT_RUNNING";
}
