/** Frames of `application/vnd.amazon.eventstream`, written out by hand. */
import { crc32 } from "node:zlib";

export interface Frame {
  /** "event" unless said otherwise. An "error" is one that the service's model doesn't know. */
  readonly kind?: "event" | "exception" | "error";
  /** Of the event or exception; the code of an error. */
  readonly type: string;
  readonly payload: unknown;
}

export const frame = ({ kind = "event", type, payload }: Frame): Buffer => {
  const headers =
    kind === "error"
      ? { ":error-code": type, ":error-message": String(payload) }
      : { [`:${kind}-type`]: type, ":content-type": "application/json" };
  const head = Buffer.concat(
    Object.entries({ ...headers, ":message-type": kind }).map(([name, value]) =>
      header(name, value),
    ),
  );
  const body = Buffer.from(kind === "error" ? "" : JSON.stringify(payload));
  const prelude = Buffer.concat([uint32(head.length + body.length + 16), uint32(head.length)]);
  const message = Buffer.concat([prelude, uint32(crc32(prelude)), head, body]);
  return Buffer.concat([message, uint32(crc32(message))]);
};

const STRING_TYPE = 7;

const header = (name: string, value: string): Buffer => {
  const [nameBytes, valueBytes] = [Buffer.from(name), Buffer.from(value)];
  const length = Buffer.alloc(2);
  length.writeUInt16BE(valueBytes.length);
  return Buffer.concat([
    Buffer.from([nameBytes.length]),
    nameBytes,
    Buffer.from([STRING_TYPE]),
    length,
    valueBytes,
  ]);
};

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
