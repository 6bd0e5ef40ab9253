// SPDX-License-Identifier: MIT
//
// openai.mjs - what programs that use OpenAI's own client for Node get from `bench serve`
//
// usage: node openai.mjs http://HOST:PORT/v1 VECTORS, next to a node_modules with `openai`;
// VECTORS: the same of a server with an embedding model
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none-is-needed", maxRetries: 0 });
const model = "tiny";
const messages = [{ role: "user", content: "Once upon a time, Lily" }];

// Models.
const models = [];
for await (const m of client.models.list()) models.push(m.id);
assert.deepEqual(models, [model]);

// A chat, whole and as a stream.
const chat = { model, messages, temperature: 0, max_tokens: 24 };
const whole = await client.chat.completions.create(chat);
assert.equal(whole.choices[0].finish_reason, "length");
assert.equal(whole.usage.completion_tokens, 24);
let text = "";
let usage = null;
const stream = await client.chat.completions.create({
  ...chat, stream: true, stream_options: { include_usage: true },
});
for await (const part of stream) {
  text += part.choices[0]?.delta?.content ?? "";
  usage = part.usage ?? usage;
}
assert.equal(text, whole.choices[0].message.content);
assert.equal(usage.completion_tokens, 24);

// A completion.
const plain = await client.completions.create({ model, prompt: "Once upon a time", temperature: 0, stop: ["girl"] });
assert.equal(plain.choices[0].finish_reason, "stop");

// An answer that follows a schema.
const schema = {
  type: "object", additionalProperties: false, required: ["pet"],
  properties: { pet: { type: "string", enum: ["cat", "dog"] } },
};
const form = { type: "json_schema", json_schema: { name: "pet", strict: true, schema } };
const formed = await client.chat.completions.create({ ...chat, max_tokens: 100, response_format: form });
assert.ok(["cat", "dog"].includes(JSON.parse(formed.choices[0].message.content).pet));

// The newer API, whole and as a stream, from the same model.
const request = { model, input: messages, temperature: 0, max_output_tokens: 24 };
const response = await client.responses.create(request);
assert.equal(response.output_text, whole.choices[0].message.content);
assert.equal(response.status, "incomplete");
const done = await client.responses.stream(request).finalResponse();
assert.equal(done.output_text, response.output_text);
assert.equal(done.usage.output_tokens, 24);
await assert.rejects(client.responses.create({ ...request, previous_response_id: "resp_1" }), OpenAI.BadRequestError);

// Aborted in the middle: the client is told, and the server goes on.
const endless = await client.chat.completions.create({ ...chat, max_tokens: 400, stream: true, ignore_eos: true });
let n = 0;
for await (const part of endless) {
  if (part.choices.length && ++n === 3) endless.controller.abort();
}
assert.ok(n < 400);
const again = await client.chat.completions.create(chat);
assert.equal(again.choices[0].message.content, whole.choices[0].message.content);

// Errors are the client's own classes.
await assert.rejects(client.chat.completions.create({ ...chat, temperature: 9 }), OpenAI.BadRequestError);
await assert.rejects(client.chat.completions.create({ ...chat, model: "x" }), OpenAI.NotFoundError);
// Vectors: as base64, which the client asks for and decodes, and as numbers.
const other = new OpenAI({ baseURL: process.argv[3], apiKey: "none-is-needed", maxRetries: 0 });
const input = ["Once upon a time", "Lily"];
const { data, usage: read } = await other.embeddings.create({ model: "vectors", input });
assert.deepEqual(data.map((d) => d.index), [0, 1]);
assert.ok(read.prompt_tokens >= 2 && read.total_tokens === read.prompt_tokens);
for (const { embedding } of data) assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-5);
const [numbers] = (await other.embeddings.create({ model: "vectors", input: input[1], encoding_format: "float" })).data;
assert.equal(numbers.embedding.length, data[1].embedding.length);
numbers.embedding.forEach((v, i) => assert.ok(Math.abs(v - data[1].embedding[i]) < 1e-6));
const [short] = (await other.embeddings.create({ model: "vectors", input: input[1], dimensions: 8 })).data;
assert.equal(short.embedding.length, 8);
await assert.rejects(other.chat.completions.create({ ...chat, model: "vectors" }), OpenAI.APIError);
console.log("the openai package: vectors, models, chat, stream, completion, schema, responses, abort, errors");
