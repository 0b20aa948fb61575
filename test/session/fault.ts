import { InvalidInputError } from "../../lib/session/invalid.ts";

/** The fault that `act` is refused with, as "path: message"; "none" where it isn't refused. */
export const faultOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const [fault] = error.faults;
    return `${fault?.path}: ${fault?.message}`;
  }
  return "none";
};
