// SPDX-License-Identifier: MIT
//
// tools.mjs - loops of calls and results by clients for Node, with `bench serve`
//
// usage: node tools.mjs http://HOST:PORT/v1, next to a node_modules with them
//
// The model has never called anything, so a call is required, and what it is called with
// is what the schema leaves it.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import OpenAI from "openai";

const baseURL = process.argv[2];
const apiKey = "none-is-needed";
const model = "tiny";
const prompt = "Once upon a time, Lily";
const name = "weather";
const description = "the weather in a city";
const parameters = {
  type: "object", additionalProperties: false, required: ["city", "days"],
  properties: { city: { enum: ["Oslo", "Rome"] }, days: { type: "integer", minimum: 1, maximum: 9 } },
};
const TURNS = 3;

// The result of a call, whose arguments must be valid.
function result({ city, days, ...others }) {
  assert.ok(["Oslo", "Rome"].includes(city) && days >= 1 && days <= 9 && Number.isInteger(days), `${city} ${days}`);
  assert.deepEqual(others, {});
  return `${days} days of rain in ${city}`;
}

// OpenAI's chats: whole, and as a stream that the client puts together.
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const chat = {
  model, max_tokens: 200, temperature: 1, parallel_tool_calls: false, tool_choice: "required",
  tools: [{ type: "function", function: { name, description, parameters } }],
};
const messages = [{ role: "user", content: prompt }];
for (let turn = 0; turn < TURNS; turn++) {
  const request = { ...chat, messages, seed: turn };
  const { message } = (await client.chat.completions.create(request)).choices[0];
  const [streamed] = (await client.chat.completions.stream(request).finalChatCompletion()).choices;
  const [call] = message.tool_calls;
  assert.equal(call.function.name, name);
  assert.equal(streamed.finish_reason, "tool_calls");
  assert.equal(streamed.message.tool_calls[0].function.arguments, call.function.arguments);
  messages.push(message, { role: "tool", tool_call_id: call.id, content: result(JSON.parse(call.function.arguments)) });
}

// OpenAI's responses.
const input = [{ role: "user", content: prompt }];
for (let turn = 0; turn < TURNS; turn++) {
  const response = await client.responses.create({
    model, input, max_output_tokens: 200, parallel_tool_calls: false, tool_choice: "required",
    tools: [{ type: "function", name, description, parameters, strict: true }],
  });
  const call = response.output.find((item) => item.type === "function_call");
  input.push(...response.output,
    { type: "function_call_output", call_id: call.call_id, output: result(JSON.parse(call.arguments)) });
}

// Anthropic's messages.
const claude = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ""), apiKey, maxRetries: 0 });
const talk = [{ role: "user", content: prompt }];
for (let turn = 0; turn < TURNS; turn++) {
  const answer = await claude.messages.stream({
    model, max_tokens: 200, messages: talk, tools: [{ name, description, input_schema: parameters }],
    tool_choice: { type: "any", disable_parallel_tool_use: true },
  }).finalMessage();
  assert.equal(answer.stop_reason, "tool_use");
  const call = answer.content.find((block) => block.type === "tool_use");
  talk.push({ role: "assistant", content: answer.content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: result(call.input) }] });
}

// The package ai runs the loop itself.
const { steps } = await generateText({
  model: createOpenAICompatible({ name: "slmbench", baseURL })(model), prompt, maxOutputTokens: 200,
  tools: { [name]: tool({ description, inputSchema: jsonSchema(parameters), execute: async (args) => result(args) }) },
  toolChoice: "required", stopWhen: stepCountIs(TURNS),
  providerOptions: { slmbench: { parallel_tool_calls: false } },
});
assert.equal(steps.length, TURNS);
assert.ok(steps.every((step) => step.toolResults.length && step.toolResults.every((r) => r.output.includes("rain"))));

// LangChain.
const bound = new ChatOpenAI({ model, apiKey, maxTokens: 200, maxRetries: 0, configuration: { baseURL } })
  .bindTools([{ type: "function", function: { name, description, parameters } }],
    { tool_choice: "required", parallel_tool_calls: false });
const history = [new HumanMessage(prompt)];
for (let turn = 0; turn < TURNS; turn++) {
  const answer = await bound.invoke(history);
  const [call] = answer.tool_calls;
  history.push(answer, new ToolMessage({ tool_call_id: call.id, content: result(call.args) }));
}
console.log("tools in a loop: openai (chats, responses), @anthropic-ai/sdk, ai, @langchain/openai");
