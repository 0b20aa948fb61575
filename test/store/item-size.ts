/** As DynamoDB counts: names and values in UTF-8; a number at one byte for two digits, and one more. */
export const sizeOf = (value: unknown): number => {
  if (value instanceof Uint8Array) return value.length;
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number") return Math.ceil(String(value).length / 2) + 1;
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + 1 + sizeOf(item), 3);
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).reduce(
      (sum, [name, item]) => sum + Buffer.byteLength(name) + sizeOf(item) + 1,
      3,
    );
  }
  return 1;
};
