// Vercel's `ai` with @ai-sdk/openai-compatible: streamText, read through fullStream, and generateText.

import { createRequire } from "node:module";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import * as ai from "ai";
import { make } from "./caller.mjs";
import { failed } from "./codes.mjs";
import { serve } from "./protocol.mjs";

const CODES = { // by name; a code or an error status that the error carries goes before
  AI_JSONParseError: "malformed_response",
  AI_TypeValidationError: "malformed_response",
  AI_InvalidResponseDataError: "malformed_response",
  AI_NoOutputGeneratedError: "stream_incomplete",
  TimeoutError: "deadline_exceeded",
};
const SAYS_CUT = /^Response stream ended without a finish reason|^terminated$/; // its words, and those of fetch
const NOTE =
  "Errors of fullStream and of generateText: the error's code, else its HTTP status, else its class or its cause's; an " +
  "abort that the caller did not ask for is the timeout that it names.";

function open({ base_url: baseURL, api_key: apiKey }) {
  return createOpenAICompatible({ name: "scripted", baseURL, apiKey }).chatModel("m");
}

async function read(model, call, heard) {
  const { total, idle } = call.timeouts;
  const timeout = { ...(total && { totalMs: total * 1000 }), ...(idle && { chunkMs: idle * 1000 }) };
  const { messages } = call.request;
  const options = { model, messages, timeout, maxRetries: call.retries, abortSignal: heard.signal };
  if (!call.stream) {
    const { text, rawFinishReason, totalUsage } = await ai.generateText(options);
    return last(heard, { text, rawFinishReason, totalUsage });
  }
  for await (const part of ai.streamText({ ...options, onError() {} }).fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "abort") throw new Stopped(part.reason);
    if (part.type === "finish") last(heard, part);
    if (part.type === "text-delta") {
      heard.text += part.text;
      if (heard.eventOver()) return;
    }
  }
}

class Stopped extends Error {}

function last(heard, { text = heard.text, rawFinishReason, totalUsage: usage }) {
  heard.text = text;
  heard.members.finish_reasons = { 0: rawFinishReason ?? null };
  const { inputTokens: prompt_tokens, outputTokens: completion_tokens, totalTokens: total_tokens } = usage;
  if (total_tokens !== undefined) heard.members.usage = { prompt_tokens, completion_tokens, total_tokens };
}

function failure(thrown) {
  if (thrown instanceof Stopped) {
    return failed(/^Chunk/.test(thrown.message) ? "generation_stalled" : "deadline_exceeded", thrown);
  }
  const error = (ai.RetryError.isInstance(thrown) ? thrown.lastError : thrown) ?? {};
  const { message, statusCode, isRetryable: retryable, cause, data } = error;
  if (SAYS_CUT.test(message) || SAYS_CUT.test(cause?.message)) return failed("stream_incomplete", { message });
  const { code, param } = data?.error ?? error; // within a stream the error is the server's own object
  const status = statusCode >= 400 ? statusCode : undefined; // 200 says nothing of an answer that could not be read
  const reached = !ai.APICallError.isInstance(error) || statusCode !== undefined;
  const byClass = CODES[error.name] ?? CODES[cause?.name] ?? (reached ? "internal_server_error" : "connection_failed");
  return failed(byClass, { message, code, param, status, retryable });
}

const { version } = createRequire(import.meta.url)("ai/package.json");
const capabilities = ["cancel", "deadline", "idle", "retry"];
await serve((what) => make(what, open, read, failure), { name: "vercel-ai", version, capabilities, note: NOTE });
