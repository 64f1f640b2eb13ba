// From what a library says of an error to a code of the contract, by the same rule for every library (codes.py says it).

import { readFileSync } from "node:fs";

const contract = (name) => JSON.parse(readFileSync(new URL(`../../../contract/${name}`, import.meta.url), "utf8"));
const dialects = contract("dialects.json");
const words = dialects.code_aliases; // insufficient_quota: quota_exceeded
const statuses = dialects.status_codes; // 503: engine_unavailable
const outcomes = Object.fromEntries(contract("registry.json").codes.map(({ code, outcome }) => [code, outcome]));

// A call that ended in an error; `said` are the members of outcome.json that the library has for it.
export function failed(byClass, { code, status, ...said }) {
  let word = words[code] ?? String(code);
  if (!/string|number/.test(typeof code) || !/^[a-z]+(_[a-z]+)*$/.test(word)) {
    word = ofNumber(code) ?? ofNumber(status) ?? byClass;
    if (word === "not_found" && said.param === "model") word = "model_not_found";
  }
  if (Number.isInteger(status)) said.status = status;
  const plain = Object.entries(said).filter(([, value]) => value === null || /string|number|boolean/.test(typeof value));
  return { outcome: outcomes[word] ?? "failed", code: word, ...Object.fromEntries(plain) };
}

function ofNumber(number) {
  const rest = /^[45]..$/.test(number) ? { 4: "invalid_request_error", 5: "internal_server_error" } : {};
  return statuses[number] ?? rest[String(number)[0]];
}

// The code of the first class in the table that the error is an instance of; what no table has could not be read.
export function classCode(error, table) {
  return table.find(([kind]) => error instanceof kind)?.[1] ?? "malformed_response";
}
