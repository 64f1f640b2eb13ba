// The adapter protocol, version 1: one JSON object a line on stdin and stdout. Copy this file; it needs Node only.
//
// An adapter is a function that makes one call with its library, `run(case)`, and one line that serves it:
//
//     await serve(run, { name: "my-client", version: "1.0", capabilities: ["cancel"] })
//
// The result has the members of contract/schemas/outcome.json that the library has a notion of; `outcome` and `code`
// always. `throw new Unable("why")` if the call cannot even be tried.

import { createInterface } from "node:readline";

export class Unable extends Error {}

const answer = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr); // stdout is the protocol's: what a library prints goes to stderr

export async function serve(run, { name, version, capabilities, note = "" }) {
  for await (const line of createInterface({ input: process.stdin })) {
    const message = read(line);
    if (!["start", "stop"].includes(message?.cmd) && !(message?.cmd === "run" && message.seq)) {
      process.stderr.write(`${name}: the runner sent ${line}, which is no line of the adapter protocol\n`);
      process.exit(1);
    }
    if (message.cmd === "stop") break;
    const hello = { protocol: 1, name, version, language: "javascript", capabilities, note };
    const said = message.cmd === "start" ? hello : { seq: message.seq, ...(await attempt(run, message.case)) };
    answer(JSON.stringify(said) + "\n");
  }
  process.exit(0); // whatever timers and sockets the library keeps
}

function read(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

async function attempt(run, what) {
  try {
    return { result: await run(what) };
  } catch (error) {
    if (error instanceof Unable) return { unable: error.message };
    console.error(error); // the adapter's own fault: the runner is told, stderr has the place
    return { unable: `the adapter failed: ${error}` };
  }
}
