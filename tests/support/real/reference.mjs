// SPDX-License-Identifier: MIT
// What other programs make of real files, for ci/real; run in a folder with their packages.
//     reference.mjs ids TOKENIZER.json TEXTS.json    lists of ids, by `tokenizers`
//     reference.mjs prompts JOBS.json                prompts, by `@huggingface/jinja`
//     reference.mjs shares MODEL.gguf 1,2,3          probabilities behind each token, by
//                                                    `node-llama-cpp`
import fs from "fs";
import { createRequire } from "module";
import { pathToFileURL } from "url";
const require = createRequire(process.cwd() + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const [kind, path, list] = process.argv.slice(2);
const read = (file) => JSON.parse(fs.readFileSync(file));

if (kind === "ids") {
    const { Tokenizer } = require("tokenizers");
    const t = Tokenizer.fromFile(path);
    const out = [];
    for (const text of read(list))
        out.push((await t.encode(text, null, { addSpecialTokens: false })).getIds());
    console.log(JSON.stringify(out));
} else if (kind === "prompts") {
    const { Template } = await load("@huggingface/jinja");
    const render = (job) => {
        try {
            return new Template(job.template).render(job.input);
        } catch (e) {
            return null;
        }
    };
    console.log(JSON.stringify(read(path).map(render)));
} else {
    const { getLlama } = await import(
        pathToFileURL(process.cwd() + "/node_modules/node-llama-cpp/dist/index.js"));
    const llama = await getLlama({ gpu: false, build: "never", progressLogs: false, logLevel: "error" });
    const model = await llama.loadModel({ modelPath: path });
    const context = await model.createContext({ contextSize: 256 });
    const tokens = list.split(",").map((t) => [Number(t), { generateNext: { probabilities: true } }]);
    const out = await context.getSequence().controlledEvaluate(tokens);
    process.stdout.write(JSON.stringify(out.map((one) => [...one.next.probabilities])),
        () => process.exit(0));
}
