// What AsyncAPI's own parser objects to in the document at an address: a line for each error.
import { Parser } from "@asyncapi/parser";

const text = await (await fetch(process.argv[2])).text();
const check = async (document) => {
  const { diagnostics } = await new Parser().parse(document);
  return diagnostics.filter(({ severity }) => severity === 0).map(({ message, path }) => `${path.join(".")}: ${message}`);
};
console.log(JSON.stringify({ errors: await check(text), broken: await check(text.replace('"receive"', '"recieve"')) }));
