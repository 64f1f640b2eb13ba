// openai-node: `--mode iterator` loops over `stream: true`, `--mode stream` is its `.stream()`.

import OpenAI from "openai";
import { ContentFilterFinishReasonError, LengthFinishReasonError } from "openai/core/error";
import { VERSION } from "openai/version";
import { make } from "./caller.mjs";
import { classCode, failed } from "./codes.mjs";
import { serve } from "./protocol.mjs";

const CODES = [ // the most special class first; a code or a status that the error carries goes before
  [OpenAI.APIConnectionError, "connection_failed"],
  [OpenAI.APIError, "internal_server_error"], // without a status: an error event within a stream
];
const SAYS_CUT = /missing finish_reason|ended without sending any chunks|^terminated$/; // its helper's words, and fetch's
const NOTE = "Codes are the error's code, else its HTTP status, else its class. Its timeout ends with the head, so no timer.";
const RUN_TOOLS = ["tool_calls", "function_call", "stop"]; // with these a careful caller runs what was called
const mode = process.argv.includes("stream") ? "stream" : "iterator";

function open({ base_url: baseURL, api_key: apiKey }, call) {
  return new OpenAI({ baseURL, apiKey, maxRetries: call.retries });
}

async function read(client, call, heard) {
  if (call.endpoint === "models") return void (await client.models.list({ signal: heard.signal }));
  Object.assign(heard.members, { texts: {}, finish_reasons: {}, tool_calls: [] });
  const resource = call.endpoint === "completions" ? client.completions : client.chat.completions;
  if (!call.stream) return answer(await resource.create(call.request, { signal: heard.signal }), heard);
  const helper = mode === "stream";
  const stream = helper
    ? resource.stream(call.request, { signal: heard.signal })
    : await resource.create(call.request, { signal: heard.signal });
  const calls = {};
  for await (const chunk of stream) {
    for (const choice of chunk.choices ?? []) {
      say(choice, choice.delta ? choice.delta.content : choice.text, heard);
      hearCalls(choice, calls, heard);
    }
    if (chunk.usage) heard.members.usage = chunk.usage;
    if (heard.eventOver()) return;
  }
  if (helper) await stream.finalChatCompletion().catch(unlessFinished);
}

function unlessFinished(error) {
  if (!(error instanceof LengthFinishReasonError || error instanceof ContentFilterFinishReasonError)) throw error;
} // these only say how the answer finished

function answer(whole, heard) {
  say(whole.choices[0], "", heard);
  for (const choice of whole.choices) {
    say(choice, choice.message ? choice.message.content : choice.text, heard);
    for (const { id, function: { name, arguments: text } } of choice.message?.tool_calls ?? [])
      heard.members.tool_calls.push({ id, name, arguments: text });
  }
  if (whole.usage) heard.members.usage = whole.usage;
}

function say({ index, finish_reason: reason }, text, heard) {
  const { texts, finish_reasons: reasons } = heard.members;
  texts[index] = (texts[index] ?? "") + (text ?? "");
  heard.text = texts[0] ?? "";
  if (reason) reasons[index] = reason;
}

function hearCalls({ index, delta, finish_reason: reason }, calls, heard) {
  const mine = (calls[index] ??= []);
  for (const { index: at, id, function: part } of delta?.tool_calls ?? []) {
    const call = (mine[at] ??= { id, name: "", arguments: "" });
    call.name += part?.name ?? "";
    call.arguments += part?.arguments ?? "";
  }
  if (RUN_TOOLS.includes(reason)) heard.members.tool_calls.push(...mine.splice(0));
}

function failure(error) {
  const { message, status, code, param, requestID: request_id } = error;
  if (SAYS_CUT.test(message)) return failed("stream_incomplete", { message });
  return failed(classCode(error, CODES), { message, status, code, param, request_id });
}

const capabilities = ["cancel", "choices", "retry", "tools", ...(mode === "stream" ? [] : ["completions", "models"])];
const name = mode === "stream" ? "openai-node-stream" : "openai-node";
await serve((what) => make(what, open, read, failure), { name, version: VERSION, capabilities, note: NOTE });
