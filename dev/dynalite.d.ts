/** dynalite ships no types; this is the part of it that the embedded engine uses. */
declare module "dynalite" {
  import type { Server } from "node:http";

  function dynalite(options?: {
    /** The LevelDB folder; in memory without one. */
    path?: string;
    createTableMs?: number;
    deleteTableMs?: number;
    updateTableMs?: number;
  }): Server;

  export = dynalite;
}
