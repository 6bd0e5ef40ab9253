// SPDX-License-Identifier: MIT
//
// anthropic.mjs - Anthropic's client for Node with `bench serve`
//
// usage: node anthropic.mjs http://HOST:PORT/v1, next to a node_modules with
// `@anthropic-ai/sdk`
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const baseURL = process.argv[2].replace(/\/v1$/, "");
const client = new Anthropic({ baseURL, apiKey: "none-is-needed", maxRetries: 0 });
const messages = [{ role: "user", content: "Once upon a time, Lily" }];
const body = { model: "tiny", max_tokens: 24, messages, temperature: 0 };

const whole = await client.messages.create(body);
assert.equal(whole.stop_reason, "max_tokens");
assert.equal(whole.usage.output_tokens, 24);
const { text } = whole.content[0];

// As a stream: pieces, and the message that the client puts together of them.
let pieces = "";
const final = await client.messages.stream(body).on("text", (piece) => { pieces += piece; }).finalMessage();
assert.equal(pieces, text);
assert.deepEqual(final.content, whole.content);
assert.equal(final.stop_reason, whole.stop_reason);
assert.equal(final.usage.output_tokens, 24);

// What a prompt costs.
const count = await client.messages.countTokens({ model: "tiny", messages });
assert.equal(count.input_tokens, whole.usage.input_tokens + whole.usage.cache_read_input_tokens);

// Aborted in the middle; the server answers others.
const endless = await client.messages.create({ ...body, max_tokens: 400, stream: true });
let n = 0;
for await (const event of endless) {
  if (event.type === "content_block_delta" && ++n === 3) endless.controller.abort();
}
assert.deepEqual((await client.messages.create(body)).content, whole.content);

await assert.rejects(client.messages.create({ ...body, temperature: 9 }), Anthropic.BadRequestError);
await assert.rejects(client.messages.create({ ...body, model: "x" }), Anthropic.NotFoundError);
console.log("the @anthropic-ai/sdk package: message, stream, tokens, abort, errors");
