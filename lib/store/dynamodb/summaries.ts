import { reading } from "../codec.ts";
import type { SessionStore } from "../store.ts";
import * as when from "./conditions.ts";
import { decodeContent, encodeContent } from "./content.ts";
import { Fields } from "./fields.ts";
import { afterHead, placeOf, summariesBefore, summaryKey } from "./keys.ts";
import type { Table } from "./requests.ts";

/** Summaries of older turns, one item each. None is ever changed: a new one covers more. */
export const dynamoSummaries = (table: Table): Pick<SessionStore, "summary" | "saveSummary"> => ({
  summary: async (head) => {
    const page = await table.query({
      ...summariesBefore(placeOf(head), head.version),
      ScanIndexForward: false,
      Limit: 1,
    });
    const [item] = page.items;
    return (
      item &&
      reading(`session ${head.sessionId}, a summary`, () => {
        const fields = new Fields(item, "");
        return { to: fields.number("to"), text: decodeContent(fields.value("data"), "data") };
      })
    );
  },

  saveSummary: async (head, { to, text }) => {
    const item = {
      ...summaryKey(placeOf(head), to),
      to,
      data: encodeContent(text),
      expires_at: afterHead(head),
    };
    await table.putIf(item, { condition: [when.NOTHING_THERE] });
  },
});
