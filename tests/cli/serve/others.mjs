// SPDX-License-Identifier: MIT
//
// others.mjs - `bench serve` by clients that are built on OpenAI's API: the packages ai
// (with @ai-sdk/openai-compatible), @langchain/openai and ollama
//
// usage: node others.mjs http://HOST:PORT/v1, next to a node_modules with them
import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, streamText } from "ai";
import { Ollama } from "ollama";

const baseURL = process.argv[2];
const prompt = "Once upon a time, Lily";

const model = createOpenAICompatible({ name: "slmbench", baseURL })("tiny");
const whole = await generateText({ model, prompt, temperature: 0, maxOutputTokens: 24 });
assert.equal(whole.usage.outputTokens, 24);
assert.equal(whole.finishReason, "length");
let text = "";
for await (const piece of streamText({ model, prompt, temperature: 0, maxOutputTokens: 24 }).textStream) text += piece;
assert.equal(text, whole.text);

const chat = new ChatOpenAI({
  model: "tiny", apiKey: "none-is-needed", temperature: 0, maxTokens: 24, maxRetries: 0, configuration: { baseURL },
});
assert.equal((await chat.invoke(prompt)).content, text);
let streamed = "";
for await (const piece of await chat.stream(prompt)) streamed += piece.content;
assert.equal(streamed, text);

// Ollama's own API is another one: the error names this server's.
const ollama = new Ollama({ host: baseURL.replace(/\/v1$/, "") });
await assert.rejects(ollama.chat({ model: "tiny", messages: [{ role: "user", content: prompt }] }),
  /\/v1\/chat\/completions/);
console.log("the ai and @langchain/openai packages: chat, stream; ollama: an error with the paths");
