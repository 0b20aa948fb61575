/** Keeps keys out of what errors say: servers like to quote the one that they refuse. */

/** A word is hidden where it shares so many letters with a secret: some servers quote a part of it. */
const SHARED = 6;

const MAX_TEXT = 500;

const HIDDEN = "[hidden]";

/** As keys of well-known services look, where the secrets aren't known. */
const KEY =
  /\b(?:(?:(?:sk|pk|rk|gsk|xai|hf|ghp)[-_]|AIza|eyJ|Bearer\s)[\w.*…/+=-]{4,}|(?:AKIA|ASIA|ABSK|bedrock-api-key-|Signature=)[\w+/=-]{4,})/g;

/** At most 500 characters of the text, without the secrets and whatever looks like one. */
export const withoutSecrets = (text: string, secrets: readonly string[]): string => {
  const parts = secrets.flatMap(partsOf);
  const shown = text
    .replaceAll(/\S+/g, (word) => (parts.some((part) => word.includes(part)) ? HIDDEN : word))
    .replaceAll(KEY, HIDDEN);
  return shown.length > MAX_TEXT ? `${shown.slice(0, MAX_TEXT).toWellFormed()}…` : shown;
};

const partsOf = (secret: string): string[] => {
  if (secret.length <= SHARED) return secret === "" ? [] : [secret];
  return Array.from({ length: secret.length - SHARED + 1 }, (_, at) =>
    secret.slice(at, at + SHARED),
  );
};
